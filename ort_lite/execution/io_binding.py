"""IOBinding: inputs and outputs bound to memory before a run, with onnxruntime's names."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.execution.values import OrtValue, require_host
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.execution.run_forms import RunForms
    from ort_lite.execution_provider import Value

    Array = np.ndarray[Any, np.dtype[Any]]


class IOBinding:
    """Inputs and outputs of one session in host memory; made by `session.io_binding()`.

    Not to be used by two threads at once.
    """

    def __init__(self, session: RunForms) -> None:
        """For `session` only."""
        self._session = session
        self._inputs: dict[str, Value] = {}
        self._outputs: dict[str, Array | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Feed an array, without a copy."""
        self._inputs[self._known(name, inputs=True)] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Feed what an OrtValue holds when the session is run."""
        self._inputs[self._known(name, inputs=True)] = ortvalue.numpy()

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,  # noqa: ANN401 - a numpy type or an ONNX number, as in onnxruntime
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Feed memory that the caller owns and keeps alive.

        Raises:
            InvalidArgument: A device other than the host, or an unknown input.
        """
        require_host(device_type, device_id, -1)
        array = _at(buffer_ptr, element_type, shape)
        self._inputs[self._known(name, inputs=True)] = array

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,  # noqa: ANN401 - a numpy type or an ONNX number
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output, in new memory or at `buffer_ptr`, which the caller owns.

        Raises:
            InvalidArgument: A device other than the host, or an unknown output.
            ValueError: A pointer without type or shape, as in onnxruntime.
        """
        require_host(device_type, device_id, -1)
        place = None
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise ValueError(
                    "`element_type` and `shape` are to be provided if pre-allocated memory is "
                    "provided"
                )
            place = _at(buffer_ptr, element_type, shape)
        self._outputs[self._known(name, inputs=False)] = place

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Ask for an output in the memory of an OrtValue."""
        self._outputs[self._known(name, inputs=False)] = ortvalue.numpy()

    def get_outputs(self) -> list[OrtValue]:
        """Results of the last run, in the order in which outputs were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """As `get_outputs`."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Value]:
        """Results of the last run as arrays of the caller's own."""
        return [value.numpy().copy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs and the results."""
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: everything is in host memory."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: everything is in host memory."""

    @property
    def session(self) -> RunForms:
        """The session that made it."""
        return self._session

    def feed(self) -> dict[str, Value]:
        """The inputs, as `run` takes them."""
        return dict(self._inputs)

    def wanted(self) -> list[str]:
        """Names of the outputs that are bound."""
        return list(self._outputs)

    def store(self, values: Sequence[Value]) -> None:
        """Take a run's results, into the memory that was bound.

        Raises:
            InvalidArgument: A result has another type or shape than that memory.
        """
        results = []
        for (name, place), value in zip(self._outputs.items(), values, strict=True):
            if place is None:
                results.append(OrtValue(value))
                continue
            if place.shape != value.shape or place.dtype != value.dtype:
                raise InvalidArgument(
                    f"output {name} is {value.dtype}{list(value.shape)}, the memory bound to it "
                    f"is {place.dtype}{list(place.shape)}"
                )
            np.copyto(place, value)
            results.append(OrtValue(place))
        self._results = results

    def _known(self, name: str, *, inputs: bool) -> str:
        session = self._session
        args = (
            [*session.get_inputs(), *session.get_overridable_initializers()]
            if inputs
            else session.get_outputs()
        )
        if name not in {arg.name for arg in args}:
            kind = "input" if inputs else "output"
            raise InvalidArgument(f"Failed to find {kind} name in the mapping: {name}")
        return name


def _at(address: int, element_type: Any, shape: Sequence[int]) -> Array:  # noqa: ANN401 - see bind_input
    """An array over memory that somebody else owns."""
    dtype = numpy_dtype(element_type) if isinstance(element_type, int) else np.dtype(element_type)
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    if size < 0 or dtype.hasobject:
        raise InvalidArgument(f"no memory of {dtype}{list(shape)} can be bound")
    buffer = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
    return np.ndarray(tuple(shape), dtype, buffer)
