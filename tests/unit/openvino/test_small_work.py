"""Small partitions run on one of OpenVINO's threads, unless somebody chose a number."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
NOTE = "on one thread: too little work for more"


def layers(columns: int, *, rows: object = 1) -> onnx.ModelProto:
    """Relu of a product with a matrix of so many columns, twice."""
    rng = np.random.default_rng(0)
    names = ("a", "b")
    weights = [
        numpy_helper.from_array(
            (rng.standard_normal((columns, columns)) / columns).astype(np.float32), name
        )
        for name in names
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("MatMul", ["q", "b"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, columns])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def threads_and_notes(proto: onnx.ModelProto, **options: str) -> tuple[int, bool, tuple[str, ...]]:
    """Number and pinning of OpenVINO's threads, once the answer is right, and notes on them."""
    columns = proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    x = np.random.default_rng(1).standard_normal((1, columns)).astype(np.float32)
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    providers = [(OPENVINO, options)]
    with ort.InferenceSession(proto.SerializeToString(), providers=providers) as session:
        (mine,) = session.run(None, {"x": x})
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)
        (part,) = session._present().prepared.partitions
        compiled: Any = part.compiled
        threads = compiled.model.compiled.get_property("INFERENCE_NUM_THREADS")
        pinned = compiled.model.compiled.get_property("ENABLE_CPU_PINNING")
        (report,) = session.explain().partitions
        return int(threads), bool(pinned), report.notes


def test_little_work_runs_on_one_thread() -> None:
    threads, pinned, notes = threads_and_notes(layers(32))
    assert (threads, pinned, NOTE in notes) == (1, False, True)


def test_load_config_pins_the_one_thread() -> None:
    config = '{"CPU": {"ENABLE_CPU_PINNING": "YES"}}'
    threads, pinned, _ = threads_and_notes(layers(32), load_config=config)
    assert (threads, pinned) == (1, True)


@pytest.mark.parametrize(
    ("proto", "options"),
    [
        (layers(1024), {}),
        (layers(32, rows="batch"), {}),
        (layers(32), {"num_of_threads": "2"}),
        (layers(32), {"load_config": '{"CPU": {"INFERENCE_NUM_THREADS": "2"}}'}),
    ],
    ids=["much work", "free shapes", "a number", "load_config"],
)
def test_other_work_runs_on_what_was_chosen(
    proto: onnx.ModelProto, options: dict[str, str]
) -> None:
    threads, _, notes = threads_and_notes(proto, **options)
    assert NOTE not in notes
    assert threads > 1 or os.cpu_count() == 1


def test_the_threads_of_a_session_are_a_choice() -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    model = layers(32).SerializeToString()
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as session:
        assert all(NOTE not in part.notes for part in session.explain().partitions)


def test_free_inputs_that_become_known_shapes_are_checked() -> None:
    """On one thread OpenVINO would read seven elements of any input."""
    sizes = numpy_helper.from_array(np.array([7]), "sizes")
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "sizes"], ["y"])],
        "seven",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [7])],
        [sizes],
    )
    proto = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    with ort.InferenceSession(
        proto.SerializeToString(), providers=[OPENVINO], enable_fallback=0
    ) as session:
        assert all(NOTE not in part.notes for part in session.explain().partitions)
        right = np.arange(7, dtype=np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": right})[0], right)
        if (os.cpu_count() or 1) > 1:
            with pytest.raises(ort.EPFail, match="Reshape"):
                session.run(None, {"x": right[:1]})
