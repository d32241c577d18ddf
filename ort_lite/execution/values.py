"""OrtValue: a value at the border of a session, with onnxruntime's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ort_lite.model.tensor_values import numpy_dtype, onnx_data_type, to_numpy, type_string
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Tensor

    Array = np.ndarray[Any, np.dtype[Any]]


class OrtValue:
    """A tensor in host memory; `numpy()` shares that memory."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> Self:
        """A value that shares the array's memory.

        Raises:
            InvalidArgument: A device other than the host.
        """
        require_host(device_type, device_id, vendor_id)
        return cls(numpy_obj)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,  # noqa: ANN401 - a numpy type or an ONNX number, as in onnxruntime
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> Self:
        """A value of zeros."""
        require_host(device_type, device_id, vendor_id)
        known = isinstance(element_type, int)
        dtype = numpy_dtype(element_type) if known else np.dtype(element_type)
        return cls(np.zeros(tuple(shape), dtype))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> Self:
        """A value that reads the array's memory as another type of the same width.

        Raises:
            InvalidArgument: ONNX has no such type, or its elements have another width.
        """
        dtype = numpy_dtype(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize or dtype.hasobject or data.dtype.hasobject:
            raise InvalidArgument(f"{data.dtype} elements cannot be read as {dtype}")
        return cls(data.view(dtype))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> Self:  # noqa: ANN401 - whatever has the protocol
        """A value that shares the memory of a tensor in host memory, of any library.

        Raises:
            TypeError: It has no `__dlpack__`.
            BufferError: Its memory is not the host's.
        """
        if not hasattr(data, "__dlpack__"):
            raise TypeError(f"{type(data).__name__} has no __dlpack__")
        return cls(np.from_dlpack(data))

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> Self:
        """The value of a constant."""
        return cls(to_numpy(tensor))

    def numpy(self) -> Array:
        """The array itself."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: ANN401, FBT001 - numpy's protocol
        """For numpy."""
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack__(self, **wanted: Any) -> Any:  # noqa: ANN401 - a capsule, and the protocol's keywords
        """The memory, for another library (DLPack)."""
        return self._array.__dlpack__(**wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Host memory, in DLPack's numbers."""
        kind, index = self._array.__dlpack_device__()
        return int(kind), int(index)

    def shape(self) -> list[int]:
        """Sizes."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """`tensor(float)` and the like."""
        return type_string(self._array.dtype)

    def element_type(self) -> int:
        """TensorProto.DataType."""
        return int(onnx_data_type(self._array.dtype))

    def device_name(self) -> str:
        """Where the memory is."""
        return "cpu"

    def is_tensor(self) -> bool:
        """Whether it is a tensor, and not the sequence or map that a run gave."""
        return isinstance(self._array, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Always false."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence, which a run gave."""
        return isinstance(self._array, list)

    def has_value(self) -> bool:
        """Always true."""
        return True

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """Bytes."""
        return int(self._array.nbytes)

    def update_inplace(self, data: Array | OrtValue) -> None:
        """Overwrite the elements; shape and type must agree.

        Raises:
            InvalidArgument: They do not.
            TypeError: Neither an array nor an OrtValue.
        """
        numpy_arr = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(numpy_arr, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        if numpy_arr.shape != self._array.shape or numpy_arr.dtype != self._array.dtype:
            raise InvalidArgument(
                f"update with {type_string(numpy_arr.dtype)}{list(numpy_arr.shape)}, expected "
                f"{self.data_type()}{self.shape()}"
            )
        self._array[...] = numpy_arr


def require_host(device_type: str, device_id: int, vendor_id: int) -> None:
    """Refuse every device but the host.

    Raises:
        InvalidArgument: It is another one.
    """
    if device_type.lower() != "cpu" or device_id != 0 or vendor_id not in (-1, 0):
        raise InvalidArgument(f"OrtValue lives in host memory, not on {device_type}:{device_id}")
