"""explain() says which operators were written out for OpenVINO, as which, and why."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper
from small_models import mlp

import ort_lite as ort
from ctx_formats.onnx_model import GraphDef, Node
from eps.openvino.compile.rewrite import describe_rewriting

OPENVINO = "OpenVINOExecutionProvider"


def notes(proto: onnx.ModelProto, **options: str) -> list[str]:
    """Notes about rewritings of all partitions on OpenVINO."""
    providers = [(OPENVINO, options)]
    with ort.InferenceSession(proto.SerializeToString(), providers=providers) as session:
        parts = [part for part in session.explain().partitions if part.ep == OPENVINO]
        assert parts
        return [note for part in parts for note in part.notes if "written out" in note]


def one_node(operator: str, outputs: dict[str, int]) -> onnx.ModelProto:
    node = helper.make_node(operator, ["x"], list(outputs))
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def test_a_quantisation_that_is_written_out_is_told() -> None:
    outputs = {"y": TensorProto.UINT8, "scale": TensorProto.FLOAT, "zero": TensorProto.UINT8}
    (note,) = notes(one_node("DynamicQuantizeLinear", outputs))
    assert note.startswith(
        "DynamicQuantizeLinear x1 written out as Add x1, Cast x2, Clip x2, Div x3"
    )
    assert note.endswith(": OpenVINO rounds to other steps")


def test_what_keeps_nan_is_told() -> None:
    proto = one_node("Softmax", {"y": TensorProto.FLOAT})
    (note,) = notes(proto, ieee_semantics="true")
    assert note.startswith("Softmax x1 written out as ")
    assert note.endswith(": OpenVINO loses NaN or infinities in it")
    assert notes(proto) == []


def test_a_model_that_needs_none_has_no_note() -> None:
    assert notes(mlp()) == []


def graph(*nodes: Node) -> GraphDef:
    return GraphDef(name="g", nodes=nodes, inputs=(), outputs=())


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([Node("Max", ("x",), ("y",))], []),
        (
            [Node("Max", ("x",), ("t",)), Node("Where", ("t",), ("y",))],
            ["Max x1 written out as Where x1: why"],
        ),
        ([Node("Where", ("x",), ("y",))], ["Max x1 written out as Where x1: why"]),
    ],
    ids=["unchanged", "with itself", "with others"],
)
def test_a_line_names_what_went_and_what_came(after: list[Node], expected: list[str]) -> None:
    before = graph(Node("Max", ("x",), ("y",)))
    assert describe_rewriting(before, graph(*after), "why") == expected
