"""DLPack capsules and vectors of values, as onnxruntime's binding has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto
from onnxruntime.capi import onnxruntime_pybind11_state as theirs

import ort_lite as ort
from ort_lite.capi import onnxruntime_pybind11_state as ours

BOTH = pytest.mark.parametrize("binding", [ours, theirs], ids=["ort_lite", "onnxruntime"])
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def value(binding: Any, array: Any) -> Any:
    return binding.OrtValue.ortvalue_from_numpy(array, binding.OrtDevice(0, 0, 0))


@BOTH
def test_a_capsule_goes_there_and_back_without_a_copy(binding: Any) -> None:
    source = X.copy()
    there = binding.OrtValue.from_dlpack(value(binding, source).to_dlpack(), is_bool_tensor=False)
    there.update_inplace(X + 1)
    np.testing.assert_array_equal(source, X + 1)
    capsule = there.__dlpack__(stream=None)
    assert not binding.is_dlpack_uint8_tensor(capsule)
    with pytest.raises(TypeError):
        binding.is_dlpack_uint8_tensor(X)


@BOTH
def test_bools_go_as_bytes(binding: Any) -> None:
    flags = value(binding, np.array([True, False]))
    assert binding.is_dlpack_uint8_tensor(flags.to_dlpack())
    kinds = [
        binding.OrtValue.from_dlpack(flags.to_dlpack(), is_bool_tensor=is_bool).data_type()
        for is_bool in (False, True)
    ]
    assert kinds == ["tensor(uint8)", "tensor(bool)"]
    outer = ort if binding is ours else onnxruntime
    kept = outer.OrtValue.from_dlpack(outer.OrtValue.ortvalue_from_numpy(np.array([True])))
    assert kept.data_type() == "tensor(bool)"


@BOTH
def test_bfloat16_goes_there_and_back(binding: Any) -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    given = binding.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    there = binding.OrtValue.from_dlpack(given.to_dlpack(), is_bool_tensor=False)
    assert there.data_type() == "tensor(bfloat16)"
    assert there.data_ptr() == bits.ctypes.data


@BOTH
def test_a_capsule_is_used_once(binding: Any) -> None:
    capsule = value(binding, X).to_dlpack()
    binding.OrtValue.from_dlpack(capsule, is_bool_tensor=False)
    for used in (capsule, 3):
        with pytest.raises(TypeError, match="expected a valid DLPack capsule named 'dltensor'"):
            binding.OrtValue.from_dlpack(used, is_bool_tensor=False)


@BOTH
def test_elements_in_another_order_are_refused(binding: Any) -> None:
    with pytest.raises(RuntimeError, match="ORT only supports contiguous tensor for now"):
        binding.OrtValue.from_dlpack(X.copy().T.__dlpack__(), is_bool_tensor=False)


@BOTH
def test_a_vector_grows_and_gives_what_is_in_it(binding: Any) -> None:
    vector, flags = binding.OrtValueVector(), value(binding, np.array([True, False]))
    assert not vector
    vector.reserve(4)
    vector.push_back(value(binding, X.copy()))
    vector.push_back(flags.to_dlpack(), is_bool_tensor=True)
    vector.push_back(flags.to_dlpack())
    vector.shrink_to_fit()
    assert [item.shape() for item in vector] == [[2, 3], [2], [2]]
    assert (vector.bool_tensor_indices(), vector.element_type_at(1)) == ([1], TensorProto.BOOL)
    shapes = vector.to_dlpacks(
        lambda capsule: binding.OrtValue.from_dlpack(capsule, is_bool_tensor=False).shape()
    )
    assert shapes == [[2, 3], [2], [2]]
    assert len(vector.to_dlpacks(None)) == 3
    assert binding.OrtValue.from_dlpack(vector.dlpack_at(0), is_bool_tensor=False).shape() == [2, 3]
    for index in (3, 99):
        with pytest.raises(IndexError):
            vector[index]


@BOTH
def test_memory_of_other_libraries_is_appended(binding: Any) -> None:
    vector, host = binding.OrtValueVector(), binding.OrtDevice(0, 0, 0)
    vector.push_back_batch([X], [X.ctypes.data], [np.float32], [[2, 3]], [host])
    np.testing.assert_array_equal(vector[0].numpy(), X)
    with pytest.raises(RuntimeError, match="Pointer to data memory is not valid"):
        vector.push_back_batch([X], [0], [np.float32], [[2, 3]], [host])


def test_memory_that_may_not_be_written_goes_as_a_copy() -> None:
    fixed = X.copy()
    fixed.flags.writeable = False
    there = ort.OrtValue.from_dlpack(value(ours, fixed).to_dlpack())
    there.update_inplace(X + 1)
    np.testing.assert_array_equal(fixed, X)
