"""Loops that hand on constants, and Loops that are LSTMs: the same numbers, where it may be so."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort
from ort_lite.transforms.loop_states import NAME as STATES
from ort_lite.transforms.loops_to_lstm import NAME as LSTM

OPENVINO = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
CPU = ["CPUExecutionProvider"]
INPUTS, SIZE = 3, 5
KERAS = ("i", "f", "g", "o")
SUM = "p = MatMul(row, wi) q = MatMul(h, ui) t = Add(p, q) z = Add(t, bi)"
GATES = """{0}, {1}, {2}, {3} = Split <axis = 1> (z) si = Sigmoid(i) sf = Sigmoid(f)
  tg = Tanh(g) so = Sigmoid(o)"""
STATE = "m1 = Mul(sf, c) m2 = Mul(si, tg) c2 = Add(m1, m2) tc = Tanh(c2) h2 = Mul(so, tc)"
GOES_ON = "l1 = Less(k2, lim) l2 = Less(it, lim) on2 = And(l1, l2)"


def keras(
    *,
    add: str = SUM,
    gates: str = GATES.format(*KERAS),
    state: str = STATE,
    goes_on: str = GOES_ON,
    initial: str = "h0 = Expand(zero, hshape)",
    condition: str = "on0 = Less(start, lim)",
) -> onnx.ModelProto:
    """A layer as tf2onnx writes it; its sequence is time first."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[T, B, {INPUTS}] x, int64 lim, int64 trips)
      => (float[N, B, {SIZE}] y, float[B, {SIZE}] h1, float[B, {SIZE}] c1, int64 k1)
      <int64 start = {{0}}, float zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}},
       int64[1] size = {{{SIZE}}}> {{
      {condition}
      sizes = Shape(x) batch = Slice(sizes, one, two) hshape = Concat <axis = 0> (batch, size)
      {initial}
      k1, h1, c1, we, ue, be, y = Loop(trips, on0, start, h0, h0, w, u, b) <body = step
        (int64 it, bool on, int64 k, float[r, {SIZE}] h, float[r, {SIZE}] c,
         float[{INPUTS}, {4 * SIZE}] wi, float[{SIZE}, {4 * SIZE}] ui, float[{4 * SIZE}] bi)
        => (bool on2, int64 k2, float[r, {SIZE}] h2, float[r, {SIZE}] c2,
            float[{INPUTS}, {4 * SIZE}] wo, float[{SIZE}, {4 * SIZE}] uo,
            float[{4 * SIZE}] bo, float[r, {SIZE}] hs)
        <int64 step1 = {{1}}> {{
        row = Gather(x, k) {add} {gates} {state} k2 = Add(k, step1)
        {goes_on} wo = Identity(wi) uo = Identity(ui) bo = Identity(bi) hs = Identity(h2) }}>
    }}"""
    model = onnx.parser.parse_model(text)
    random = np.random.default_rng(3)
    for name, shape in (("w", (INPUTS, 4 * SIZE)), ("u", (SIZE, 4 * SIZE)), ("b", (4 * SIZE,))):
        value = (random.standard_normal(shape) / 2).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def feed(
    steps: int, batch: int = 2, *, limit: int | None = None, trips: int = 99
) -> dict[str, Any]:
    x = np.random.default_rng(steps).standard_normal((steps, batch, INPUTS)).astype(np.float32)
    return {
        "x": x,
        "lim": np.array(steps if limit is None else limit, np.int64),
        "trips": np.array(trips, np.int64),
    }


def fired(model: onnx.ModelProto, *feeds: dict[str, Any], providers: list[str]) -> dict[str, int]:
    """What was transformed, once every answer is onnxruntime's."""
    data = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = onnxruntime.InferenceSession(data, options, providers=CPU)
    with ort.InferenceSession(data, providers=providers) as session:
        for values in feeds:
            for mine, right in zip(
                session.run(None, values), theirs.run(None, values), strict=True
            ):
                assert mine.dtype == right.dtype
                if not right.size:  # onnxruntime says 0 for what no iteration has decided
                    assert (mine.ndim, mine.size) == (right.ndim, 0)
                    continue
                np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)
        return dict(session.explain().transforms)


FEEDS = (
    feed(4), feed(7, 1), feed(1), feed(6, limit=3), feed(6, trips=2), feed(6, trips=4, limit=5),
    feed(6, limit=0), feed(6, trips=0), feed(5, limit=1),
)  # fmt: skip


@pytest.mark.parametrize("providers", [CPU, OPENVINO], ids=["cpu", "openvino"])
@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"gates": GATES.format("o", "g", "i", "f")},
        {"add": "p = MatMul(row, wi) t = Add(bi, p) q = MatMul(h, ui) z = Add(q, t)"},
        {"add": "p = MatMul(row, wi) q = MatMul(h, ui) z = Add(q, p)"},
        {"state": "m1 = Mul(c, sf) m2 = Mul(tg, si) c2 = Add(m2, m1) tc = Tanh(c2)"
                  " h2 = Mul(tc, so)"},
        {"initial": "h0 = ConstantOfShape <value = float[1] {0.5}> (hshape)"},
        {"goes_on": "on2 = Less(k2, lim)"},
        {"goes_on": "on2 = Identity(on)"},
    ],
    ids=["keras", "other gates", "bias first", "no bias", "factors swapped", "states of 0.5",
         "one limit", "trips alone"],
)  # fmt: skip
def test_a_step_of_an_lstm_in_a_loop_becomes_the_operator(
    variant: dict[str, str], providers: list[str]
) -> None:
    feeds: tuple[dict[str, Any], ...] = FEEDS
    if variant.get("goes_on") == "on2 = Identity(on)":
        feeds = (feed(4, trips=4), feed(6, 1, trips=3), feed(6, limit=0), feed(6, trips=0))
    done = fired(keras(**variant), *feeds, providers=providers)
    assert (done[STATES], done[LSTM]) == (3, 1)


@pytest.mark.parametrize(
    "variant",
    [
        {"state": STATE.replace("Tanh(c2)", "Softsign(c2)")},
        {"gates": GATES.format(*KERAS).replace("Sigmoid(f)", "HardSigmoid(f)")},
        {"gates": GATES.format(*KERAS).replace("Sigmoid(f)", "Sigmoid(i)")},
        {"state": STATE.replace("Add(m1, m2)", "Sub(m1, m2)")},
        {"add": "p = MatMul(row, wi) q = MatMul(c, ui) t = Add(p, q) z = Add(t, bi)"},
        {"goes_on": "on2 = Greater(lim, k2)"},
        {"goes_on": "n = ReduceSum <keepdims = 0> (h2) e = Cast <to = 7> (n) on2 = Less(e, lim)"},
        {"initial": "h0 = Identity(given)"},
    ],
    ids=["another activation", "HardSigmoid", "a gate that is missing", "a difference",
         "rows of the cell", "another comparison", "values decide", "a state of unknown batch"],
)  # fmt: skip
def test_other_loops_stay(variant: dict[str, str]) -> None:
    model = keras(**variant)
    extra: dict[str, Any] = {}
    if "initial" in variant:
        info = onnx.helper.make_tensor_value_info("given", onnx.TensorProto.FLOAT, ["R", SIZE])
        model.graph.input.append(info)
        extra["given"] = np.ones((3, SIZE), np.float32)  # for one row of the sequence
        feeds = [{**feed(4, 1), **extra}]
    else:
        feeds = [feed(4, trips=4), feed(6, trips=2)]
    done = fired(model, *feeds, providers=CPU)
    assert done[STATES] == 3
    assert LSTM not in done


def test_a_counter_that_begins_elsewhere_or_overridable_weights_stay() -> None:
    shifted = keras()
    (start,) = (t for t in shifted.graph.initializer if t.name == "start")
    start.CopyFrom(numpy_helper.from_array(np.array(1, np.int64), "start"))
    assert LSTM not in fired(shifted, feed(4), providers=CPU)
    open_weights = keras()
    info = onnx.helper.make_tensor_value_info("u", onnx.TensorProto.FLOAT, [SIZE, 4 * SIZE])
    open_weights.graph.input.append(info)
    assert LSTM not in fired(open_weights, feed(4), providers=CPU)


def test_weights_that_a_name_inside_hides_are_not_taken() -> None:
    model = keras()
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    (body,) = (a.g for a in loop.attribute if a.name == "body")
    random = np.random.default_rng(8)
    for graph in (model.graph, body):
        value = random.standard_normal((SIZE, 4 * SIZE)).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(value, "v"))
    model.graph.node.append(onnx.helper.make_node("Tanh", ["v"], ["read"]))
    shape = [SIZE, 4 * SIZE]
    model.graph.output.append(
        onnx.helper.make_tensor_value_info("read", onnx.TensorProto.FLOAT, shape)
    )
    (product,) = (n for n in body.node if n.op_type == "MatMul" and "ui" in n.input)
    product.input[1] = "v"
    assert LSTM not in fired(model, feed(4), providers=CPU)


def test_states_are_captured_unless_a_name_inside_hides_them() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[2] x, int64 n) => (float[2] s, float[2] w1, float[2] v1) <float[2] w = {2, 3}> {
      a = Neg(x) yes = Constant <value = bool {1}> ()
      s, w1, v1 = Loop(n, yes, x, w, a) <body = b
        (int64 i, bool on, float[2] t, float[2] wi, float[2] vi)
        => (bool go, float[2] next, float[2] wo, float[2] vo) {
        go = Identity(on) p = Mul(t, wi) next = Add(p, vi) wo = Identity(wi) NAME = Identity(vi)
        vo = Identity(NAME) }>
    }"""
    values = {"x": np.array([1, -2], np.float32), "n": np.array(3, np.int64)}
    none = {**values, "n": np.array(0, np.int64)}
    for name, count in (("q", 2), ("a", 1)):
        model = onnx.parser.parse_model(text.replace("NAME", name))
        data = model.SerializeToString()
        with ort.InferenceSession(
            data, providers=CPU, disabled_optimizers=["EliminateIdentity"]
        ) as s:
            assert s.explain().transforms[STATES] == count
            for each in (values, none):
                x, times = each["x"], int(each["n"])
                total = x
                for _ in range(times):
                    total = total * [2, 3] - x
                for mine, right in zip(s.run(None, each), (total, [2, 3], -x), strict=True):
                    np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize(("inside", "count"), [("w", 1), ("v", 0)])
def test_a_state_may_have_the_name_of_its_first_value(inside: str, count: int) -> None:
    """PaddlePaddle's exporter writes weights so; `v` is defined in the body once more."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[2] x, int64 n) => (float[2] s) <float[2] {inside} = {{2, 3}}> {{
      yes = Constant <value = bool {{1}}> ()
      s, w1 = Loop(n, yes, x, {inside}) <body = b (int64 i, bool on, float[2] t, float[2] w)
        => (bool go, float[2] next, float[2] w) {{
        go = Identity(on) v = Neg(w) next = Sub(t, v) }}>
    }}"""
    data = onnx.parser.parse_model(text).SerializeToString()
    values = {"x": np.array([1, -2], np.float32), "n": np.array(3, np.int64)}
    with ort.InferenceSession(data, providers=CPU) as session:
        assert session.explain().transforms.get(STATES, 0) == count
        np.testing.assert_array_equal(session.run(None, values)[0], [7, 7])


def test_a_state_that_is_another_result_too_stays() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[2] x, int64 n) => (float[2] s, float[2] w1, float[k, 2] ws) <float[2] w = {2, 3}> {
      yes = Constant <value = bool {1}> ()
      s, w1, ws = Loop(n, yes, x, w) <body = b (int64 i, bool on, float[2] t, float[2] wi)
        => (bool go, float[2] next, float[2] wi, float[2] wi) {
        go = Identity(on) next = Mul(t, wi) }>
    }"""
    values = {"x": np.array([1, -2], np.float32), "n": np.array(3, np.int64)}
    data = onnx.parser.parse_model(text).SerializeToString()
    with ort.InferenceSession(data, providers=CPU) as session:
        assert STATES not in session.explain().transforms
        s, w1, ws = session.run(None, values)
    np.testing.assert_array_equal(s, [8, -54])
    np.testing.assert_array_equal(w1, [2, 3])
    np.testing.assert_array_equal(ws, [[2, 3]] * 3)
