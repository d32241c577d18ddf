"""Memory of devices to and from other libraries in one process, as DLPack capsules.

Structures as in DLPack 1.1's dlpack.h: `data` is a cl_mem for kDLOpenCL, and `byte_offset` says
where the tensor begins in it. DLPack has no events for OpenCL: whoever makes a capsule has
finished the work on it.
"""

from __future__ import annotations

import ctypes
from ctypes import PYFUNCTYPE, c_char_p, c_int, c_void_p, py_object
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.ep.device_tensors import LentMemory
from ort_lite.execution.dlpack import DLTensor, read_tensor
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from ort_lite.ep.device_tensors import DeviceTensor

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5}
"""DLDataTypeCode of dlpack.h by numpy's kind; a bool goes as uint8, as onnxruntime's do."""
_BFLOAT = 4
_USED = b"used_dltensor"
_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", DLTensor), ("context", c_void_p), ("deleter", _DELETER))


_rename = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))


def export_tensor(tensor: DeviceTensor) -> Any:  # noqa: ANN401 - a capsule
    """A "dltensor" capsule over a tensor's memory, which lives as long as what is made of it.

    The capsule is numpy's, of an array at the address that the handle is, which nothing reads:
    its destructor is in C, and may run while an exception is on its way.

    Raises:
        BindingError: DLPack cannot describe the memory, or the tensor was released.
        EPFail: The device failed.
    """
    device_type, device_id = tensor.dlpack_device()
    tensor.wait()
    handle = tensor.data_ptr()
    is_bfloat, kind = tensor.dtype.name == "bfloat16", tensor.dtype.kind
    if not is_bfloat and kind not in (*_CODES, "b"):
        raise BindingError(f"DLPack has no element type for {tensor.dtype}")
    memory = (ctypes.c_char * tensor.nbytes).from_address(handle)
    memory.owner = tensor  # type: ignore[attr-defined] # alive as long as the memory is used
    dtype = np.uint16 if is_bfloat else np.uint8 if kind == "b" else tensor.dtype
    capsule = np.ndarray(tensor.shape, dtype, memoryview(memory).cast("B")).__dlpack__()
    described = read_tensor(capsule)
    described.data, described.byte_offset = handle, 0
    described.device_type, described.device_id = device_type, device_id
    if is_bfloat:
        described.code = _BFLOAT
    return capsule


class _Imported:
    """The tensor of a capsule, given back to its maker with the last reference."""

    def __init__(self, managed: _Managed) -> None:
        self._managed = managed

    def __del__(self) -> None:
        """Call the deleter, if the maker has one."""
        if self._managed.deleter:
            self._managed.deleter(ctypes.addressof(self._managed))


def import_tensor(capsule: Any, *, is_bool: bool) -> tuple[LentMemory, list[int], np.dtype[Any]]:  # noqa: ANN401 - a capsule
    """Memory of a device, shape and type of a capsule, which cannot be used again.

    Args:
        capsule: A "dltensor" of contiguous elements.
        is_bool: Whether elements of uint8 are bools.

    Raises:
        BindingError: It is not contiguous, or of a type that numpy does not have.
    """
    tensor = read_tensor(capsule)
    shape = [tensor.shape[axis] for axis in range(tensor.ndim)]
    strides = [tensor.strides[axis] for axis in range(tensor.ndim)] if tensor.strides else None
    if strides is not None and not _is_contiguous(shape, strides):
        raise BindingError("ORT only supports contiguous tensor for now.")
    dtype = _dtype_of(tensor, is_bool=is_bool)
    managed = _Managed.from_address(ctypes.addressof(tensor))
    _rename(capsule, _USED)
    memory = LentMemory(
        device_type=tensor.device_type,
        int_ptr=tensor.data or 0,
        offset=tensor.byte_offset,
        owner=_Imported(managed),
    )
    return memory, shape, dtype


def _dtype_of(tensor: DLTensor, *, is_bool: bool) -> np.dtype[Any]:
    if tensor.lanes == 1 and tensor.code == _BFLOAT and tensor.bits == 16:
        from ml_dtypes import bfloat16  # noqa: PLC0415 - lazy: rare

        dtype: np.dtype[Any] = np.dtype(bfloat16)
        return dtype
    kinds = {code: kind for kind, code in _CODES.items()}
    if tensor.code == 6 or (is_bool and (tensor.code, tensor.bits) == (1, 8)):
        return np.dtype(np.bool_)
    kind = kinds.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits not in (8, 16, 32, 64, 128):
        raise BindingError(
            f"DLPack type code {tensor.code} of {tensor.bits} bits and {tensor.lanes} lanes is not "
            "an element type of ONNX"
        )
    return np.dtype(f"{kind}{tensor.bits // 8}")


def _is_contiguous(shape: list[int], strides: list[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
