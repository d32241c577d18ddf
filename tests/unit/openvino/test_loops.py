"""Loops that OpenVINO runs with their bodies: what they compute, and which it does not get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import ort_lite as ort
from ctx_formats.model_reader import read_model
from eps.openvino.compile.loops import carry_captured
from eps.openvino.support.offer import capability
from eps.openvino.support.table import load_table
from ort_lite.ep import GraphView
from ort_lite.model.loader import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPENVINO = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
X = np.arange(6, dtype=np.float32).reshape(2, 3) * 0.3
STATE = "b (int64 i, bool c, float[SHAPE] s) => (bool o, float[SHAPE] t)"
TWO = (
    "b (int64 i, bool c, float[SHAPE] s, float[SHAPE] v) "
    "=> (bool o, float[SHAPE] t, float[SHAPE] u)"
)
ADDING = "{ o = Identity(c) t = Add(s, x) }"
ENDING = "{ k = Constant <value_int = 2> () o = Less(i, k) t = Add(s, x) }"
TRIPS = "int64 M = {4}, bool C = {1}"


def graph(inputs: str, outputs: str, constants: str, loop: str, body: str) -> str:
    return f"g ({inputs}) => ({outputs}) <{constants}> {{ {loop} <body = {body}> }}"


def one(constants: str, body: str, loop: str = "y = Loop(M, C, x)", more: str = "") -> str:
    return graph(f"float[SHAPE] x{more}", "float[SHAPE] y", constants, loop, f"{STATE} {body}")


def two(body: str) -> str:
    inputs, outputs = "float[SHAPE] x, float[SHAPE] w", "float[SHAPE] y, float[SHAPE] z"
    return graph(inputs, outputs, TRIPS, "y, z = Loop(M, C, x, w)", f"{TWO} {body}")


def collecting(constants: str, body: str, more: str = "") -> str:
    results = "b (int64 i, bool c, float[SHAPE] s) => (bool o, float[SHAPE] t, float[SHAPE] u)"
    outputs = "float[SHAPE] y, float[p, q, r] z"
    loop = "y, z = Loop(M, C, x)"
    return graph(f"float[SHAPE] x{more}", outputs, constants, loop, f"{results} {body}")


RIGHT = {
    "constant trips": one(TRIPS, ADDING),
    "no trip": one("int64 M = {0}, bool C = {1}", ADDING),
    "trips of a run": one("bool C = {1}", ADDING, more=", int64 M"),
    "condition of a run": one("int64 M = {4}", ADDING, more=", bool C"),
    "no condition": one("int64 M = {9}", ENDING, "y = Loop(M, , x)"),
    "ends early": one("int64 M = {9}, bool C = {1}", ENDING),
    "number of the iteration": one(
        TRIPS, "{ o = Identity(c) f = Cast <to = 1> (i) t = Add(s, f) }"
    ),
    "collects": collecting(TRIPS, "{ o = Identity(c) t = Add(s, x) u = Mul(t, t) }"),
    "collects until it ends": collecting(
        "int64 M = {9}, bool C = {1}",
        "{ k = Constant <value_int = 2> () o = Less(i, k) t = Add(s, x) u = Mul(t, t) }",
    ),
    "swaps": two("{ o = Identity(c) t = Identity(v) u = Identity(s) }"),
    "swaps what is overwritten": two("{ o = Identity(c) t = Softmax(v) u = Softmax(s) }"),
    "overwrites what comes from around": one(
        TRIPS, "{ o = Identity(c) p = Softmax(x) t = Add(s, p) }"
    ),
    "would overwrite a constant": one(
        f"{TRIPS}, float[6] a = {{1, 2, 3, 4, 5, 6}}, int64[2] k = {{2, 3}}",
        "{ o = Identity(c) p = Reshape(a, k) q = Softmax(p) r = Add(q, q) t = Add(s, r) }",
    ),
    "overwrites a view": one(
        TRIPS,
        "{ k = Constant <value_ints = [3, 2]> () l = Constant <value_ints = [2, 3]> () "
        "o = Identity(c) p = Reshape(x, k) q = Add(p, p) r = Reshape(q, l) t = Add(s, r) }",
    ),
    "takes memory of a state": two(
        "{ w1 = Constant <value_floats = [1.0, 2.0, 3.0]> () o = Identity(c) t = Tanh(v) "
        "a = LayerNormalization(s, w1) u = Tanh(a) }"
    ),
    "reduces two dimensions": one(
        f"{TRIPS}, float[3] w = {{1, 2, 3}}",
        "{ o = Identity(c) p = ReduceMax <axes = [0]> (s) q = Mul(p, w) "
        "a = ReduceMin <axes = [1]> (s) b1 = Sub(q, a) t = Sub(x, b1) }",
    ),
    "hands on what comes from around": one(TRIPS, "{ o = Identity(c) t = Identity(x) }"),
}
"""Forms of Loops; SHAPE is that of the states."""
FEEDS: Mapping[str, Sequence[dict[str, Any]]] = {
    "trips of a run": [{"M": np.array(trips, np.int64)} for trips in (3, 0, 5)],
    "condition of a run": [{"C": np.array(goes)} for goes in (True, False, True)],
}


def parsed(text: str, shape: str = "2, 3") -> bytes:
    header = '<ir_version: 8, opset_import: ["" : 17]>\n'
    made: bytes = parser.parse_model(header + text.replace("SHAPE", shape)).SerializeToString()
    return made


def open_session(model: bytes, placement: str = "all", **entries: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    for key, value in {"session.placement": placement, **entries}.items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(model, options, providers=OPENVINO)


def reasons(session: ort.InferenceSession) -> str:
    """Why OpenVINO has not got the nodes that it has not got."""
    prepared = session._present().prepared
    named = (why.get("OpenVINOExecutionProvider", "") for why in prepared.refusals.values())
    return "; ".join(filter(None, named))


def runs_loop(session: ort.InferenceSession) -> bool:
    """Whether OpenVINO has got the Loop."""
    prepared = session._present().prepared
    owners = {
        prepared.graph.nodes[i].op_type: part.ep.name
        for part in prepared.partitions
        for i in part.nodes
    }
    return owners["Loop"] == "OpenVINOExecutionProvider"


@pytest.mark.parametrize("shape", ["2, 3", "n, k"], ids=["known", "free"])
@pytest.mark.parametrize("form", RIGHT)
def test_loop_of_each_form(form: str, shape: str) -> None:
    model = parsed(RIGHT[form], shape)
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = {info.name for info in reference.get_inputs()}
    with open_session(model) as session:
        assert runs_loop(session), reasons(session)
        for own in FEEDS.get(form, [{}]):
            feed = {
                name: value for name, value in {"x": X, "w": X + 1, **own}.items() if name in names
            }
            for mine, theirs in zip(
                session.run(None, feed), reference.run(None, feed), strict=True
            ):
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-5)


GROWING = (
    "g (float[2, 3] x) => (float[p, 3] y) <int64 M = {4}, bool C = {1}, float[0, 3] e = {}> "
    "{ y = Loop(M, C, e) <body = b (int64 i, bool c, float[p, 3] s) => (bool o, float[q, 3] t) "
    "{ o = Identity(c) t = Concat <axis = 0> (s, x) }> }"
)
REFUSED = {
    "the Loop's body has bodies itself": one(
        TRIPS,
        "{ o = Identity(c) t = If(c) <then_branch = a () => (float[2, 3] p) { p = Add(s, x) }, "
        "else_branch = a () => (float[2, 3] q) { q = Sub(s, x) }> }",
    ),
    "ReduceMax of the Loop's body would have to be rewritten": one(
        TRIPS,
        "{ k = Constant <value_ints = [0]> () o = Identity(c) r = Unsqueeze(s, k) "
        "p = ReduceMax <keepdims = 0> (r) t = Add(s, p) }",
    ),
    "what a Loop collects has no elements if it never runs": collecting(
        "bool C = {1}", "{ o = Identity(c) t = Add(s, x) u = Mul(t, t) }", ", int64 M"
    ),
    "in the Loop's body, Tile": one(
        TRIPS,
        "{ n = Shape(s) m = Shape(x) r = Div(n, m) o = Identity(c) p = Tile(x, r) t = Add(s, p) }",
    ),
    "it has a value without elements": GROWING,
    "in the Loop's body, Mul: int64": graph(
        "int64[2] x",
        "int64[2] y",
        TRIPS,
        "y = Loop(M, C, x)",
        "b (int64 i, bool c, int64[2] s) => (bool o, int64[2] t) { o = Identity(c) t = Mul(s, x) }",
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_loop_that_openvino_does_not_get(reason: str) -> None:
    model = parsed(REFUSED[reason])
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with open_session(model) as session:
        assert not runs_loop(session)
        assert reason in reasons(session)
        kind = np.int64 if "int64[2] x" in REFUSED[reason] else np.float32
        feed = {"x": np.array([3, 4], kind) if kind is np.int64 else X}
        if ", int64 M" in REFUSED[reason]:
            feed["M"] = np.array(2, np.int64)
        for mine, theirs in zip(session.run(None, feed), reference.run(None, feed), strict=True):
            np.testing.assert_array_equal(mine, theirs)


COUNTER = graph(
    "float[2] x",
    "int64[1] n, float[2] y",
    "int64 M = {TRIPS}, bool C = {1}, int64[1] z = {FIRST}",
    "n, y = Loop(M, C, z, x)",
    "b (int64 i, bool c, int64[1] s, float[2] v) => (bool o, int64[1] t, float[2] u) "
    "{ d = Constant <value_ints = [STEP]> () o = Identity(c) t = Add(s, d) "
    "f = Cast <to = 1> (t) u = Add(v, f) }",
)


@pytest.mark.parametrize(
    ("trips", "first", "step", "taken"),
    [
        (1024, 0, 1, True),
        (1024, 5, 1 << 20, True),
        (1024, 0, 1 << 21, False),  # 1024 times that is 2**31
        (1024, 1 << 31, 1, False),
        (1 << 25, 0, 1, False),  # more iterations than are followed
    ],
)
def test_counter_is_followed_through_all_iterations(
    trips: int, first: int, step: int, *, taken: bool
) -> None:
    text = COUNTER.replace("TRIPS", str(trips)).replace("FIRST", str(first))
    with open_session(parsed(text.replace("STEP", str(step)))) as session:
        assert runs_loop(session) is taken
        assert (
            taken or "may need more than 32 bits" in reasons(session) or "needs" in reasons(session)
        )


def test_counter_that_something_else_is_added_to_is_refused() -> None:
    text = COUNTER.replace("TRIPS", "4").replace("FIRST", "0").replace("STEP", "1")
    with open_session(parsed(text.replace("t = Add(s, d)", "t = Add(s, s)"))) as session:
        assert "in the Loop's body, Add: int64" in reasons(session)


def test_loop_comes_back_from_a_context(tmp_path: Any) -> None:
    path = str(tmp_path / "m_ctx.onnx")
    model = parsed(RIGHT["swaps what is overwritten"])
    writing = {"ep.context_enable": "1", "ep.context_file_path": path}
    open_session(model, **writing).close()
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    feed = {"x": X, "w": X + 1}
    with ort.InferenceSession(path, providers=OPENVINO) as session:
        for mine, theirs in zip(session.run(None, feed), reference.run(None, feed), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-5)


def test_loop_with_ieee_semantics_stays() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(
        parsed(RIGHT["constant trips"]),
        options,
        providers=OPENVINO,
        provider_options=[{"ieee_semantics": "true"}, {}],
    ) as session:
        assert not runs_loop(session)
        assert "ieee_semantics" in reasons(session)


SMALL = "{ o = Identity(c) p = Tanh(s) q = Mul(p, p) t = Add(q, x) }"


@pytest.mark.parametrize(
    ("shape", "body", "taken"),
    [
        ("4, 8", SMALL, True),
        ("n, k", SMALL, False),  # OpenVINO goes over free shapes in each iteration
        ("2000, 2000", ADDING, False),  # and copies states, where the session has references
    ],
)
def test_loop_goes_where_its_iterations_take_less_time(
    shape: str, body: str, *, taken: bool
) -> None:
    """Also in a graph that OpenVINO would run as one partition."""
    model = parsed(one("int64 M = {500}, bool C = {1}", body), shape)
    with open_session(model, "pays") as session:
        assert runs_loop(session) is taken
        slow = "left to the CPU EP: its iterations take less time (about "
        assert (slow in reasons(session)) is not taken
    with open_session(model, "all") as session:
        assert runs_loop(session)


def test_loop_that_fails_to_compile_leaves_its_neighbours_on_openvino() -> None:
    """The rank of its state changes, which OpenVINO finds when it compiles."""
    text = (
        "g (float[2, 3] x) => (y) <int64 M = {2}, bool C = {1}, int64[1] z = {0}> { h = Relu(x) "
        "y = Loop(M, C, h) <body = b (int64 i, bool c, float s) => (bool o, float t) "
        "{ o = Identity(c) u = Unsqueeze(s, z) t = Tanh(u) }> }"
    )
    with open_session(parsed(text)) as session:
        assert not runs_loop(session)
        assert "OpenVINO, with its body: " in reasons(session)
        owners = {part.ep.name for part in session._present().prepared.partitions}
        assert owners == set(OPENVINO)


@pytest.mark.parametrize(
    ("shape", "before", "alone"),
    [("4, 8", "", True), ("512, 512", "", False), ("4, 8", "more", False), ("n, 8", "", False)],
    ids=["small", "large states", "large work before it", "free"],
)
def test_loop_of_small_iterations_runs_on_one_thread(
    shape: str, before: str, *, alone: bool
) -> None:
    text = one("int64 M = {5}, bool C = {1}", SMALL)
    if before:
        text = text.replace("{ y = Loop", "{ w1 = MatMul(w0, w0) w2 = Sin(w1) y = Loop").replace(
            "float[SHAPE] x) => (float[SHAPE] y",
            "float[SHAPE] x, float[300, 300] w0) => (float[SHAPE] y, float[300, 300] w2",
        )
    with open_session(parsed(text, shape)) as session:
        assert runs_loop(session)
        assert ("on one thread" in str(session.explain())) is alone


def test_two_loops_may_read_one_value_from_around_them() -> None:
    loop = (
        "Loop(M, C, x) <body = b{n} (int64 i{n}, bool c{n}, float[2, 3] s{n}) => "
        "(bool o{n}, float[2, 3] t{n}) {{ o{n} = Identity(c{n}) p{n} = Softmax(x) "
        "t{n} = {op}(s{n}, p{n}) }}>"
    )
    first, second = loop.format(n=1, op="Add"), loop.format(n=2, op="Sub")
    model = parsed(
        f"g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) <{TRIPS}> "
        f"{{ y = {first} z = {second} }}"
    )
    graph = resolve(read_model(memoryview(model)), {})
    carried = carry_captured(graph.definition, graph)
    made = [name for node in carried.nodes for name in node.outputs]
    assert len(made) == len(set(made)) == 4
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with open_session(model) as session:
        assert runs_loop(session)
        for mine, theirs in zip(
            session.run(None, {"x": X}), reference.run(None, {"x": X}), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_openvino_before_the_release_that_was_compared_gets_no_loop() -> None:
    graph = resolve(read_model(memoryview(parsed(one(TRIPS, ADDING)))), {})
    (index,) = (i for i, node in enumerate(graph.nodes) if node.op_type == "Loop")
    view = GraphView(graph, frozenset([index]))
    assert capability(view, load_table("2026.4.1")).supported == {index}
    refused = capability(view, load_table("2026.3.0")).refused
    assert refused[index] == "OpenVINO: Loops are shown to be right from 2026.4 on"
