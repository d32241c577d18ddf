"""Products of free lengths that OpenVINO computes without activations and scales in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
RNG = np.random.default_rng(7)
CONFIG = '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'
WEIGHTS = {
    "w": RNG.normal(size=(8, 16)) / 4,
    "b": RNG.normal(size=16),
    "u": RNG.normal(size=(8, 16)) / 4,
    "v": RNG.normal(size=(8, 16)) / 4,
}
DTYPES: dict[str, type[Any]] = {"float": np.float32, "float16": np.float16}
GELU = """r = Constant <value_float = 1.4142135> () d = Div(p, r) e = Erf(d)
  o = Constant <value_float = 1.0> () s = Add(e, o) h = Constant <value_float = 0.5> ()"""
ENDED = "m = Mul(p, s) y = Mul(m, h)"
HALVED = "m = Mul(h, p) y = Mul(m, s)"
TANH = """c = Constant <value_float = 0.7978846> () d = Mul(p, c) e = Tanh(d)
  o = Constant <value_float = 1.0> () s = Add(o, e) h = Constant <value_float = 0.5> ()"""
PRODUCT = "q = MatMul(x, w) p = Add(b, q)"
REASON = "OpenVINO would make a kernel for each length"


def model(nodes: str, *, shape: str = "n, m, 8", opset: int = 20, kind: str = "float") -> bytes:
    text = f"""<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>
    g ({kind}[{shape}] x) => ({kind} y) {{ {nodes} }}"""
    made = onnx.parser.parse_model(text)
    for name, value in WEIGHTS.items():
        made.graph.initializer.append(numpy_helper.from_array(value.astype(DTYPES[kind]), name))
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made.SerializeToString()


def notes(
    data: bytes,
    sizes: tuple[tuple[int, ...], ...] = ((2, 1, 8), (2, 7, 8), (1, 33, 8)),
    *,
    dtype: type[Any] = np.float32,
    **provider_options: str,
) -> list[str]:
    """What the session says of products, once the answers are onnxruntime's."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.placement", "all")
    provider = (OPENVINO, {**provider_options, "load_config": CONFIG})
    with ort.InferenceSession(data, options, providers=[provider]) as session:
        session.disable_fallback()
        (partition,) = session.explain().partitions
        assert partition.ep == OPENVINO
        for shape in sizes:
            x = RNG.normal(size=shape).astype(dtype)
            (right,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
            (result,) = session.run(None, {"x": x})
            accuracy = 2e-5 if dtype is np.float32 else 2e-3
            np.testing.assert_allclose(result, right, accuracy, accuracy, strict=True)
        return [note.removesuffix(f": {REASON}") for note in partition.notes if REASON in note]


@pytest.mark.parametrize("end", [ENDED, HALVED])
@pytest.mark.parametrize("gelu", [GELU, TANH], ids=["erf", "tanh"])
@pytest.mark.parametrize("product", [PRODUCT, "p = MatMul(x, w)"])
def test_a_gelu_of_several_nodes(product: str, gelu: str, end: str) -> None:
    assert notes(model(f"{product} {gelu} {end}")) == ["Gelu x1 kept out of products"]


@pytest.mark.parametrize(
    ("activation", "name"),
    [("Relu", "Relu"), ("Gelu", "Gelu"), ('Gelu <approximate = "none">', "Gelu")],
)
def test_an_activation_of_one_node(activation: str, name: str) -> None:
    data = model(f"{PRODUCT} y = {activation}(p)")
    assert notes(data) == [f"{name} x1 kept out of products"]


def test_infinity_stays_in_relu() -> None:
    data = model(f"{PRODUCT} y = Relu(p)")
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        x = np.zeros((1, 2, 8), np.float32)
        x[0, :, 0] = np.inf, -np.inf
        (right,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
        (result,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(np.isinf(result), np.isinf(right))


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        (f"{PRODUCT} y = Relu(p)", "n, 7, 8"),
        (f"{PRODUCT} y = Relu(p)", "n, 8"),
        (f'{PRODUCT} y = Gelu <approximate = "tanh">(p)', "n, m, 8"),
        ("p = Add(x, x) y = Relu(p)", "n, m, 8"),
        ("t = Transpose <perm = [0, 2, 1]> (x) p = MatMul(x, t) y = Relu(p)", "n, m, 8"),
        (f"{PRODUCT} {GELU.replace('= 1.0', '= 1.5')} {ENDED}", "n, m, 8"),
        (f"{PRODUCT} {GELU} m = Mul(p, s) g = Add(h, h) i = Sigmoid(g) y = Mul(m, i)", "n, m, 8"),
        (f"{PRODUCT} {GELU} m = Mul(p, s) f = Mul(m, h) y = Add(m, f)", "n, m, 8"),
        (f"{PRODUCT} {GELU} m = Mul(p, s) f = Mul(m, h) y = Add(s, f)", "n, m, 8"),
        (f"{PRODUCT} {GELU} q2 = Neg(p) m = Mul(q2, s) y = Mul(m, h)", "n, m, 8"),
    ],
    ids=[
        *("a free batch", "rows of two axes", "an approximation in one node", "no product"),
        *("no weights", "another summand", "another factor", "a product read twice"),
        *("a sum read twice", "another operand"),
    ],
)
def test_what_stays_as_it_is(nodes: str, shape: str) -> None:
    sizes = ((3, 8),) if shape.count(",") == 1 else ((2, 7, 8),)
    assert notes(model(nodes, shape=shape), sizes) == []


@pytest.mark.parametrize("name", ["s", "m", "y"])
def test_values_between_may_be_outputs(name: str) -> None:
    made = onnx.load_from_string(model(f"{PRODUCT} {GELU} {HALVED}"))
    if name != "y":
        made.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    data = made.SerializeToString()
    x = RNG.normal(size=(1, 5, 8)).astype(np.float32)
    right = onnxruntime.InferenceSession(data).run(None, {"x": x})
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        for one, other in zip(session.run(None, {"x": x}), right, strict=True):
            np.testing.assert_allclose(one, other, 2e-5, 2e-5)


def test_halves_are_computed_in_float32() -> None:
    data = model(f"{PRODUCT} y = Relu(p)", kind="float16")
    assert notes(data, dtype=np.float16) == ["Relu x1 kept out of products"]


def test_special_values_on_request_stay_as_they_are() -> None:
    assert notes(model(f"{PRODUCT} y = Relu(p)"), ieee_semantics="1") == []


HEADS = """p = Constant <value_ints = [0, 0, 4, 4]> () f = Constant <value_float = {factor}> ()
  q0 = MatMul(x, w) q1 = Add(q0, b) q2 = Reshape(q1, p) {queries}
  k0 = MatMul(x, u) k1 = Reshape(k0, p) k = Transpose <perm = [0, 2, 3, 1]> (k1)
  {scores} a = Softmax <axis = -1> (c)
  v0 = MatMul(x, v) v1 = Reshape(v0, p) v2 = Transpose <perm = [0, 2, 1, 3]> (v1) y = MatMul(a, v2)
"""
QUERIES = "q = Transpose <perm = [0, 2, 1, 3]> (q2)"
SCORES = "c = MatMul(q, k)"


def heads(queries: str = QUERIES, scores: str = SCORES, factor: float = 0.35) -> bytes:
    return model(HEADS.format(queries=queries, scores=scores, factor=factor))


@pytest.mark.parametrize(
    ("queries", "scores", "factor"),
    [
        (QUERIES, "s = MatMul(q, k) c = Mul(s, f)", 0.35),
        (QUERIES, "s = MatMul(q, k) c = Mul(f, s)", 0.5),
        (QUERIES, "s = MatMul(q, k) c = Div(s, f)", 2.83),
        ("t = Transpose <perm = [0, 2, 1, 3]> (q2) q = Mul(t, f)", SCORES, 0.35),
        ("t = Mul(q2, f) z = Shape(q2) q = Transpose <perm = [0, 2, 1, 3]> (t)", SCORES, 0.35),
    ],
    ids=["of scores", "before scores", "a divisor", "of queries", "next to their shape"],
)
def test_a_scale_is_multiplied_into_the_weights(queries: str, scores: str, factor: float) -> None:
    data = heads(queries, scores, factor)
    assert notes(data) == ["1 scales multiplied into weights before them"]


def test_scales_of_queries_and_keys() -> None:
    scores = "l = Mul(k, f) c = MatMul(q, l)"
    data = heads("t = Transpose <perm = [0, 2, 1, 3]> (q2) q = Mul(t, f)", scores)
    assert notes(data) == ["2 scales multiplied into weights before them"]


@pytest.mark.parametrize(
    ("queries", "scores", "factor"),
    [
        (QUERIES, "s = MatMul(q, k) c = Mul(s, f)", 1.5),
        (QUERIES, "s = MatMul(q, k) c = Div(f, s)", 0.35),
        (QUERIES, "s = MatMul(q, k) c = Mul(s, f)", -0.5),
        (QUERIES, "s = MatMul(q, k) c = Mul(s, f)", 1e-8),
        (QUERIES, "s = MatMul(q, k) g = Mul(s, f) c = Max(s, g)", 0.35),
        (
            "q = Transpose <perm = [0, 2, 1, 3]> (q2)",
            "s = MatMul(q, k) h = Neg(s) c = Mul(h, f)",
            0.35,
        ),
        (
            "t = Transpose <perm = [0, 2, 1, 3]> (q2) q = Abs(t)",
            "s = MatMul(q, k) c = Mul(s, f)",
            0.5,
        ),
    ],
    ids=["larger", "a dividend", "negative", "tiny", "read twice", "no product", "of a function"],
)
def test_other_scales_stay(queries: str, scores: str, factor: float) -> None:
    assert notes(heads(queries, scores, factor)) == []


def test_a_product_that_is_read_without_its_scale_stays() -> None:
    queries = "t = Transpose <perm = [0, 2, 1, 3]> (q2) q = Mul(t, f)"
    assert notes(heads(queries, "o = MatMul(t, k) s = MatMul(q, k) c = Add(s, o)")) == []


def test_an_output_of_the_model_stays() -> None:
    data = heads(QUERIES, "s = MatMul(q, k) c = Mul(s, f)")
    made = onnx.load_from_string(data)
    made.graph.output.append(onnx.helper.make_tensor_value_info("q1", 1, None))
    x = RNG.normal(size=(1, 5, 8)).astype(np.float32)
    right = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    with ort.InferenceSession(made.SerializeToString(), providers=[OPENVINO]) as session:
        for one, other in zip(session.run(None, {"x": x}), right, strict=True):
            np.testing.assert_allclose(one, other, 2e-5, 2e-5)
