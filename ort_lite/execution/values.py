"""OrtValue: a value at the border of a session, with onnxruntime's names."""

from __future__ import annotations

import ctypes
import sys
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ort_lite.ep.device_tensors import DeviceTensor
from ort_lite.execution.device_values import find_memory
from ort_lite.model.tensor_values import numpy_dtype, onnx_data_type, to_numpy, type_string
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Tensor
    from ort_lite.ep.device_tensors import DeviceMemory
    from ort_lite.ep.interface import Value
    from ort_lite.execution.sparse_tensor import SparseTensor
    from ort_lite.execution.sparse_values import SparseTensor as SparseValue
    from ort_lite.providers.memory_info import OrtDevice, OrtMemoryInfo

    Array = np.ndarray[Any, np.dtype[Any]]


class _Given:
    """A value on its way into an OrtValue."""

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    def held_value(self) -> Value:
        """The array, list or dictionary that this holds."""
        return self._value


class OrtValue:
    """A tensor in memory of the host or a device, or another value that a run gave.

    That may be a sparse tensor, a sequence or a map.

    It has the methods of both onnxruntime's class and the binding's under it: `_ortvalue` is the
    value itself.
    """

    def __init__(
        self,
        ortvalue: OrtValue | _Given,
        numpy_obj: Array | None = None,  # noqa: ARG002 - onnxruntime's; the value holds its array
        session: object = None,  # noqa: ARG002 - onnxruntime's; no value is bound to a session
    ) -> None:
        """Another name for the same value, as onnxruntime makes of the binding's.

        Raises:
            ValueError: `ortvalue` is none; `ortvalue_from_numpy` makes one of an array.
        """
        if not isinstance(ortvalue, OrtValue | _Given):
            raise ValueError(  # noqa: TRY004 - onnxruntime's class
                "`Provided ortvalue` needs to be of type "
                "`onnxruntime.capi.onnxruntime_pybind11_state.OrtValue`"
            )
        self._value = ortvalue.held_value()

    @classmethod
    def holding(cls, value: Value) -> Self:
        """One of a value as sessions take and give them, without a copy."""
        return cls(_Given(value))

    @classmethod
    def ortvalue_from_numpy(
        cls,
        numpy_obj: Array,
        /,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> Self:
        """A copy on a device; on the host a value that shares the array's memory.

        That is so if the array is contiguous.

        Raises:
            BindingError: There is no such device, or no room there; text, or no array. A
                RuntimeError, too.
            EPFail: The device cannot be opened, or failed.
        """
        if not isinstance(numpy_obj, np.ndarray):
            raise BindingError(f"{_NO_STRINGS}, got {type(numpy_obj).__name__}")
        _require_numbers(numpy_obj.dtype)
        memory = find_memory(device_type, device_id, vendor_id)
        if memory is not None:
            tensor = memory.allocate(numpy_obj.shape, numpy_obj.dtype, zeros=False)
            tensor.write(np.ascontiguousarray(numpy_obj))
            return cls.holding(tensor)
        return cls.holding(numpy_obj if numpy_obj.flags.c_contiguous else numpy_obj.copy("C"))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,  # noqa: ANN401 - a numpy type or an ONNX number, as in onnxruntime
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> Self:
        """A value of zeros; `memory_info` wins over the three arguments before it.

        Raises:
            BindingError: There is no such device, text, a negative dimension, or more
                elements than there is memory for.
            EPFail: The device cannot be opened, or failed.
        """
        at = device_type if memory_info is None else memory_info
        return cls.make(shape, element_type, find_memory(at, device_id, vendor_id))

    @classmethod
    def make(
        cls,
        shape: Sequence[int],
        element_type: Any,  # noqa: ANN401 - as above
        memory: DeviceMemory | None,
    ) -> Self:
        """A value of zeros in the memory of a device, or of the host where that is None.

        Raises:
            BindingError: Text, a negative dimension, or more elements than there is room for.
            EPFail: The device failed.
        """
        dtype = element_dtype(element_type)
        _require_numbers(dtype)
        dims = checked_shape(shape, dtype)
        if memory is not None:
            return cls.holding(memory.allocate(dims, dtype))
        try:
            return cls.holding(np.zeros(dims, dtype))
        except MemoryError as exc:
            raise BindingError(f"out of memory for {dtype}{list(dims)}: {exc}") from exc

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @classmethod
    def ortvalue_from_shape_and_type_for_memory_info(
        cls,
        shape: Sequence[int],
        element_type: Any,  # noqa: ANN401 - as above
        memory_info: OrtMemoryInfo,
        /,
    ) -> Self:
        """As `ortvalue_from_shape_and_type`, with onnxruntime's name in its binding."""
        return cls.ortvalue_from_shape_and_type(shape, element_type, memory_info=memory_info)

    ortvalue_from_shape_and_onnx_type_for_memory_info = ortvalue_from_shape_and_type_for_memory_info

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> Self:
        """A value that reads the array's memory as another type of the same width.

        Raises:
            InvalidArgument: ONNX has no such type.
            BindingError: Its elements have another width, or are text.
        """
        dtype = numpy_dtype(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize or dtype.hasobject or data.dtype.hasobject:
            raise BindingError(f"{data.dtype} elements cannot be read as {dtype}")
        return cls.holding(data.view(dtype))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor | SparseValue, /) -> Self:
        """A value that shares the memory of a sparse tensor."""
        return cls.holding(sparse_tensor._get_c_tensor())  # noqa: SLF001 - onnxruntime's name

    @classmethod
    def from_dlpack(cls, data: Any, /, is_bool_tensor: bool = False) -> Self:  # noqa: ANN401, FBT001, FBT002 - onnxruntime's signature
        """A value that shares the memory of a contiguous tensor of any library.

        It is in host memory, or on an OpenCL device that an execution provider reaches.

        Args:
            data: Something with `__dlpack__`, or a capsule.
            is_bool_tensor: Whether the elements, of uint8, are bools; seen from `data` where it
                has a dtype.

        Raises:
            TypeError: It is neither.
            BindingError: It is not contiguous, or in memory that nothing here reaches; a
                RuntimeError, too.
        """
        from ort_lite.execution.dlpack import from_capsule, read_tensor  # noqa: PLC0415 - lazy: rare

        if isinstance(data, OrtValue):
            is_bool_tensor = data.data_type() == "tensor(bool)"
        elif hasattr(data, "dtype"):
            name = getattr(data.dtype, "name", str(data.dtype))
            is_bool_tensor = name in ("bool", "bool_", "torch.bool")
        capsule = data.__dlpack__() if hasattr(data, "__dlpack__") else data
        if read_tensor(capsule).device_type == OPENCL:
            from ort_lite.execution.device_values import adopt  # noqa: PLC0415 - lazy: rare
            from ort_lite.execution.dlpack_device import import_tensor  # noqa: PLC0415 - lazy: rare

            return cls.holding(adopt(*import_tensor(capsule, is_bool=is_bool_tensor)))
        return cls.holding(from_capsule(capsule, is_bool=is_bool_tensor))

    @classmethod
    def ortvalue_from_opencl(
        cls,
        data: object,
        shape: Sequence[int] | None = None,
        element_type: Any = None,  # noqa: ANN401 - a numpy type or an ONNX number
    ) -> Self:
        """A value in the memory of a pyopencl object, without a copy.

        Args:
            data: A `pyopencl.array.Array`, or a `pyopencl.Buffer`, which needs the other two.
            shape: Sizes of dimensions; None for those of the array.
            element_type: A numpy type or a TensorProto.DataType; None for that of the array.

        Raises:
            BindingError: It is another object, not contiguous, or too small; a RuntimeError, too.
            EPFail: The driver failed.
        """
        from ort_lite.execution.device_values import adopt  # noqa: PLC0415 - lazy: rare

        dtype = None if element_type is None else element_dtype(element_type)
        dims = None if shape is None else checked_shape(shape, dtype or np.dtype(np.uint8))
        return cls.holding(adopt(data, dims, dtype))

    def opencl(self, queue: Any = None) -> Any:  # noqa: ANN401 - objects of pyopencl
        """The value as a `pyopencl.array.Array` over the same memory, without a copy.

        Args:
            queue: The `pyopencl.CommandQueue` of the array; None for an array without one.

        Raises:
            BindingError: The value is not in the memory of an OpenCL device.
        """
        from ort_lite.execution.device_values import lend  # noqa: PLC0415 - lazy: rare

        if not isinstance(self._value, DeviceTensor):
            raise BindingError(
                f"a value in memory of {self.device_name()} is not in that of an OpenCL device; "
                "see OrtValue.ortvalue_from_numpy(array, 'opencl', 0)"
            )
        return lend(self._value, queue)

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> Self:
        """The value of a constant."""
        return cls.holding(to_numpy(tensor))

    def held_value(self) -> Value:
        """The value as sessions accept it."""
        return self._value

    @property
    def _ortvalue(self) -> Self:
        return self

    def _get_c_value(self) -> Self:
        return self

    def _is_webgpu_buffer(self) -> bool:
        return False

    def numpy(self) -> Array:
        """The array itself; of a tensor on a device a copy.

        Raises:
            BindingError: The value is not a tensor; a RuntimeError, too.
            EPFail: The device failed.
        """
        if isinstance(self._value, DeviceTensor):
            return self._value.numpy()
        return self._array("Only OrtValues that are Tensors are convertible to Numpy objects")

    def as_sparse_tensor(self) -> SparseTensor:
        """The sparse tensor itself.

        Raises:
            BindingError: The value is none; a RuntimeError, too.
        """
        from ort_lite.execution.sparse_tensor import SparseTensor  # noqa: PLC0415 - lazy: rare
        from ort_lite.execution.sparse_values import SparseTensor as SparseValue  # noqa: PLC0415 - lazy: rare

        if not isinstance(self._value, SparseValue):
            raise BindingError(
                "This OrtValue does not contain SparseTensor. Check data_type() value."
            )
        return SparseTensor(self._value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: ANN401, FBT001 - numpy's protocol
        """The tensor as a numpy array; numpy calls this."""
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None) -> Any:  # noqa: ANN401 - a capsule, and the protocol's keyword
        """The memory, for another library: a "dltensor" capsule; bools go as uint8."""
        return self.to_dlpack()

    def to_dlpack(self) -> Any:  # noqa: ANN401 - a capsule
        """The tensor as a DLPack capsule, as `__dlpack__` returns it."""
        from ort_lite.execution.dlpack import to_capsule  # noqa: PLC0415 - lazy: rare

        if not isinstance(self._value, DeviceTensor):
            return to_capsule(self._array(_TENSORS_ONLY))
        view = self._value.host_view()
        if view is not None:
            return to_capsule(view)
        from ort_lite.execution.dlpack_device import export_tensor  # noqa: PLC0415 - lazy: rare

        return export_tensor(self._value)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device in DLPack's numbers: (1, 0) for host memory, (4, n) for OpenCL device n.

        Raises:
            BindingError: DLPack cannot describe the memory.
        """
        if isinstance(self._value, DeviceTensor) and self._value.host_view() is None:
            return self._value.dlpack_device()
        return 1, 0

    def shape(self) -> list[int]:
        """Sizes; of the dense form, where the value is a sparse tensor."""
        if self.is_sparse_tensor():
            return self.as_sparse_tensor().dense_shape()
        return list(self.tensor().shape)

    def data_type(self) -> str:
        """`tensor(float)`, `sparse_tensor(float)`, `seq(tensor(float))` and the like."""
        if self.is_sparse_tensor():
            return self.as_sparse_tensor().data_type()
        if isinstance(self._value, list):
            return f"seq({type_string(np.asarray(self._first()).dtype)})"
        return type_string(self.tensor().dtype)

    def element_type(self) -> int:
        """TensorProto.DataType of the elements, of the first tensor of a sequence."""
        if self.is_sparse_tensor():
            return int(onnx_data_type(self.as_sparse_tensor().values().dtype))
        if isinstance(self._value, list):
            return int(onnx_data_type(np.asarray(self._first()).dtype))
        return int(onnx_data_type(self.tensor().dtype))

    def device_name(self) -> str:
        """Kind of device whose memory has the value: "cpu", "opencl", "gpu" or "npu"."""
        return self._value.memory.place.name if isinstance(self._value, DeviceTensor) else "cpu"

    def is_tensor(self) -> bool:
        """Whether it is a tensor, and not the sequence or map that a run gave."""
        return isinstance(self._value, np.ndarray | DeviceTensor)

    def is_sparse_tensor(self) -> bool:
        """Whether it is a sparse tensor."""
        if isinstance(self._value, np.ndarray | DeviceTensor | list | dict):
            return False
        from ort_lite.execution.sparse_values import SparseTensor as SparseValue  # noqa: PLC0415 - lazy: rare

        return isinstance(self._value, SparseValue)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence, which a run gave."""
        return isinstance(self._value, list)

    def has_value(self) -> bool:
        """False for an optional output without a value."""
        return self._value is not None

    def data_ptr(self) -> int:
        """Address of the first element; on a device the SDK's handle of the memory."""
        if isinstance(self._value, DeviceTensor):
            return self._value.data_ptr()
        return int(self._array(_TENSORS_ONLY).ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """Size of the tensor's elements in bytes."""
        return int(self.tensor().nbytes)

    def update_inplace(self, data: Array | OrtValue) -> None:
        """Overwrite the elements; the shape must agree, the type where `data` is an OrtValue.

        Raises:
            BindingError: They do not agree; a RuntimeError, too.
            EPFail: The device failed.
            TypeError: Neither an array nor an OrtValue.
        """
        source = data.tensor() if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray | DeviceTensor):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        from ort_lite.execution.fill_place import fill_place  # noqa: PLC0415 - lazy: rare

        fill_place(self.require_like(source), source, "the update")

    def require_like(self, source: Array | DeviceTensor) -> Array | DeviceTensor:
        """The tensor, to which one of the same type and shape is going to be copied.

        Raises:
            BindingError: They do not agree, or it is not a tensor; a RuntimeError, too.
        """
        place = self.tensor()
        if source.shape != place.shape or source.dtype != place.dtype:
            raise BindingError(
                f"update with {type_string(source.dtype)}{list(source.shape)}, expected "
                f"{self.data_type()}{self.shape()}"
            )
        return place

    def tensor(self) -> Array | DeviceTensor:
        """The tensor itself, in host memory or on a device; BindingError for another value."""
        if isinstance(self._value, DeviceTensor):
            return self._value
        return self._array(_TENSORS_ONLY)

    def _array(self, refusal: str) -> Array:
        if not isinstance(self._value, np.ndarray):
            raise BindingError(f"{refusal}; this is a {type(self._value).__name__}")
        return self._value

    def _first(self) -> Value:
        if not self._value:
            raise BindingError("an empty sequence does not say what its elements are")
        return self._value[0]


OPENCL = 4
"""kDLOpenCL of dlpack.h."""
_TENSORS_ONLY = "Only OrtValues that are Tensors are currently supported"
_NO_STRINGS = "Creation of OrtValues is currently only supported from non-string numpy arrays"


def element_dtype(element_type: Any) -> np.dtype[Any]:  # noqa: ANN401 - a numpy type or an ONNX number
    """The dtype that a user means by a numpy type or a TensorProto.DataType.

    Raises:
        BindingError: There is none; a RuntimeError, too.
        InvalidArgument: ONNX does not define that number.
    """
    if isinstance(element_type, int):
        return numpy_dtype(element_type)
    try:
        dtype: np.dtype[Any] = np.dtype(element_type)
    except TypeError as exc:
        raise BindingError(f"Not a valid numpy type: {exc}") from exc
    return dtype


def checked_shape(shape: Sequence[int], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """`shape` as a tuple that an array may have.

    Raises:
        BindingError: A negative dimension, or more bytes than can be addressed.
    """
    dims = tuple(map(index, shape))
    if any(dim < 0 for dim in dims):
        raise BindingError(f"Tensor shape.Size() must be >= 0, got the shape {list(dims)}")
    if prod((max(dim, 1) for dim in dims), start=dtype.itemsize) > sys.maxsize:
        raise BindingError(f"no memory has room for {dtype}{list(dims)}")
    return dims


def _require_numbers(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "T" or dtype.type in (np.object_, np.str_, np.bytes_, np.void):
        raise BindingError(f"{_NO_STRINGS}, got {dtype}")


NO_STRINGS = "Only binding non-string Tensors is currently supported"


def require_bindable(dtype: np.dtype[Any]) -> None:
    """Refuse an element type that cannot be bound to memory.

    Raises:
        BindingError: Text or objects; a RuntimeError, too.
    """
    if dtype.kind == "T" or dtype.type in (np.object_, np.str_, np.bytes_, np.void):
        raise BindingError(f"{NO_STRINGS}, got {dtype}")


def array_at(address: int, element_type: Any, shape: Sequence[int]) -> Array:  # noqa: ANN401 - a numpy type or an ONNX number
    """A numpy array over memory that the caller owns.

    Raises:
        BindingError: Text, a negative or impossible size, or no address; a RuntimeError, too.
    """
    dtype = element_dtype(element_type)
    require_bindable(dtype)
    dims = checked_shape(shape, dtype)
    size = prod(dims, start=dtype.itemsize)
    if size and not address:  # numpy would make new memory of it
        raise BindingError(f"address 0 cannot be bound as {dtype}{dims}: expected one of memory")
    buffer = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
    return np.ndarray(dims, dtype, buffer)
