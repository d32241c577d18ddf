"""Infer requests that read and write memory of the caller's: preset tensors.

A tensor over an array is made once and stays with the request as long as runs bring the same
memory, which is what bindings do. A request cannot return to memory of its own for an output, so
that runs which leave other outputs to OpenVINO use another request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.openvino.memory import OpenVINOMemory, OpenVINOTensor
from ort_lite.ep import DeviceTensor, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.openvino.sdk.runtime import Array, RuntimeModel
    from ort_lite.ep import Place, Port, Value


class BoundRequest:
    """One infer request whose inputs and outputs are in memory of the caller's."""

    def __init__(
        self,
        model: RuntimeModel,
        orders: tuple[Sequence[int], Sequence[int]],
        tally: dict[str, int],
    ) -> None:
        """Bind nothing yet.

        Args:
            model: Compiled or imported.
            orders: Port index of each input and of each output, in the partition's order.
            tally: Copies of inputs and outputs, by names of fields of CopyCounts.
        """
        self._request = model.request()
        self._inputs = [_BoundPort(index, model.inputs.all[index]) for index in orders[0]]
        self._outputs = [_BoundPort(index, model.outputs.all[index]) for index in orders[1]]
        self._tally = tally

    def run(self, inputs: Sequence[Value], destinations: Sequence[Value]) -> list[Value]:
        """Compute the outputs.

        Args:
            inputs: Arrays and tensors of the device.
            destinations: From `find_destinations`: None for an output in memory of the request.

        Raises:
            BindingError: A tensor was released.
            RuntimeError: OpenVINO failed; one of SDK_ERRORS.
        """
        kept = [self._bind_input(*pair) for pair in zip(self._inputs, inputs, strict=True)]
        for port, value in zip(self._outputs, destinations, strict=True):
            if isinstance(value, OpenVINOTensor):
                port.bind_tensor(self._request, value)
            elif value is not None and port.is_new(value):
                self._request.set_output_zero_copy(port.index, value)
                port.note(value)
        self._request.compute()
        del kept
        pairs = zip(self._outputs, destinations, strict=True)
        return [self._take(port, value) for port, value in pairs]

    def _bind_input(self, port: _BoundPort, value: Value) -> Value:
        """Bind one; the result is to be kept until the inference has ended."""
        if isinstance(value, OpenVINOTensor):
            port.bind_tensor(self._request, value)
            return value
        if value.dtype != port.dtype or not _is_plain(value):
            value = np.require(value, port.dtype, ("C", "A"))
            self._tally["to_device"] += 1
            self._tally["bytes_to_device"] += value.nbytes
        if port.is_new(value):
            value = self._request.set_input_zero_copy(port.index, value)
            port.note(value)
        return value

    def _take(self, port: _BoundPort, value: Value) -> Value:
        """An output: its destination, or a copy from memory of the request."""
        if value is not None and port.is_static:
            return value
        output = self._request.read_output(port.index)
        if value is not None and output.shape == value.shape:
            return value
        self._tally["to_host"] += 1
        self._tally["bytes_to_host"] += output.nbytes
        return output


class _BoundPort:
    """One port and the memory that a request has for it.

    Attributes:
        index: In the model.
        dtype: Type of its elements.
        is_static: Whether its shape is known before a run.
    """

    __slots__ = ("_at", "_name", "dtype", "index", "is_static")

    def __init__(self, index: int, port: Port) -> None:
        self.index = index
        self.dtype = numpy_dtype(port.data_type)
        self.is_static = port.is_static
        self._name = next(iter(port.names), "")
        self._at: Any = None

    def is_new(self, value: Array) -> bool:
        """Whether an array is other memory than the request has."""
        return bool(self._at != _memory_of(value))

    def note(self, value: Array) -> None:
        """Take note of the memory that the request has now."""
        self._at = _memory_of(value)

    def bind_tensor(self, request: Any, value: OpenVINOTensor) -> None:  # noqa: ANN401 - see InferRequest
        """Bind a tensor of the device; the request keeps it until another one is bound.

        Raises:
            BindingError: It was released.
        """
        handle = value.handle
        if self._at is not handle:
            request.set_tensor(self._name, handle)
            self._at = handle


def find_destinations(
    model: RuntimeModel, order: Sequence[int], places: Sequence[Place], inputs: Sequence[Value]
) -> list[Value]:
    """The array or tensor that each output is to be written to.

    Args:
        model: Compiled or imported.
        order: Port index of each output, in the partition's order.
        places: As in `SupportsBoundRuns.run_bound`.
        inputs: Of the run; memory that overlaps one of them is not written to.

    Returns:
        None for an output whose size the run decides and that has no place.
    """
    taken: list[Value] = [value for value in inputs if isinstance(value, np.ndarray)]
    tensors = [value for value in inputs if isinstance(value, OpenVINOTensor)]
    destinations: list[Value] = []
    for index, place in zip(order, places, strict=True):
        port = model.outputs.all[index]
        value = _destination(port, place)
        if isinstance(value, OpenVINOTensor):
            value = None if value in tensors else value
        elif value is not None and any(np.may_share_memory(value, other) for other in taken):
            value = np.empty_like(value) if port.is_static else None
        destinations.append(value)
        if isinstance(value, np.ndarray):
            taken.append(value)
        elif value is not None:
            tensors.append(value)
    return destinations


def _destination(port: Port, place: Place) -> Value:
    dtype = numpy_dtype(port.data_type)
    if isinstance(place, OpenVINOMemory):
        if not port.is_static or not port.names:
            return None
        return place.allocate(_sizes(port), dtype, zeros=False)
    fits = isinstance(place, np.ndarray | DeviceTensor) and place.dtype == dtype
    if fits and port.is_static:
        fits = tuple(place.shape) == _sizes(port)
    if isinstance(place, OpenVINOTensor):
        return place if fits and port.is_static and port.names else None
    if fits and isinstance(place, np.ndarray) and _is_plain(place) and place.flags.writeable:
        return place
    return np.empty(_sizes(port), dtype) if port.is_static else None


def _sizes(port: Port) -> tuple[int, ...]:
    """The shape of a static port; 0 for dimensions that are not known."""
    return tuple(size if isinstance(size, int) else 0 for size in port.shape or ())


def _is_plain(array: Array) -> bool:
    """Whether OpenVINO can read or write the memory as it is."""
    return array.flags.c_contiguous and array.flags.aligned


def _memory_of(array: Array) -> tuple[int, tuple[int, ...]]:
    """The memory as far as a tensor over it needs it; the element type is that of the port."""
    return array.__array_interface__["data"][0], array.shape
