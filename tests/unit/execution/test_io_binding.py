"""IOBinding, runs of OrtValues and the assignment of nodes, as onnxruntime has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as theirs
from small_models import branching, feed, mlp, sandwich

import ort_lite as ort
from ort_lite.capi import onnxruntime_pybind11_state as ours

CPU = ["CPUExecutionProvider"]
RECORD = "session.record_ep_graph_assignment_info"
X = feed(mlp())["x"]


def session(module: Any = ort) -> Any:
    return module.InferenceSession(mlp().SerializeToString(), providers=CPU)


@pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
def test_bound_memory_is_read_and_filled(module: Any) -> None:
    """The same program for both; what it shows is what onnxruntime does."""
    made = session(module)
    place = np.zeros((2, 3), np.float32)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y", "cpu", 0, np.float32, place.shape, place.ctypes.data)
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(place, made.run(None, {"x": X})[0])
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), place)
    copied = binding.copy_outputs_to_cpu()[0]
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, np.ascontiguousarray(X * 2).ctypes.data)
    assert not np.shares_memory(copied, place)


@pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
def test_bound_values_are_read_and_filled(module: Any) -> None:
    made = session(module)
    given = module.OrtValue.ortvalue_from_numpy(X.copy())
    place = module.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", given)
    binding.bind_ortvalue_output("y", place)
    given.update_inplace(X * 2)
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(place.numpy(), made.run(None, {"x": X * 2})[0])
    binding.clear_binding_outputs()
    binding.bind_output("y")
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], place.numpy())


@pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
def test_values_go_in_and_come_out(module: Any) -> None:
    made = session(module)
    (result,) = made.run_with_ort_values(None, {"x": module.OrtValue.ortvalue_from_numpy(X)})
    np.testing.assert_array_equal(result.numpy(), made.run(None, {"x": X})[0])
    assert (result.data_type(), result.shape()) == ("tensor(float)", [2, 3])


def test_memory_at_an_address_is_fed() -> None:
    made, doubled = session(), X * 2
    binding = made.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, doubled.shape, doubled.ctypes.data)
    binding.bind_output("y")
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(
        binding.get_outputs()[0].numpy(), made.run(None, {"x": doubled})[0]
    )


def test_what_cannot_be_bound_is_refused() -> None:
    made = session()
    binding = made.io_binding()
    with pytest.raises(ort.InvalidArgument, match="Failed to find input name"):
        binding.bind_cpu_input("z", X)
    with pytest.raises(ort.InvalidArgument, match="Failed to find output name"):
        binding.bind_output("z")
    with pytest.raises(ort.InvalidArgument, match="no execution provider that is"):
        binding.bind_output("y", "cuda")
    with pytest.raises(ort.InvalidArgument, match="Unsupported device type: tpu"):
        binding.bind_output("y", "tpu")
    with pytest.raises(ValueError, match="`element_type` and `shape`"):
        binding.bind_output("y", buffer_ptr=X.ctypes.data)
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_shape_and_type([3, 3], np.float32))
    with pytest.raises(ort.InvalidArgument, match=r"output y is float32\[2, 3\], the memory"):
        made.run_with_iobinding(binding)
    with pytest.raises(ValueError, match="session that created it"):
        session().run_with_iobinding(binding)


@pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
def test_text_is_not_bound(module: Any) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.STRING, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "text", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    binding = module.InferenceSession(model, providers=CPU).io_binding()
    for array in (np.array(["a"]), np.array(["a"], object), np.zeros(1, np.float32)):
        with pytest.raises(RuntimeError, match="Only binding non-string Tensors is currently"):
            binding.bind_cpu_input("x", array)
    for kind in (np.dtype("U1"), TensorProto.STRING):
        with pytest.raises(RuntimeError, match="Only binding non-string Tensors is currently"):
            binding.bind_input("x", "cpu", 0, kind, [1], X.ctypes.data)


@pytest.mark.parametrize("module", [ours, theirs], ids=["ort_lite", "onnxruntime"])
def test_the_binding_has_a_binding_of_its_own_and_vectors(module: Any) -> None:
    """The same program on `onnxruntime.capi` of both, with signatures of the binding."""
    outer = ort if module is ours else onnxruntime
    made = session(outer)
    host = module.OrtDevice(module.OrtDevice.cpu(), module.OrtDevice.default_memory(), 0)
    place, expected = np.zeros((2, 3), np.float32), made.run(None, {"x": X})[0]
    outer_binding = made.io_binding()
    binding = outer_binding._iobinding
    assert isinstance(binding, module.SessionIOBinding)
    binding.bind_input("x", X)
    binding.bind_output("y", host, np.float32, [2, 3], place.ctypes.data)
    made.run_with_iobinding(outer_binding)
    np.testing.assert_array_equal(place, expected)
    doubled = X * 2
    binding.bind_input("x", host, np.float32, [2, 4], doubled.ctypes.data)
    binding.clear_binding_outputs()
    binding.bind_output("y", host)
    made.run_with_iobinding(outer_binding)
    (value,) = outer_binding.get_outputs_as_ortvaluevector()
    np.testing.assert_array_equal(value.numpy(), made.run(None, {"x": doubled})[0])
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], value.numpy())

    feeds, fetches = module.OrtValueVector(), module.OrtValueVector()
    feeds.push_back(module.OrtValue.ortvalue_from_numpy(X, host))
    made.run_with_ortvaluevector(outer.RunOptions(), ["x"], feeds, ["y"], fetches, [host])
    assert len(fetches) == 1
    np.testing.assert_array_equal(fetches[0].numpy(), expected)


def assigned(module: Any, model: bytes, providers: list[str]) -> list[tuple[Any, ...]]:
    options = module.SessionOptions()
    options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry(RECORD, "1")
    options.add_session_config_entry("session.placement", "all")
    made = module.InferenceSession(model, options, providers=providers)
    return [
        (part.ep_name, *((n.name, n.domain, n.op_type) for n in part.get_nodes()))
        for part in made.get_provider_graph_assignment_info()
    ]


def test_the_assignment_of_nodes_is_onnxruntimes() -> None:
    model = branching().SerializeToString()
    assert assigned(ort, model, CPU) == assigned(onnxruntime, model, CPU)
    parts = assigned(ort, sandwich().SerializeToString(), ["OpenVINOExecutionProvider"])
    assert [(part[0], [node[2] for node in part[1:]]) for part in parts] == [
        ("OpenVINOExecutionProvider", ["MatMul"]),
        ("OpenVINOExecutionProvider", ["MatMul"]),
        ("CPUExecutionProvider", ["TopK"]),
    ]


@pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
def test_the_assignment_must_be_asked_for(module: Any) -> None:
    with pytest.raises(Exception, match='must be set to "1" to retrieve EP graph assignment'):
        session(module).get_provider_graph_assignment_info()
