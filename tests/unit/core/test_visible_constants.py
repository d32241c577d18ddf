"""Constants around a body: inference of types sees those that the body reads."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort
from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import GraphDef, TensorType
from ort_lite.model.bodies import bodies
from ort_lite.model.loader import resolve
from ort_lite.model.visible_constants import show_constants

NESTED = """
g (float[2, 3] x, bool c, int64[1] open) => (y)
<int64[1] a = {0}, int64[1] b = {1}, int64[1] open = {0}> {
  y = If(c) <
    then_branch = t () => (p) {
      q = If(c) <
        then_branch = tt () => (r) { r = Unsqueeze(x, a) },
        else_branch = te () => (s) { b = Shape(x) s = Reshape(x, b) }>
      p = Unsqueeze(q, open)
    },
    else_branch = e () => (v) { w = Unsqueeze(x, b) v = Unsqueeze(w, a) }>
}"""


def parsed(text: str) -> bytes:
    made: bytes = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>' + text
    ).SerializeToString()
    return made


def own_constants(graph: GraphDef) -> dict[str, set[str]]:
    """Names of initializers by the name of each graph below this one."""
    found = {graph.name: set(graph.initializers)}
    for node in graph.nodes:
        for _, body in bodies(node):
            found |= own_constants(body)
    return found


def test_a_body_gets_what_it_reads_itself() -> None:
    """Not what its own bodies read, what it defines itself, and what a caller may override."""
    graph = read_model(memoryview(parsed(NESTED))).graph
    assert own_constants(show_constants(graph)) == {
        "g": {"a", "b", "open"},
        "t": set(),
        "tt": {"a"},
        "te": set(),
        "e": {"a", "b"},
    }


def test_a_graph_whose_bodies_read_none_is_left_as_it_is() -> None:
    text = (
        "g (float[2] x, bool c) => (y) <int64[1] a = {0}> { h = Unsqueeze(x, a) y = If(c) "
        "<then_branch = t () => (p) { p = Abs(h) }, else_branch = e () => (q) { q = Neg(h) }> }"
    )
    graph = read_model(memoryview(parsed(text))).graph
    assert show_constants(graph) is graph


def test_types_in_a_body_follow_from_constants_around_it() -> None:
    text = (
        "g (float[2, 3] x, bool c) => (y) <int64[2] s = {3, 2}> { y = If(c) "
        "<then_branch = t () => (p) { p = Reshape(x, s) }, "
        "else_branch = e () => (q) { n = Neg(x) q = Reshape(n, s) }> }"
    )
    graph = resolve(read_model(memoryview(parsed(text))), {})
    assert graph.type_of("y") == TensorType(1, (3, 2))


@pytest.mark.hw("openvino-cpu")
@pytest.mark.parametrize("declared", ["", "[2, 3]", "[a, b]"])
def test_a_state_that_gains_a_dimension_in_each_iteration_is_right_on_openvino(
    declared: str,
) -> None:
    """The file declares one rank, and a constant outside the body says that it changes."""
    text = (
        "g (float[2, 3] x) => (y) <int64 M = {3}, bool C = {1}, int64[1] z = {0}> { h = Relu(x) "
        f"y = Loop(M, C, h) <body = b (int64 i, bool c, float{declared} s) => "
        f"(bool o, float{declared} t) {{ o = Identity(c) u = Unsqueeze(s, z) t = Tanh(u) }}> }}"
    )
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    options.log_severity_level = 3
    feed = {"x": np.ones((2, 3), np.float32)}
    providers = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
    with ort.InferenceSession(parsed(text), options, providers=providers) as session:
        (found,) = session.run(None, feed)
    (expected,) = onnxruntime.InferenceSession(parsed(text)).run(None, feed)
    assert found.shape == expected.shape == (1, 1, 1, 2, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
