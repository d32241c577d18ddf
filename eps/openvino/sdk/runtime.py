"""Protocols of OpenVINO's two bindings: what reloading and running a model need."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy as np

    from ort_lite.ep import Port, Ports

    Array = np.ndarray[Any, Any]


class InferRequest(Protocol):
    """One inference at a time of a model; every method may raise one of `SDK_ERRORS`."""

    def input_view(self, index: int, port: Port) -> Array:
        """Writable view of the request's memory of a static input; must not outlive the request."""
        ...

    def set_input_zero_copy(self, index: int, value: Array) -> Array:
        """Let `infer` read an input from a C-contiguous array without copying it.

        Returns:
            `value`, or a copy of it: the array that must live until `infer` has returned.
        """
        ...

    def infer(self) -> Sequence[Array]:
        """Compute; the outputs in the model's order, in memory of their own."""
        ...

    def set_output_zero_copy(self, index: int, value: Array) -> None:
        """Let later inferences write an output to a C-contiguous array, which is not kept alive."""
        ...

    def set_tensor(self, name: str, tensor: object) -> None:
        """Let later inferences read or write a tensor of the extension, which may be remote."""
        ...

    def compute(self) -> None:
        """Compute, and leave each output where it is."""
        ...

    def read_output(self, index: int) -> Array:
        """A copy of an output that `compute` left in host memory."""
        ...


class RuntimeModel(Protocol):
    """A compiled or imported model, which its requests keep alive."""

    inputs: Ports
    outputs: Ports

    @property
    def blob_bytes(self) -> int | None:
        """Size of the blob that was imported in place; None for a model that was compiled."""
        ...

    def request(self) -> InferRequest:
        """Create an infer request."""
        ...

    def property(self, key: str) -> str:
        """A property as text, a list as `a, b`."""
        ...

    def export(self, out: BinaryIO) -> None:
        """Write what `Runtime.import_model` reads."""
        ...


class Runtime(Protocol):
    """OpenVINO, started; every method may raise one of `SDK_ERRORS`.

    Attributes:
        version: As `openvino.__version__`.
        without_lock: Whether importing leaves Python's lock to others.
    """

    version: str
    without_lock: bool

    def available_devices(self) -> Sequence[str]:
        """Names of the devices that are here."""
        ...

    def property(self, device: str, key: str) -> str | None:
        """A property as text; None if the plug-in does not report it."""
        ...

    def with_config(self, config: Mapping[str, object]) -> Runtime:
        """A runtime whose `import_model` takes these properties."""
        ...

    def import_model(
        self, payload: memoryview, device: str, config: Mapping[str, object]
    ) -> RuntimeModel:
        """Import a blob in place; the result keeps `payload` for as long as it is read."""
        ...
