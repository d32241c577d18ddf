"""One inference of a model imported through OpenVINO's C API, from and to numpy arrays.

Inputs and outputs stay where they are: nothing is copied but small inputs, which are written into
a request's own memory, and outputs, which OpenVINO overwrites with the next run.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.openvino.sdk import c_api
from ort_lite.ep import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.openvino.sdk.c_api import CApi
    from eps.openvino.sdk.runtime import Array
    from ort_lite.ep import Owned, Port

_DTYPES = {number: numpy_dtype(number) for number in c_api.DATA_TYPES.values()}
_NUMBERS = {
    _DTYPES[number]: c_api.ELEMENT_TYPES.index(name) for name, number in c_api.DATA_TYPES.items()
}


class CRequest:
    """An infer request of the C API."""

    def __init__(self, api: CApi, request: Owned, outputs: Sequence[Port]) -> None:
        """Take over the request of a model with these outputs."""
        self._api = api
        self._request = request
        self._tensors: list[Owned] = []
        self._ports = tuple(outputs)
        self._outputs: list[Array | None] | None = None

    def input_view(self, index: int, port: Port) -> Array:
        """See InferRequest."""
        return self._own(self._api.ov_infer_request_get_input_tensor_by_index, index, port)

    def set_input_zero_copy(self, index: int, value: Array) -> Array:
        """See InferRequest."""
        tensor = self._tensor_over(value)
        self._api.ov_infer_request_set_input_tensor_by_index(self._request, index, tensor)
        return value

    def set_output_zero_copy(self, index: int, value: Array) -> None:
        """See InferRequest."""
        tensor = self._tensor_over(value)
        self._api.ov_infer_request_set_output_tensor_by_index(self._request, index, tensor)

    def set_tensor(self, name: str, tensor: object) -> None:
        """See InferRequest; the C API serves the CPU alone, which has no tensors of its own."""
        raise AssertionError(f"{name}: {tensor!r} is a tensor of the extension")

    def infer(self) -> Sequence[Array]:
        """See InferRequest."""
        if self._outputs is None:
            self._outputs = self._find_outputs()
        self.compute()
        return [
            self.read_output(index) if own is None else own.copy()
            for index, own in enumerate(self._outputs)
        ]

    def compute(self) -> None:
        """See InferRequest."""
        self._api.ov_infer_request_infer(self._request)

    def _find_outputs(self) -> list[Array | None]:
        """The request's own memory of outputs whose size is known, which stays where it is."""
        get = self._api.ov_infer_request_get_output_tensor_by_index
        ports = enumerate(self._ports)
        return [self._own(get, index, port) if port.is_static else None for index, port in ports]

    def _tensor_over(self, value: Array) -> Owned:
        shape = c_api.Shape(value.ndim, (ctypes.c_int64 * value.ndim)(*value.shape))
        return self._api.create(
            self._api.ov_tensor_create_from_host_ptr,
            *(_NUMBERS[value.dtype], shape, _address(value)),
            free=self._api.ov_tensor_free,
        )

    def _own(self, get: Callable[..., Any], index: int, port: Port) -> Array:
        assert port.shape is not None, "asked for static ports alone"
        tensor = self._tensor(get, index)
        self._tensors.append(tensor)
        return self._view(tensor, _DTYPES[port.data_type], port.shape)

    def read_output(self, index: int) -> Array:
        """See InferRequest."""
        tensor = self._tensor(self._api.ov_infer_request_get_output_tensor_by_index, index)
        c_shape = c_api.Shape()
        self._api.ov_tensor_get_shape(tensor, c_shape)
        try:
            shape = [c_shape.dims[axis] for axis in range(c_shape.rank)]
        finally:
            self._api.ov_shape_free(c_shape)
        return self._view(tensor, _DTYPES[self._ports[index].data_type], shape).copy()

    def _tensor(self, get: Callable[..., Any], index: int) -> Owned:
        return self._api.create(get, self._request, index, free=self._api.ov_tensor_free)

    def _view(self, tensor: Owned, dtype: np.dtype[Any], shape: Sequence[Any]) -> Array:
        """A tensor's memory as an array, which must not outlive the tensor."""
        size = dtype.itemsize * prod(shape)
        if not size:
            return np.empty(shape, dtype)
        place = ctypes.c_void_p()
        self._api.ov_tensor_data(tensor, place)
        assert place.value is not None, "a tensor with a size has memory"
        memory = (ctypes.c_char * size).from_address(place.value)
        return np.frombuffer(memory, dtype).reshape(shape)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
