"""OpenVINO through its Python extension, which compiles, and serves what the C API cannot.

The extension module is loaded alone: `import openvino` takes ten times as long as the runtime in
it, since it brings the model converter, telemetry with urllib and http, and sixteen opsets.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.sdk.c_api import DATA_TYPES
from eps.openvino.sdk.libraries import EXTENSION
from eps.openvino.sdk.signal_stack import KeptSignalStack
from eps.openvino.sdk_errors import PROPERTY_ERRORS
from ort_lite.ep import Port, Ports, load_extension, uncut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import openvino

    from eps.openvino.sdk.runtime import Array


ON_WINDOWS = sys.platform == "win32"
"""Whether the package is needed to find the libraries."""

ov: Any = import_module(EXTENSION) if ON_WINDOWS else load_extension(*EXTENSION.split("."))
"""The runtime's classes as in `import openvino as ov` (Core, Tensor, Type, PartialShape and so on),
without the package's Python wrappers."""

VERSION: str = ov.get_version()
"""OpenVINO's build, as `openvino.__version__`."""

# The first conversion of an element type to numpy's fills a static table of C++, and asks numpy for
# its version in Python meanwhile. Another thread that converts one then waits for the table and
# keeps the GIL, which the first needs: both wait for ever. Seen with OpenVINO 2026.4.1. Here the
# module's import lock keeps other threads out.
ov.Type.f32.to_dtype()


class BindingRuntime:
    """A Core of the extension."""

    version: str = VERSION
    without_lock = False

    def __init__(self, core: openvino.Core) -> None:
        """Use `core`, which may be shared with others."""
        self._core = core

    def available_devices(self) -> Sequence[str]:
        """See Runtime."""
        with KeptSignalStack():
            return list(self._core.available_devices)

    def property(self, device: str, key: str) -> str | None:
        """See Runtime."""
        try:
            with KeptSignalStack():
                return str(self._core.get_property(device, key))
        except PROPERTY_ERRORS:
            return None

    def with_config(self, config: Mapping[str, object]) -> BindingRuntime:  # noqa: ARG002 - see Runtime
        """See Runtime: `import_model` takes any."""
        return self

    def import_model(
        self, payload: memoryview, device: str, config: Mapping[str, object]
    ) -> BindingModel:
        """See Runtime; read-only bytes are copied, since the binding refuses them."""
        buffer = np.frombuffer(payload, dtype=np.uint8)
        if not buffer.flags.writeable:
            buffer = buffer.copy()
        tensor = ov.Tensor(buffer, shared_memory=True)
        with uncut:
            compiled = self._core.import_model(tensor, device, config)
        return BindingModel(compiled, owner=(buffer, payload), blob_bytes=payload.nbytes)


class BindingModel:
    """A compiled or imported model.

    Attributes:
        compiled: The extension's object.
    """

    def __init__(
        self,
        compiled: openvino.CompiledModel,
        owner: object = None,
        blob_bytes: int | None = None,
    ) -> None:
        """Read the ports of `compiled`; `owner` owns the bytes that it reads."""
        self.blob_bytes = blob_bytes
        self.compiled = compiled
        self._owner = owner
        self.inputs, self.outputs = _ports(compiled.inputs), _ports(compiled.outputs)

    def __del__(self) -> None:
        """Give the model up where its end is not cut short: its destructor takes the GIL back."""
        with uncut:
            self.__dict__.pop("compiled", None)

    def request(self) -> BindingRequest:
        """See Model."""
        return BindingRequest(self)

    def property(self, key: str) -> str:
        """See Model."""
        value = self.compiled.get_property(key)
        return ", ".join(value) if isinstance(value, list) else str(value)

    def export(self, out: BinaryIO) -> None:
        """See Model."""
        with uncut:
            blob = self.compiled.export_model()
        out.write(blob.getbuffer())


class BindingRequest:
    """An infer request of the extension."""

    def __init__(self, model: BindingModel) -> None:
        """Create an infer request of `model`."""
        self._model = model  # and with it the bytes that it reads
        with uncut:
            self._request = model.compiled.create_infer_request()

    def __del__(self) -> None:
        """As of a BindingModel."""
        with uncut:
            self.__dict__.pop("_request", None)

    def input_view(self, index: int, port: Port) -> Array:  # noqa: ARG002 - see InferRequest
        """See InferRequest."""
        view: Array = self._request.get_input_tensor(index).data
        return view

    def set_input_zero_copy(self, index: int, value: Array) -> Array:
        """See InferRequest."""
        self._request.set_input_tensor(index, _tensor_over(value))
        return value

    def set_output_zero_copy(self, index: int, value: Array) -> None:
        """See InferRequest."""
        self._request.set_output_tensor(index, _tensor_over(value))

    def set_tensor(self, name: str, tensor: object) -> None:
        """See InferRequest."""
        self._request.set_tensor(name, tensor)

    def compute(self) -> None:
        """See InferRequest; `infer` would make arrays of the outputs, which remote ones are not."""
        with uncut:
            self._request.start_async({}, None)
            self._request.wait()

    def read_output(self, index: int) -> Array:
        """See InferRequest."""
        return np.array(self._request.get_output_tensor(index).data)

    def infer(self) -> Sequence[Array]:
        """See InferRequest."""
        with uncut:
            outputs = self._request.infer({}, share_outputs=True, decode_strings=False)
        return [array.copy() for array in outputs.values()]


def _tensor_over(array: Array) -> Any:  # noqa: ANN401 - an SDK object
    """A tensor over an array's memory, which does not keep it: a request would until the next run.

    The extension refuses read-only arrays, whose memory OpenVINO reads all the same.
    """
    address = array.__array_interface__["data"][0]
    memory = memoryview((ctypes.c_char * array.nbytes).from_address(address)).cast("B")
    return ov.Tensor(np.ndarray(array.shape, array.dtype, memory), shared_memory=True)


def _ports(ports: Sequence[Any]) -> Ports:
    return Ports.by_name(
        [
            Port(
                names=frozenset(port.get_names()),
                data_type=DATA_TYPES.get(port.element_type.get_type_name(), DataType.UNDEFINED),
                shape=_shape(port.partial_shape),
            )
            for port in ports
        ]
    )


def _shape(shape: Any) -> tuple[int | None, ...] | None:  # noqa: ANN401 - an SDK object
    if shape.rank.is_dynamic:
        return None
    return tuple(dim.get_length() if dim.is_static else None for dim in shape)
