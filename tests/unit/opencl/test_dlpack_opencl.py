"""OpenCL memory shared by DLPack: the structure by the header, lifetimes, refusals."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest
from small_models import feed, mlp

import ort_lite as ort
from eps.opencl import FACTORY

pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
X = np.random.default_rng(7).standard_normal((3, 4)).astype(np.float32)
TYPES = {
    "float32": (2, 32),
    "float16": (2, 16),
    "float64": (2, 64),
    "int64": (0, 64),
    "int8": (0, 8),
    "uint16": (1, 16),
    "bool": (1, 8),
    "bfloat16": (4, 16),
}
"""DLDataTypeCode and bits of dlpack.h."""


class Tensor(ctypes.Structure):
    """DLManagedTensor of DLPack 1.1's dlpack.h, written from the header for this test."""

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
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    )


def tensor_in(capsule: Any) -> Tensor:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    return Tensor.from_address(pointer(capsule, b"dltensor"))


def on_device(array: np.ndarray[Any, Any] = X) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array, "opencl", 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_structure_is_that_of_the_header(dtype: str) -> None:
    if dtype == "bfloat16":
        dtype_of: Any = pytest.importorskip("ml_dtypes").bfloat16
    else:
        dtype_of = dtype
    value = on_device(X.astype(dtype_of))
    capsule = value.__dlpack__()
    tensor = tensor_in(capsule)
    assert (tensor.device_type, tensor.device_id) == value.__dlpack_device__() == (4, 0)
    assert tensor.data == value.data_ptr(), "a cl_mem"
    assert (tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset) == (*TYPES[dtype], 1, 0)
    assert [tensor.shape[i] for i in range(tensor.ndim)] == [3, 4]
    shared = ort.OrtValue.from_dlpack(value)
    assert (shared.data_type(), shared.shape()) == (value.data_type(), [3, 4])
    np.testing.assert_array_equal(shared.numpy(), value.numpy())


def test_a_write_is_seen_on_both_sides_and_a_session_reads_it() -> None:
    x = feed(mlp())["x"]
    value = on_device(np.zeros_like(x))
    shared = ort.OrtValue.from_dlpack(value.to_dlpack())
    assert shared.data_ptr() == value.data_ptr()
    value.update_inplace(x)
    session = ort.InferenceSession(mlp().SerializeToString(), providers=["OpenCLExecutionProvider"])
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", shared)
    binding.bind_output("y", "opencl", 0)
    before = shared.held_value().memory.copy_counts()
    session.run_with_iobinding(binding)
    assert shared.held_value().memory.copy_counts() == before
    (y,) = binding.get_outputs()
    (expected,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(ort.OrtValue.from_dlpack(y).numpy(), expected)


def test_memory_lives_as_long_as_what_was_made_of_it() -> None:
    gc.collect()
    value = on_device()
    memory = value.held_value().memory
    live = memory.context.allocated.live
    shared = ort.OrtValue.from_dlpack(value)
    del value
    gc.collect()
    assert memory.context.allocated.live == live
    np.testing.assert_array_equal(shared.numpy(), X)
    del shared
    gc.collect()
    assert memory.context.allocated.live == live - X.nbytes


def test_a_capsule_that_nobody_uses_gives_the_memory_back() -> None:
    gc.collect()
    value = on_device()
    memory = value.held_value().memory
    live = memory.context.allocated.live
    capsule = value.__dlpack__()
    del value
    gc.collect()
    assert memory.context.allocated.live == live
    del capsule
    gc.collect()
    assert memory.context.allocated.live == live - X.nbytes


def test_a_tensor_may_begin_inside_a_buffer() -> None:
    value = on_device(np.arange(1024, dtype=np.float32))
    capsule = value.__dlpack__()
    tensor = tensor_in(capsule)
    tensor.byte_offset, tensor.shape[0] = 2048, 512
    part = ort.OrtValue.from_dlpack(capsule)
    np.testing.assert_array_equal(part.numpy(), np.arange(512, 1024, dtype=np.float32))


def test_a_capsule_is_used_once() -> None:
    capsule = on_device().__dlpack__()
    ort.OrtValue.from_dlpack(capsule)
    with pytest.raises(TypeError, match="expected a valid DLPack capsule"):
        ort.OrtValue.from_dlpack(capsule)


def test_what_cannot_be_shared_is_refused() -> None:
    capsule = on_device().__dlpack__()
    tensor_in(capsule).strides = (ctypes.c_int64 * 2)(8, 1)
    with pytest.raises(ort.InvalidArgument, match="only supports contiguous"):
        ort.OrtValue.from_dlpack(capsule)
    capsule = on_device().__dlpack__()
    tensor_in(capsule).lanes = 4
    with pytest.raises(ort.InvalidArgument, match="DLPack type code 2 of 32 bits and 4 lanes"):
        ort.OrtValue.from_dlpack(capsule)
    capsule = on_device().__dlpack__()
    tensor_in(capsule).shape[0] = 1 << 20
    with pytest.raises(ort.InvalidArgument, match="needs 16777216 bytes, and the buffer"):
        ort.OrtValue.from_dlpack(capsule)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(on_device())  # type: ignore[arg-type] # what numpy says to memory of OpenCL
    released = on_device()
    released.held_value().release()
    with pytest.raises(ort.InvalidArgument, match="used after its release"):
        released.__dlpack__()
