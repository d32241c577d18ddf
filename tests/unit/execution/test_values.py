"""OrtValues and what a session says of its memory: the same program for onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from context_models import OPENVINO
from onnx import TensorProto
from small_models import feed, mlp

import ort_lite as ort

CPU = ["CPUExecutionProvider"]
BOTH = pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])


@BOTH
def test_a_value_reads_memory_as_another_type_of_the_same_width(module: Any) -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = module.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)"
    assert value.element_type() == TensorProto.BFLOAT16


def test_another_width_is_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match="cannot be read as bfloat16"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.int8), TensorProto.BFLOAT16)


@BOTH
def test_memory_goes_over_dlpack_without_a_copy(module: Any) -> None:
    array = np.arange(3, dtype=np.float32)
    value = module.OrtValue.from_dlpack(array)
    array[0] = 9
    assert value.numpy()[0] == 9
    assert tuple(map(int, value.__dlpack_device__())) == (1, 0)


def test_a_value_goes_to_numpy_over_dlpack() -> None:
    value = ort.OrtValue.ortvalue_from_numpy(np.arange(3, dtype=np.float32))
    assert np.shares_memory(np.from_dlpack(value), value.numpy())
    with pytest.raises(TypeError, match="has no __dlpack__"):
        ort.OrtValue.from_dlpack([1, 2])


@BOTH
def test_a_value_is_updated_from_another(module: Any) -> None:
    value = module.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    value.update_inplace(module.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32)))
    assert value.numpy().tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match=r"must be a numpy.ndarray or an OrtValue"):
        value.update_inplace([1, 2, 3])


@BOTH
def test_memory_is_the_hosts(module: Any) -> None:
    session = module.InferenceSession(mlp().SerializeToString(), providers=CPU)
    (info,) = session.get_input_memory_infos()
    assert (info.name, info.device_id, int(info.mem_type)) == ("Cpu", 0, 0)
    assert len(session.get_output_memory_infos()) == 1
    device = module.OrtDevice.make("cpu", 0)
    assert (device.device_type(), device.device_id(), device.device_vendor_id()) == (0, 0, 0)


def test_memory_elsewhere_is_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match="host memory"):
        ort.OrtDevice.make("cuda", 0)


def test_a_session_is_made_anew_with_other_providers() -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    with ort.InferenceSession(mlp().SerializeToString(), options, providers=CPU) as session:
        before = session.run(None, feed(mlp()))[0]
        session.set_providers([OPENVINO])
        assert session.get_providers() == [OPENVINO, *CPU]
        np.testing.assert_allclose(session.run(None, feed(mlp()))[0], before, rtol=1e-5)
        made = session.get_session_options()
        assert made.graph_optimization_level == ort.GraphOptimizationLevel.ORT_DISABLE_ALL


def test_a_provider_that_is_not_here_is_an_error_unless_fallback_was_asked_for() -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=CPU)
    session.enable_fallback()
    session.set_providers(["NoExecutionProvider"])
    assert session.get_providers() == CPU
    session.disable_fallback()
    with pytest.raises(ort.InvalidArgument, match="NoExecutionProvider"):
        session.set_providers(["NoExecutionProvider"])
    with pytest.raises(ort.Fail, match="closed"):
        session.run(None, feed(mlp()))
