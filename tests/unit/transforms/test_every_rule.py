"""Each transformation by its name: where it fires, where it must not, and how near its numbers are.

Bounds are those of docs/optimizations.md, against the same graph in float64: an epsilon of float32
is 2**-23, and "the sum of products" is the sum of the magnitudes of what is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from unit.transforms.transformed import Ran, floats, parsed, run

from ort_lite.options import GraphOptimizationLevel
from ort_lite.transforms.fusions import fusions
from ort_lite.transforms.insert_casts import NAME as INSERT_CASTS
from ort_lite.transforms.pipeline import LAST_RULES, RULES, TransformSettings, transformers

EPS = 2.0**-23
X = {"x": floats(2, 3)}


def no_constants(*_: object) -> None:
    """An evaluator that computes nothing."""


ALL = {
    *(rule.name for rule in (*RULES, *LAST_RULES, *fusions())),
    *(
        step.name
        for step in transformers(
            TransformSettings(level=GraphOptimizationLevel.ORT_ENABLE_ALL, evaluate=no_constants)
        )
    ),
    INSERT_CASTS,
}


def small(body: str, constants: str = "") -> str:
    return f"g (float[2, 3] x) => (float[2, 3] z) <{constants}> {{ {body} }}".replace("<> ", "")


IMAGE = {"x": floats(1, 2, 5, 5)}
CONV = (
    "g (float[1, 2, 5, 5] x) => (float[1, 3, 3, 3] z) <float[3, 2, 3, 3] w = {"
    + ", ".join(f"{v:.6f}" for v in floats(54))
    + "}, float[3] s = {1.5, -2, 0.25}, float[3] o = {1, 2, 3}, float[3] m = {0.1, -0.2, 0.3}, "
    "float[3] v = {0.5, 1, 2}> { BODY }"
)
GELU = (
    "r = Constant <value_float = 1.4142135> () h = Constant <value_float = 0.5> () "
    "o = Constant <value_float = ONE> () a = Div(x, r) b = Erf(a) c = Add(b, o) d = Mul(x, c) "
    "z = Mul(d, h)"
)
NORM = (
    "two = Constant <value_float = POWER> () e = Constant <value_float = 1e-05> () "
    "g = Constant <value_floats = [1.5, -2.0, 0.5]> () "
    "s = Constant <value_floats = [1.0, 2.0, 3.0]> () m = ReduceMean <axes = [-1]> (x) "
    "d = Sub(x, m) q = Pow(d, two) v = ReduceMean <axes = [-1]> (q) "
    "w = Add(v, e) r = Sqrt(w) n = Div(d, r) t = Mul(n, g) z = Add(t, s)"
)
GEMM = (
    "w = Constant <value = float[3, 3] {1, 2, 3, 4, 5, 6, 7, 8, 9}> () "
    "b = Constant <value = float[BIAS]> () p = MatMul(x, w) z = Add(p, b)"
)


TILE = (
    "a = Abs(x) m = ReduceMax <keepdims = 0> (a) c = Cast <to = 7> (m) u = Unsqueeze(c, p) "
    "n = Add(u, o) y = Reshape(x, w) s = Concat <axis = 0> (REPEATS) t = Tile(y, s) "
)
TILED = (
    "int64[1] o = {1}, int64[1] p = {0}, int64[1] q = {6}, int64[2] w = {1, 6}, "
    "int64[2] k = {2, 3}, int64 f = {0}"
)


@dataclass(frozen=True)
class Rule:
    """Two graphs.

    Attributes:
        eps: How far results may be from the exact ones, in epsilons of the largest; None where
            they are the bits that the untransformed graph gives.
    """

    fires: str
    stays: str
    feed: dict[str, Any]
    eps: float | None = None


RULES_BY_NAME = {
    "EliminateIdentity": Rule(small("y = Identity(x) z = Abs(y)"), small("z = Identity(x)"), X),
    "EliminateSingleInput": Rule(
        small("y = Sum(x) z = Abs(y)"), small("y = Sum(x, x) z = Abs(y)"), X
    ),
    "NoopElimination": Rule(
        small("y = Mul(x, o) z = Abs(y)", "float o = {1}"),
        small("y = Div(o, x) z = Abs(y)", "float o = {1}"),
        X,
    ),
    "CastLikeToCast": Rule(
        small("d = CastLike(x, t) z = Cast <to = 1> (d)", "double t = {1}"),
        small("z = Cast <to = 1> (x)"),
        X,
    ),
    "CastElimination": Rule(
        small("d = Cast <to = 11> (x) y = Cast <to = 1> (d) z = Abs(y)"),
        small("d = Cast <to = 10> (x) y = Cast <to = 1> (d) z = Abs(y)"),
        X,
    ),
    "TransposeOptimizer": Rule(
        small("a = Transpose <perm = [1, 0]> (x) y = Transpose <perm = [1, 0]> (a) z = Abs(y)"),
        small("a = Transpose <perm = [1, 0]> (x) b = Softmax(a) z = Transpose <perm = [1, 0]> (b)"),
        X,
    ),
    "SqueezeElimination": Rule(
        small("y = Unsqueeze(x, o) q = Squeeze(y, o) z = Abs(q)", "int64[1] o = {1}"),
        small("y = Unsqueeze(x, o) z = Squeeze(y)", "int64[1] o = {1}"),
        X,
    ),
    "EliminateSlice": Rule(
        small("y = Slice(x, s, e) z = Abs(y)",
              "int64[1] s = {0}, int64[1] e = {9223372036854775807}"),
        small("y = Slice(x, s, e) z = Add(y, x)", "int64[1] s = {0}, int64[1] e = {1}"),
        X,
    ),
    "PadElimination": Rule(
        small("y = Pad(x, p) z = Abs(y)", "int64[4] p = {0, 0, 0, 0}"),
        small("y = Pad(x, p) z = Abs(y)", "int64[4] p = {0, -1, 0, 1}"),
        X,
    ),
    "ExpandElimination": Rule(
        small("y = Expand(x, s) z = Abs(y)", "int64[2] s = {1, 1}"),
        small("r = Slice(x, f, t) y = Expand(r, s) z = Abs(y)",
              "int64[2] s = {2, 1}, int64[1] f = {0}, int64[1] t = {1}"),
        X,
    ),
    "EmptyElimination": Rule(
        small("s = Shape(x) b = Slice(s, e, f) c = Concat <axis = 0> (s, b) z = Reshape(x, c)",
              "int64[1] e = {2}, int64[1] f = {9223372036854775807}"),
        small("s = Shape(x) b = Slice(s, e, f) c = Concat <axis = 0> (o, b) z = Reshape(x, c)",
              "int64[1] o = {2}, int64[1] e = {1}, int64[1] f = {9223372036854775807}"),
        X,
    ),
    "TileToExpand": Rule(
        small(TILE.replace("REPEATS", "n, o") + "r = Gather(t, f) z = Reshape(r, k)", TILED),
        small(TILE.replace("REPEATS", "o, n") + "r = Slice(t, p, q, o) z = Reshape(r, k)", TILED),
        X,
    ),
    "ShapeToInitializer": Rule(
        small("a = Abs(x) s = Shape(a) z = Reshape(x, s)"),
        small("n = NonZero(x) s = Shape(n) f = Cast <to = 1> (s) r = ReduceSum <keepdims = 0> (f) "
              "z = Add(x, r)"),
        X,
    ),
    "SizesToInitializer": Rule(
        small("c = Compress <axis = 0> (x, k) s = Shape(c) p = Gather(s, i) f = Cast <to = 1> (p) "
              "z = Add(x, f)", "bool[2] k = {1, 0}, int64 i = {1}"),
        small("c = Compress <axis = 0> (x, k) s = Shape(c) p = Gather(s, i) f = Cast <to = 1> (p) "
              "z = Add(x, f)", "bool[2] k = {1, 0}, int64 i = {0}"),
        X,
    ),
    "ConvBNFusion": Rule(
        CONV.replace("BODY", "c = Conv(x, w) z = BatchNormalization(c, s, o, m, v)"),
        CONV.replace("BODY", "c = Conv(x, w) r = Relu(c) z = BatchNormalization(r, s, o, m, v)"),
        IMAGE,
        eps=2 * 19,  # 18 products and a bias, of two roundings each
    ),
    "ConstantFolding": Rule(
        small("c = Exp(w) z = Add(x, c)", "float[3] w = {0.5, 1, 2}"),
        small("c = RandomUniformLike <seed = 1.0> (w) d = Mul(c, n) z = Add(x, d)",
              "float[3] w = {0.5, 1, 2}, float n = {0}"),
        X,
    ),
    "ConstantSharing": Rule(
        small("a = Mul(x, p) z = Add(a, q)", "float p = {3}, float q = {3}"),
        small("a = Mul(x, p) z = Add(a, q)", "float p = {0}, float q = {-0.0}"),
        X,
    ),
    "CommonSubexpressionElimination": Rule(
        small("a = Exp(x) b = Exp(x) c = Neg(a) z = Add(c, b)"),
        small("a = Softmax <axis = 0> (x) b = Softmax <axis = 1> (x) z = Add(a, b)"),
        X,
    ),
    "RemoveUnusedNodes": Rule(small("d = Exp(x) z = Abs(x)"), small("d = Exp(x) z = Add(x, d)"), X),
    "RemoveUnusedOutputs": Rule(
        "g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] z) "
        "{ z, i = MaxPool <kernel_shape = [1, 1]> (x) }",
        "g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] z, int64[1, 1, 2, 2] i) "
        "{ z, i = MaxPool <kernel_shape = [1, 1]> (x) }",
        {"x": floats(1, 1, 2, 2)},
    ),
    "RemoveUnusedInitializers": Rule(
        small("z = Abs(x)", "float u = {1}"), small("z = Mul(x, u)", "float u = {3}"), X
    ),
    "MatMulAddFusion": Rule(
        small(GEMM.replace("BIAS", "3] {1, 2, 3}").replace("]> ()", "> ()")),
        small(GEMM.replace("BIAS", "2, 1] {1, 2}").replace("]> ()", "> ()")),
        X,
    ),
    "GeluFusion": Rule(
        small(GELU.replace("ONE", "1.0")), small(GELU.replace("ONE", "1.5")), X, eps=4
    ),
    "LayerNormFusion": Rule(
        small(NORM.replace("POWER", "2.0")), small(NORM.replace("POWER", "4.0")), X, eps=4
    ),
}  # fmt: skip
"""All but InsertCastTransformer, which needs an EP that lacks a type: test_insert_casts.py."""


def test_every_transformation_is_here() -> None:
    assert set(RULES_BY_NAME) | {INSERT_CASTS} == ALL


def ran(text: str, feed: dict[str, Any], *, plain: bool = False) -> Ran:
    level = (
        GraphOptimizationLevel.ORT_DISABLE_ALL if plain else GraphOptimizationLevel.ORT_ENABLE_ALL
    )
    return run(parsed(text), feed, level=level)


def exact(text: str, feed: dict[str, Any]) -> Any:
    """The graph in float64, by onnx.reference; constants are those of float32."""
    model = onnx.load_model_from_string(parsed(text.replace("float[", "double[")))
    for node in model.graph.node:
        if node.op_type == "Constant":
            (attribute,) = node.attribute
            value = onnx.helper.get_attribute_value(attribute)
            array = value if attribute.type != attribute.TENSOR else numpy_helper.to_array(value)
            wide = numpy_helper.from_array(np.asarray(array, np.float64))
            attribute.CopyFrom(onnx.helper.make_attribute("value", wide))
    wide_feed = {name: value.astype(np.float64) for name, value in feed.items()}
    return ReferenceEvaluator(model).run(None, wide_feed)[0]  # type: ignore[index] # `run` returns a list


@pytest.mark.parametrize("name", RULES_BY_NAME)
def test_it_fires_and_the_numbers_are_as_near_as_is_said(name: str) -> None:
    rule = RULES_BY_NAME[name]
    changed = ran(rule.fires, rule.feed)
    assert name in changed.fired
    if rule.eps is None:
        plain = ran(rule.fires, rule.feed, plain=True)
        for mine, theirs in zip(changed.outputs, plain.outputs, strict=True):
            assert mine.tobytes() == theirs.tobytes()
        return
    right = exact(rule.fires, rule.feed)
    worst = float(np.abs(changed.outputs[0] - right).max())
    assert worst <= rule.eps * EPS * float(np.abs(right).max())


@pytest.mark.parametrize("name", RULES_BY_NAME)
def test_it_does_not_fire_on_what_only_looks_like_it(name: str) -> None:
    rule = RULES_BY_NAME[name]
    changed, plain = ran(rule.stays, rule.feed), ran(rule.stays, rule.feed, plain=True)
    assert name not in changed.fired
    for mine, theirs in zip(changed.outputs, plain.outputs, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rule", [*RULES, *LAST_RULES, *fusions()], ids=lambda rule: rule.name)
def test_levels_are_those_of_onnxruntime(rule: Any) -> None:
    extended = {"GeluFusion", "LayerNormFusion"}  # graph_transformer_utils.cc: Level2
    basic = GraphOptimizationLevel.ORT_ENABLE_BASIC
    wanted = GraphOptimizationLevel.ORT_ENABLE_EXTENDED if rule.name in extended else basic
    if rule.name == "CastLikeToCast":  # onnxruntime has no kernel, and inlines the function
        wanted = GraphOptimizationLevel.ORT_DISABLE_ALL
    assert rule.level == wanted
