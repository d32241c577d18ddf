"""OrtValues and what a session says of its memory: the same program for onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from context_models import OPENVINO
from onnx import TensorProto, helper
from small_models import feed, mlp

import ort_lite as ort

CPU = ["CPUExecutionProvider"]
X = np.arange(3, dtype=np.float32)
BOTH = pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])


def one_node(node: Any, inputs: list[Any], outputs: list[Any]) -> bytes:
    graph = helper.make_graph([node], "one node", inputs, outputs)
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


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
    with pytest.raises(TypeError, match="expected a valid DLPack capsule named 'dltensor'"):
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


@BOTH
def test_memory_elsewhere_is_refused(module: Any) -> None:
    """A place elsewhere can be described, and no value made there."""
    with pytest.raises(RuntimeError, match="Can't allocate memory on the"):
        module.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
    with pytest.raises(RuntimeError, match="Can't allocate memory on the"):
        module.OrtValue.ortvalue_from_shape_and_type([2], np.float32, "cuda", 0)


@BOTH
def test_text_makes_no_value(module: Any) -> None:
    text = "currently only supported from non-string numpy arrays"
    for array in (np.array(["a"]), np.array(["a"], object), [1.0]):
        with pytest.raises(RuntimeError, match=text):
            module.OrtValue.ortvalue_from_numpy(array)
    for kind in (str, TensorProto.STRING):
        with pytest.raises(RuntimeError, match=text):
            module.OrtValue.ortvalue_from_shape_and_type([2], kind)
    with pytest.raises(RuntimeError, match=r"shape.Size\(\) must be >= 0"):
        module.OrtValue.ortvalue_from_shape_and_type([2, -3], np.float32)


@BOTH
def test_a_value_is_made_of_a_value_alone(module: Any) -> None:
    value = module.OrtValue.ortvalue_from_numpy(X.copy())
    again = module.OrtValue(value._ortvalue)
    again.update_inplace(X + 1)
    np.testing.assert_array_equal(value.numpy(), X + 1)
    assert value._get_c_value().shape() == [3]
    with pytest.raises(ValueError, match="`Provided ortvalue` needs to be of type"):
        module.OrtValue(X)


@BOTH
def test_an_array_in_another_order_becomes_a_copy(module: Any) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    value = module.OrtValue.ortvalue_from_numpy(array)
    assert not np.shares_memory(value.numpy(), array)
    np.testing.assert_array_equal(value.numpy(), array)
    assert value.numpy().flags.c_contiguous


@BOTH
def test_a_sequence_is_no_tensor(module: Any) -> None:
    node = helper.make_node("SequenceConstruct", ["x", "x"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)
    model = one_node(node, [x], [y])
    session = module.InferenceSession(model, providers=CPU)
    (value,) = session.run_with_ort_values(None, {"x": module.OrtValue.ortvalue_from_numpy(X)})
    assert value.data_type() == "seq(tensor(float))"
    assert (value.is_tensor(), value.is_tensor_sequence(), value.element_type()) == (False, True, 1)
    for name in ("numpy", "shape", "data_ptr", "tensor_size_in_bytes"):
        with pytest.raises(RuntimeError, match="Only OrtValues that are Tensors"):
            getattr(value, name)()


@BOTH
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (np.array([b"must", b"ha\0e"], np.void), ["must", "ha\0e"]),
        (np.array([b"four", b"five"]), ["four", "five"]),
        (np.array(["a", 3, None], object), ["a", "3", "None"]),
        (np.array(["a", "bc"]), ["a", "bc"]),
    ],
    ids=["records", "bytes", "objects", "text"],
)
def test_a_tensor_of_text_is_fed(module: Any, texts: Any, expected: list[str]) -> None:
    if module is onnxruntime and texts.dtype.kind == "S":
        pytest.skip("onnxruntime 1.31.1 reads on behind the elements: 'fourfive'")
    x = helper.make_tensor_value_info("x", TensorProto.STRING, [None])
    y = helper.make_tensor_value_info("y", TensorProto.STRING, [None])
    model = one_node(helper.make_node("Identity", ["x"], ["y"]), [x], [y])
    (found,) = module.InferenceSession(model, providers=CPU).run(None, {"x": texts})
    assert found.tolist() == expected


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.STRING, [None])
    y = helper.make_tensor_value_info("y", TensorProto.STRING, [None])
    model = one_node(helper.make_node("Identity", ["x"], ["y"]), [x], [y])
    with pytest.raises(ort.InvalidArgument, match="x is not UTF-8"):
        ort.InferenceSession(model, providers=CPU).run(None, {"x": np.array([b"\xff"])})


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


@BOTH
def test_outputs_of_a_run_have_a_base(module: Any) -> None:
    """As memory that a session lends; some callers copy arrays that have none."""
    node = helper.make_node("Neg", ["x"], ["y"])
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    session = module.InferenceSession(one_node(node, infos[:1], infos[1:]), providers=CPU)
    for names in (None, ["y"]):
        (y,) = session.run(names, {"x": X})
        assert y.base is not None
        assert y.flags.writeable


@BOTH
def test_memory_of_a_device_that_is_not_here_is_a_runtime_error(module: Any) -> None:
    place = module.OrtMemoryInfo.create_v2(
        *("Bogus", module.OrtMemoryInfoDeviceType.GPU, 0xDEAD, 0),
        *(module.OrtDeviceMemoryType.HOST_ACCESSIBLE, 0),
        module.OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
    )
    with pytest.raises(RuntimeError, match="No shared allocator found for"):
        module.OrtValue.ortvalue_from_shape_and_type([2], np.float32, memory_info=place)
