"""Memory of tensors to and from other libraries in one process: DLPack.

Structures as in DLPack 1.1's dlpack.h; capsules as in "Python Specification for DLPack".
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.status import BindingError

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]
    Capsule = Any

_UINT, _BFLOAT, _BOOL = 1, 4, 6
"""Type codes: DLDataTypeCode of dlpack.h."""


class DLTensor(ctypes.Structure):
    """DLTensor, at the beginning of DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_NAME = b"dltensor"
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def to_capsule(array: Array) -> Capsule:
    """A capsule over the memory of `array`, which it keeps alive.

    As in onnxruntime, a bool goes as uint8. An array that may not be written goes as a copy,
    since this form of DLPack cannot say so.

    Raises:
        BufferError: DLPack has no such type, text for example.
    """
    if not array.flags.writeable:
        array = array.copy()
    if array.dtype == np.bool_:
        return array.view(np.uint8).__dlpack__()
    if array.dtype.name != "bfloat16":
        return array.__dlpack__()
    capsule = array.view(np.uint16).__dlpack__()  # numpy has no bfloat16 of its own
    read_tensor(capsule).code = _BFLOAT
    return capsule


def from_capsule(capsule: Capsule, *, is_bool: bool) -> Array:
    """An array over the memory of a capsule, which cannot be used again.

    Args:
        capsule: A "dltensor" of contiguous elements in host memory.
        is_bool: Whether elements of uint8 are bools.

    Raises:
        TypeError: It is no such capsule, or one that was used.
        BindingError: It is not contiguous, or its memory is not the host's.
    """
    tensor = read_tensor(capsule)
    if tensor.device_type != 1:
        raise BindingError(f"DLPack device type {tensor.device_type} is not host memory (1)")
    bfloat, is_bool = tensor.code == _BFLOAT, is_bool or tensor.code == _BOOL
    if bfloat:
        tensor.code = _UINT
    array = np.from_dlpack(_Holder(capsule))
    if not array.flags.c_contiguous:
        raise BindingError("ORT only supports contiguous tensor for now.")
    array = _as_writable(array)
    if bfloat and array.dtype == np.uint16:
        from ml_dtypes import bfloat16  # noqa: PLC0415 - lazy: rare

        return array.view(bfloat16)
    return array.view(np.bool_) if is_bool and array.dtype == np.uint8 else array


def is_dlpack_uint8_tensor(capsule: Capsule, /) -> bool:
    """Whether a capsule has elements of uint8, which bools become.

    Raises:
        TypeError: It is not a "dltensor" capsule.
    """
    tensor = read_tensor(capsule)
    return (tensor.code, tensor.bits) == (_UINT, 8)


class _Holder:
    """Holder of a capsule that `numpy.from_dlpack` accepts."""

    def __init__(self, capsule: Capsule) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> Capsule:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _as_writable(array: Array) -> Array:
    """The same memory as an array that may be written: numpy takes capsules for read-only."""
    if array.flags.writeable or not array.size:
        return array
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array  # type: ignore[attr-defined] # alive as long as the memory is used
    return np.ndarray(array.shape, array.dtype, memoryview(memory).cast("B"))


def read_tensor(capsule: Capsule) -> DLTensor:
    """The structure in a capsule, in place."""
    if not _is_valid(capsule, _NAME):
        raise TypeError("from_dlpack expected a valid DLPack capsule named 'dltensor'")
    return DLTensor.from_address(_pointer(capsule, _NAME))
