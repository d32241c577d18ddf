"""Which execution providers a session opens if the user names none."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from small_models import branching, mlp

import ort_lite as ort
from eps.openvino.provider import OpenVINOExecutionProvider
from ort_lite.ep import PlacementCosts, find_least_costs
from ort_lite.model import loader
from ort_lite.planning.judge_placement import may_pay
from ort_lite.planning.node_work import estimate_work

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.ep import Capability, GraphView

CPU, OPENVINO, OPENCL = (f"{name}ExecutionProvider" for name in ("CPU", "OpenVINO", "OpenCL"))
ALL = [OPENVINO, OPENCL, CPU]
CHILD = """
import json, sys
import numpy as np
import ort_lite as ort
options = ort.SessionOptions()
if sys.argv[2]:
    options.add_session_config_entry("session.placement", sys.argv[2])
session = ort.InferenceSession(sys.argv[1], options)
with open("/proc/self/maps") as file:
    maps = file.read()
print(json.dumps({
    "opened": [ep.name for ep in session._present().eps],
    "opencl": "libOpenCL" in maps or "intelocl" in maps,
    "providers": session.get_providers(), "options": list(session.get_provider_options()),
    "notes": session.explain().notes,
}))
"""


def start(model: Path, placement: str = "") -> dict[str, Any]:
    command = [sys.executable, "-c", CHILD, str(model), placement]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("make", "why"),
    [(mlp, f"{OPENVINO} runs every node"), (branching, "leaves is enough work to pay there")],
)
def test_a_provider_that_can_get_no_node_is_not_opened(tmp_path: Path, make: Any, why: str) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(make(), model)
    found = start(model)
    assert found["opened"] == [OPENVINO, CPU]
    assert not found["opencl"]
    assert found["providers"] == found["options"] == ALL
    (note,) = [note for note in found["notes"] if note.startswith(f"{OPENCL} is not opened")]
    assert why in note


def test_the_first_provider_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = OpenVINOExecutionProvider.get_capability

    def count(ep: OpenVINOExecutionProvider, view: GraphView) -> Capability:
        asked.append(len(view.candidates))
        return ask(ep, view)

    monkeypatch.setattr(OpenVINOExecutionProvider, "get_capability", count)
    with ort.InferenceSession(mlp().SerializeToString()) as session:
        (part,) = session.explain().partitions
    assert part.ep == OPENVINO
    assert asked == [len(part.nodes)]


def test_placement_of_all_nodes_opens_all(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(branching(), model)
    assert start(model, "all")["opened"] == ALL


def test_a_provider_that_is_named_is_opened() -> None:
    source = branching().SerializeToString()
    with ort.InferenceSession(source, providers=[OPENVINO, OPENCL]) as session:
        assert [ep.name for ep in session._present().eps] == ALL


def heavy_with_gap() -> onnx.ModelProto:
    """Products around an If with products, which OpenVINO leaves to the session."""
    float_type = onnx.TensorProto.FLOAT
    weight = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32) / 32
    branches = [
        helper.make_graph(
            [
                helper.make_node("MatMul", ["a", "w"], ["p"]),
                helper.make_node(op_type, ["p"], [op_type]),
            ],
            op_type,
            [],
            [helper.make_tensor_value_info(op_type, float_type, [512, 1024])],
        )
        for op_type in ("Relu", "Neg")
    ]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("If", ["c"], ["b"], then_branch=branches[0], else_branch=branches[1]),
            helper.make_node("MatMul", ["b", "w"], ["y"]),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", float_type, [512, 1024]),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", float_type, [512, 1024])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def lookup_before_products() -> onnx.ModelProto:
    """Sums of int64 inputs, which OpenVINO cannot hold, and products, which it runs."""
    float_type, int_type = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    weight = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32) / 32
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["ids", "ids"], ["twice"]),
            helper.make_node("Gather", ["w", "twice"], ["a"]),
            helper.make_node("MatMul", ["a", "w"], ["b"]),
            helper.make_node("MatMul", ["b", "w"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("ids", int_type, [512])],
        [helper.make_tensor_value_info("y", float_type, [512, 1024])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_nodes_that_the_first_provider_runs_open_no_other(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    onnx.save(lookup_before_products(), model)
    found = start(model)
    assert found["opened"] == [OPENVINO, CPU]
    assert not found["opencl"]


def test_a_provider_is_opened_for_nodes_that_the_first_one_leaves() -> None:
    proto = heavy_with_gap()
    with ort.InferenceSession(proto.SerializeToString()) as session:
        assert [ep.name for ep in session._present().eps] == ALL
        x = np.random.default_rng(1).standard_normal((512, 1024)).astype(np.float32)
        inputs = {"x": x, "c": np.ones((), bool)}
        (answer,) = session.run(None, inputs)
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    np.testing.assert_allclose(answer, expected, rtol=1e-3, atol=1e-3)


def recurrent_between_products() -> onnx.ModelProto:
    """A DynamicQuantizeLSTM, which OpenVINO does not run, between products, which it does."""
    steps, size = 512, 256
    numbers = np.random.default_rng(0)
    weights = {
        "w1": numbers.standard_normal((size, size)).astype(np.float32) / 16,
        "w2": numbers.standard_normal((size, size)).astype(np.float32) / 16,
        "w": numbers.integers(-100, 100, (1, size, 4 * size), np.int8),
        "r": numbers.integers(-100, 100, (1, size, 4 * size), np.int8),
        "scale": np.full(1, 2e-4, np.float32),
        "zero": np.zeros(1, np.int8),
    }
    lstm = ["a", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w1"], ["a"]),
            helper.make_node(
                "DynamicQuantizeLSTM", lstm, ["b"], domain="com.microsoft", hidden_size=size
            ),
            helper.make_node("Reshape", ["b", "shape"], ["c"]),
            helper.make_node("MatMul", ["c", "w2"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [steps, 1, size])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [steps, size])],
        [
            *(onnx.numpy_helper.from_array(value, name) for name, value in weights.items()),
            onnx.numpy_helper.from_array(np.array([steps, size]), "shape"),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_the_second_provider_gets_a_graph_that_it_runs_as_a_whole() -> None:
    proto = recurrent_between_products()
    source = proto.SerializeToString()
    x = np.random.default_rng(1).standard_normal((512, 1, 256)).astype(np.float32)
    with ort.InferenceSession(source) as session:
        explained = session.explain()
        (answer,) = session.run(None, {"x": x})
    assert explained.node_counts() == {OPENCL: 4}
    assert f"left to {OPENCL}, which runs every node" in str(explained)
    (expected,) = onnxruntime.InferenceSession(source).run(None, {"x": x})
    # A difference of one step of quantisation in a state stays in the sequence.
    np.testing.assert_allclose(answer, expected, atol=0.02)
    with ort.InferenceSession(source, providers=[OPENVINO, OPENCL]) as session:
        assert session.explain().node_counts()[OPENVINO] > 0


def test_the_second_start_opens_what_ran_nodes(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))
    for make, opened in ((mlp, [OPENVINO, CPU]), (branching, [CPU])):
        source, states = make().SerializeToString(), []
        for _ in range(2):
            with ort.InferenceSession(source, options) as session:
                assert session.get_providers() == ALL
                notes = str(session.explain())
                assert f"{OPENCL} is not opened" in notes
                last = [ep.name for ep in session._present().eps]
                states.append((session.load_report().cache.state, last))
        assert states == [("stored", [OPENVINO, CPU]), ("hit", opened)]


def costs(**changed: float) -> PlacementCosts:
    plain = dict.fromkeys(("crossing_rate", "product_rate", "stream_rate", "math_rate"), 1e3)
    return PlacementCosts(
        **{**plain, "launch": 10, "crossing": 2, "call": 1, "step": 1, "compile": 2000, **changed}
    )


def test_work_that_saves_more_than_launch_crossing_and_compile_may_pay() -> None:
    options = ort.SessionOptions()
    graph = loader.as_graph(
        loader.infer_model(loader.load(mlp().SerializeToString(), options).model, {})
    )
    nodes = range(len(graph.nodes))
    here = costs(call=100)
    saved = sum(
        estimate_work(graph, node).microseconds(here)
        - estimate_work(graph, node).microseconds(costs())
        for node in nodes
    )
    assert may_pay(graph, costs(launch=saved - 4), here)  # 2 to cross, 1 of the compile
    assert not may_pay(graph, costs(launch=saved - 2), here)
    # The opening counts as the compile does, over 2,000 runs.
    assert may_pay(graph, costs(launch=saved - 9, opening=8_000), here)
    assert not may_pay(graph, costs(launch=saved - 9, opening=14_000), here)


def test_the_least_costs_are_the_best_of_each_kind() -> None:
    least = find_least_costs([costs(launch=5, math_rate=1), costs(launch=7, math_rate=9)])
    assert (least.launch, least.math_rate, least.call) == (5, 9, 1)


def test_a_negative_declared_size_is_taken_as_free() -> None:
    float_type = onnx.TensorProto.FLOAT
    infos = [helper.make_tensor_value_info(name, float_type, [-1, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", infos[:1], infos[1:])
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model = loader.load(proto.SerializeToString(), ort.SessionOptions()).model
    work = estimate_work(loader.as_graph(loader.infer_model(model, {})), 0)
    assert work.traffic == 2 * 8 * 4
    assert work.free
