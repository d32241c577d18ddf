"""Operators of com.microsoft that ONNX Runtime's optimizer fuses from simpler ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.ir import Gather, IrTensor, LayerNorm, Unsupported
from eps.opencl.compile.lower.dense import LOWERINGS as DENSE
from eps.opencl.compile.lower.node import NodeView, call, constant, number
from eps.opencl.compile.lower.pooling import reduce_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.expression import Expr

    Result = IrTensor | Sequence[IrTensor]

GEMM_OPSET = 13
"""The version of ai.onnx Gemm that FusedGemm extends; its own domain's version is 1."""
_CLIP_LIMIT = 3.4028234663852886e38
_GELU_CUBE, _GELU_SCALE = 0.044715, 0.7978845608028654


def _add_terms(node: NodeView, terms: Sequence[IrTensor]) -> IrTensor:
    def write(*args: Expr) -> Expr:
        total = args[0]
        for arg in args[1:]:
            total = call("add", total, arg)
        return total

    return node.pointwise(write, terms) if len(terms) > 1 else terms[0]


def _exact_gelu(a: Expr) -> Expr:
    gate = call("erf", call("mul", a, number(0.5**0.5, a)))
    half = call("mul", a, number(0.5, a))
    return call("mul", half, call("add", gate, number(1, a)))


def _fast_gelu(a: Expr) -> Expr:
    cube = call("mul", call("mul", a, a), a)
    inner = call("add", a, call("mul", cube, number(_GELU_CUBE, a)))
    gate = call("tanh", call("mul", inner, number(_GELU_SCALE, a)))
    half = call("mul", a, number(0.5, a))
    return call("mul", half, call("add", gate, number(1, a)))


def _with_bias(function: Callable[[Expr], Expr]) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        terms = node.present_inputs()
        node.require_float32(*range(len(terms)))
        if len(terms) == 1:
            return node.pointwise(function, terms)
        return node.pointwise(lambda a, b: function(call("add", a, b)), terms)

    return lower


def _bias_add(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    return _add_terms(node, node.present_inputs())


def _normalise(node: NodeView, x: IrTensor, weights: Sequence[int], *, rms: bool) -> IrTensor:
    flat = [constant(node.constant(i, "a weight of the normalisation")) for i in weights]
    count = x.shape[-1]
    if any(w.shape != (count,) or w.dtype != "float32" for w in flat):
        raise Unsupported(f"weights of shapes {[w.shape for w in flat]}")
    output = IrTensor(x.shape, "float32")
    node.emit(LayerNorm((x, *flat), output, count, node.attr("epsilon", 1e-12), rms))
    return output


def _skip_norm(*, rms: bool) -> Callable[[NodeView], list[IrTensor]]:
    """The sum that is normalised is the fourth output; mean and deviation are not given."""

    def lower(node: NodeView) -> list[IrTensor]:
        has_output = [bool(name) for name in node.node.outputs]
        if any(has_output[1:3]):
            raise Unsupported("mean and deviation as outputs")
        x, skip, last = node.input(0), node.input(1), 3 if rms else 4
        node.require_float32(0, 1)
        if len(x.shape) < len(skip.shape):
            raise Unsupported(f"a skip of shape {list(skip.shape)}")
        total = _add_terms(node, [x, skip, *([node.input(last)] if node.has(last) else [])])
        beta = [3] if not rms and node.has(3) else []
        result = _normalise(node, total, [2, *beta], rms=rms)
        return [result, total, total, total]

    return lower


def _simplified_layer_norm(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    return _normalise(node, node.input(0), [1], rms=True)


def _look_up(node: NodeView, table: IrTensor, ids: IrTensor) -> IrTensor:
    if ids.dtype not in ("int32", "int64") or table.dtype != "float32":
        raise Unsupported(f"ids of {ids.dtype} into a table of {table.dtype}")
    output = IrTensor((*ids.shape, table.shape[1]), "float32")
    node.emit(Gather((table, ids), output, 0))
    return output


def _embed_norm(node: NodeView) -> list[IrTensor]:
    """Word, position and segment embeddings added and normalised; the mask's ones counted."""
    ids = node.input(0)
    if len(ids.shape) != 2:
        raise Unsupported(f"ids of shape {list(ids.shape)}")
    batch, length = ids.shape
    terms = [_look_up(node, node.input(2), ids)]
    places = node.input(3)
    if node.has(8):
        terms.append(_look_up(node, places, node.input(8)))
    else:
        weights = node.constant(3, "the embedding of positions")[:length]
        terms.append(constant(weights.reshape(1, length, -1)))
    if node.has(1):
        terms.append(_look_up(node, node.input(4), node.input(1)))
    total = _add_terms(node, terms)
    result = _normalise(node, total, [5, 6], rms=False)
    outputs = [result]
    has_output = [bool(name) for name in node.node.outputs]
    if any(has_output[1:]):
        if not node.has(7):
            raise Unsupported("an index of a mask that is not given")
        outputs.append(node.reshape(reduce_axes(node, node.input(7), "sum", (1,)), (batch,)))
        outputs.append(total)
    return outputs


def _hard_sigmoid(a: Expr, alpha: float, beta: float) -> Expr:
    line = call("add", call("mul", a, number(alpha, a)), number(beta, a))
    return call("min", call("max", line, number(0, a)), number(1, a))


def _clip(a: Expr, low: float, high: float) -> Expr:
    return call("min", call("max", a, number(low, a)), number(high, a))


def _leaky(a: Expr, alpha: float) -> Expr:
    below = call("lt", a, number(0, a), dtype="bool")
    return call("where", below, call("mul", a, number(alpha, a)), a, dtype=a.dtype)


_FUSED: Mapping[str, tuple[Callable[..., Expr], tuple[float, ...]]] = {
    "Relu": (lambda a: call("max", a, number(0, a)), ()),
    "Sigmoid": (lambda a: call("sigmoid", a), ()),
    "Tanh": (lambda a: call("tanh", a), ()),
    "LeakyRelu": (_leaky, (0.01,)),
    "Clip": (_clip, (-_CLIP_LIMIT, _CLIP_LIMIT)),
    "HardSigmoid": (_hard_sigmoid, (0.2, 0.5)),
}
"""Activations of fused operators: the expression, and its parameters' defaults."""


def _activate(node: NodeView, x: IrTensor, name: str, parameters: Sequence[float]) -> IrTensor:
    if not name:
        return x
    if name not in _FUSED:
        raise Unsupported(f"a fused {name}")
    function, defaults = _FUSED[name]
    values = [*parameters, *defaults[len(parameters) :]][: len(defaults)]
    return node.pointwise(lambda a: function(a, *values), [x])


def _single(result: Result) -> IrTensor:
    assert isinstance(result, IrTensor), "convolutions and products give one tensor"
    return result


def _fused_conv(node: NodeView) -> IrTensor:
    """Conv, plus a tensor of its shape, then an activation."""
    result = _single(DENSE["Conv"](node))
    if node.has(3):
        node.require_float32(3)
        result = _add_terms(node, [result, node.input(3)])
    values = [float(v) for v in node.attr("activation_params") or ()]
    return _activate(node, result, str(node.attr("activation", "")), values)


def _fused_gemm(node: NodeView) -> IrTensor:
    result = _single(DENSE["Gemm"](replace(node, opset=GEMM_OPSET)))
    parameters = [node.attr(f"activation_{name}") for name in ("alpha", "beta", "gamma")]
    values = [float(v) for v in parameters if v is not None]
    return _activate(node, result, str(node.attr("activation", "")), values)


CONTRIB: Mapping[str, Callable[[NodeView], Result]] = {
    "BiasGelu": _with_bias(_exact_gelu),
    "FastGelu": _with_bias(_fast_gelu),
    "BiasAdd": _bias_add,
    "SkipLayerNormalization": _skip_norm(rms=False),
    "SkipSimplifiedLayerNormalization": _skip_norm(rms=True),
    "EmbedLayerNormalization": _embed_norm,
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
}
LOWERINGS: Mapping[str, Callable[[NodeView], Result]] = {
    # ONNX Runtime registers it under ai.onnx
    "SimplifiedLayerNormalization": _simplified_layer_norm,
}
