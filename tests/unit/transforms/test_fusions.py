"""Fusions: where they fire, where they must not, and how near the numbers stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from unit.transforms.transformed import CPU, agrees, floats, parsed, run

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

CONV = """g (float[1, 2, 5, 5] x) => (float[1, 3, 3, 3] z)
  <float[3, 2, 3, 3] w = {WEIGHTS}, float[3] b = {0.5, -1, 2}, float[3] s = {1.5, -2, 0.25},
   float[3] o = {1, 2, 3}, float[3] m = {0.1, -0.2, 0.3}, float[3] v = {0.5, 1, 2}> {
  BODY
}"""
WEIGHTS = ", ".join(f"{value:.6f}" for value in floats(54))
IMAGE = {"x": floats(1, 2, 5, 5)}


def conv(body: str) -> str:
    return CONV.replace("WEIGHTS", WEIGHTS).replace("BODY", body)


@pytest.mark.parametrize("inputs", ["x, w", "x, w, b"])
def test_a_normalisation_goes_into_the_convolution_before_it(inputs: str) -> None:
    text = conv(f"c = Conv({inputs}) z = BatchNormalization(c, s, o, m, v)")
    ran = agrees(parsed(text), IMAGE)
    assert (ran.fired["ConvBNFusion"], ran.left) == (1, ["Conv"])


@pytest.mark.parametrize("seed", range(8))
def test_a_folded_normalisation_is_within_its_stated_bound(tmp_path: Path, seed: int) -> None:
    """2 eps of the sum of products and of the bias: docs/optimizations.md, computed in float64."""
    rng = np.random.default_rng(seed)
    w, x = (rng.standard_normal(s).astype(np.float32) for s in ((3, 2, 3, 3), (1, 2, 5, 5)))
    s, o, m = (10 ** rng.uniform(-3, 3, 3) * rng.choice((-1, 1), 3) for _ in range(3))
    stats = [a.astype(np.float32) for a in (s, o, m, 10 ** rng.uniform(-6, 6, 3))]
    model = onnx.ModelProto.FromString(
        parsed(conv("c = Conv(x, w) z = BatchNormalization(c, s, o, m, v)"))
    )
    given = dict(zip("wsomv", (w, *stats), strict=True))
    for item in model.graph.initializer:
        if item.name in given:
            item.CopyFrom(numpy_helper.from_array(given[item.name], item.name))
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "folded.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=CPU).close()
    graph = onnx.load(tmp_path / "folded.onnx").graph
    (node,) = graph.node
    kept = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    folded, bias = (kept[name].astype(np.float64) for name in node.input[1:])
    scale, offset, mean, variance = (a.astype(np.float64) for a in stats)
    factor = scale / np.sqrt(variance + np.float64(np.float32(1e-5)))
    exact = products(x, w) * factor - mean * factor + offset
    bound = 2 * np.finfo(np.float32).eps * (products(abs(x), abs(w)) * abs(factor) + abs(bias))
    assert (abs(products(x, folded) + bias - exact) <= bound).all()
    assert float(bound.max()) > 0


def products(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The convolution of x [1, C, H, W] with w [M, C, kh, kw] in float64: [counts, M]."""
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), w.shape[2:], (1, 2))
    return np.einsum("chwij,mcij->hwm", windows, w.astype(np.float64))


@pytest.mark.parametrize(
    "body",
    [
        "c = Conv(x, w) n = BatchNormalization(c, s, o, m, v) z = Add(n, c)",
        "c = Conv(x, w) mm = ReduceMean <axes = [0, 2, 3], keepdims = 0> (c) "
        "z = BatchNormalization(c, s, o, mm, v)",
        "a = Abs(w) c = Conv(x, w) r = Relu(c) z = BatchNormalization(r, s, o, m, v)",
    ],
    ids=["several_consumers", "statistics_at_run_time", "not_next_to_each_other"],
)
def test_a_normalisation_stays_where_the_convolution_alone_is_not_what_it_reads(body: str) -> None:
    ran = agrees(parsed(conv(body)), IMAGE)
    assert "ConvBNFusion" not in ran.fired


def test_a_convolution_that_is_an_output_stays() -> None:
    text = conv("c = Conv(x, w) z = BatchNormalization(c, s, o, m, v)")
    text = text.replace("=> (float[1, 3, 3, 3] z)", "=> (float[1, 3, 3, 3] z, float[1, 3, 3, 3] c)")
    assert "ConvBNFusion" not in agrees(parsed(text), IMAGE).fired


def test_a_normalisation_that_trains_stays() -> None:
    text = conv("c = Conv(x, w) z, nm, nv = BatchNormalization <training_mode = 1> (c, s, o, m, v)")
    assert "ConvBNFusion" not in run(parsed(text), IMAGE).fired


def test_weights_that_would_overflow_stay() -> None:
    text = conv("c = Conv(x, w) z = BatchNormalization(c, s, o, m, v)").replace(
        "-2, 0.25", "3e38, 1"
    )
    assert "ConvBNFusion" not in run(parsed(text), IMAGE).fired


def test_a_weight_that_a_caller_may_override_stays() -> None:
    text = conv("c = Conv(x, w) z = BatchNormalization(c, s, o, m, v)")
    text = text.replace("(float[1, 2, 5, 5] x)", "(float[1, 2, 5, 5] x, float[3, 2, 3, 3] w)")
    feed = {**IMAGE, "w": floats(3, 2, 3, 3, seed=9)}
    assert "ConvBNFusion" not in agrees(parsed(text), feed).fired


DENSE = """g (float[N, 4] x) => (float[N, 3] z)
  <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] b = {1, 2, 3},
   float[1, 3] row = {1, 2, 3}, float[2, 3] full = {1, 2, 3, 4, 5, 6},
   float[1, 1, 3] deep = {1, 2, 3}, float one = {1}, int64[2] s = {-1, 3}> { BODY }"""


@pytest.mark.parametrize("bias", ["b", "row"])
@pytest.mark.parametrize("order", ["{p}, {b}", "{b}, {p}"])
def test_a_product_and_its_bias_become_one_gemm_with_the_same_bits(bias: str, order: str) -> None:
    body = f"p = MatMul(x, w) z = Add({order.format(p='p', b=bias)})"
    model, feed = parsed(DENSE.replace("BODY", body)), {"x": floats(2, 4)}
    ran = run(model, feed)
    assert ran.fired["MatMulAddFusion"] == 1
    plain = run(model, feed, disabled=("MatMulAddFusion",))
    np.testing.assert_array_equal(ran.outputs[0], plain.outputs[0])


@pytest.mark.parametrize(
    "body",
    [
        "p = MatMul(x, w) a = Add(p, b) z = Add(a, p)",
        "p = MatMul(x, w) a = Add(p, full) z = Identity(a)",
        "p = MatMul(x, w) a = Add(p, deep) z = Reshape(a, s)",
        "p = MatMul(x, w) z = Add(p, p)",
    ],
    ids=["several_consumers", "fewer_rows_than_the_bias", "a_bias_of_higher_rank", "no_bias"],
)
def test_a_product_stays_where_a_gemm_would_not_be_the_same(body: str) -> None:
    ran = agrees(parsed(DENSE.replace("BODY", body)), {"x": floats(2, 4)})
    assert "MatMulAddFusion" not in ran.fired


GELU = {
    "half_last": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) z = Mul(m, h)",
    "half_first": "d = Div(x, r) e = Erf(d) a = Add(e, o) k = Mul(x, h) z = Mul(k, a)",
    "half_between": "d = Mul(x, q) e = Erf(d) a = Add(o, e) m = Mul(a, h) z = Mul(x, m)",
}
NOT_GELU = {
    "another_root": "d = Div(x, h) e = Erf(d) a = Add(e, o) m = Mul(x, a) z = Mul(m, h)",
    "another_factor": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) z = Mul(m, r)",
    "another_value": (
        "n = Neg(x) d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(n, a) z = Mul(m, h)"
    ),
    "read_twice": (
        "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) y = Mul(m, h) z = Add(y, e)"
    ),
}
CURVE = "g (float[2, 3] x) => (float[2, 3] z) <float r = {1.4142135}, float q = {0.70710677}, "
CURVE += "float o = {1}, float h = {0.5}> { BODY }"


@pytest.mark.parametrize("case", GELU)
def test_the_cpu_ep_gets_gelu_in_one_node(case: str) -> None:
    model = parsed(CURVE.replace("BODY", GELU[case]))
    assert agrees(model, {"x": floats(2, 3)}).fired["GeluFusion"] == 1


@pytest.mark.parametrize("case", NOT_GELU)
def test_what_is_nearly_gelu_stays(case: str) -> None:
    model = parsed(CURVE.replace("BODY", NOT_GELU[case]))
    assert "GeluFusion" not in agrees(model, {"x": floats(2, 3)}).fired


NORM = """g (float[2, 3, 4] x) => (float[2, 3, 4] z)
  <float two = {2}, float e = {0.00001}, float[4] s = {1, 2, 3, 4}, float[4] b = {4, 3, 2, 1},
   float[3, 4] wide = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
  m = ReduceMean <axes = [AXIS]> (x) d = Sub(x, m) q = Pow(d, two)
  v = ReduceMean <axes = [-1]> (q) ve = Add(v, e) r = Sqrt(ve) n = Div(d, r) REST }"""


@pytest.mark.parametrize("opset", [13, 17])
def test_the_cpu_ep_gets_layer_normalization_in_one_node(opset: int) -> None:
    text = NORM.replace("AXIS", "-1").replace("REST", "k = Mul(n, s) z = Add(k, b)")
    ran = agrees(parsed(text, opset=opset), {"x": floats(2, 3, 4)})
    assert ran.fired["LayerNormFusion"] == 1


@pytest.mark.parametrize(
    ("axis", "rest"),
    [
        ("1", "k = Mul(n, s) z = Add(k, b)"),
        ("-1", "k = Mul(n, wide) z = Add(k, b)"),
        ("-1", "k = Mul(n, s) y = Add(k, b) z = Add(y, d)"),
    ],
    ids=["another_axis", "a_scale_of_two_axes", "read_twice"],
)
def test_what_is_nearly_layer_normalization_stays(axis: str, rest: str) -> None:
    text = NORM.replace("AXIS", axis).replace("REST", rest)
    assert "LayerNormFusion" not in agrees(parsed(text), {"x": floats(2, 3, 4)}).fired
