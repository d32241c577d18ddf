"""Activation functions, written out in arithmetic so that they fuse into their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.ir import IrTensor, Unsupported
from eps.opencl.compile.lower.node import NodeView, call, constant, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.expression import Expr

_SELU_ALPHA, _SELU_GAMMA = 1.6732632423543772, 1.0507009873554805


def _positive(a: Expr) -> Expr:
    return call("gt", a, number(0, a), dtype="bool")


def _branch(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return call("where", condition, yes, no, dtype=yes.dtype)


def _relu(_: NodeView, a: Expr) -> Expr:
    return call("max", a, number(0, a))


def _sigmoid(_: NodeView, a: Expr) -> Expr:
    return call("sigmoid", a)


def _leaky(node: NodeView, a: Expr) -> Expr:
    below = call("lt", a, number(0, a), dtype="bool")
    return _branch(below, call("mul", a, number(node.attr("alpha", 0.01), a)), a)


def _exponential(a: Expr, alpha: float) -> Expr:
    return call("mul", call("sub", call("exp", a), number(1, a)), number(alpha, a))


def _elu(node: NodeView, a: Expr) -> Expr:
    return _branch(_positive(a), a, _exponential(a, node.attr("alpha", 1.0)))


def _selu(node: NodeView, a: Expr) -> Expr:
    alpha, gamma = node.attr("alpha", _SELU_ALPHA), node.attr("gamma", _SELU_GAMMA)
    inner = _branch(_positive(a), a, _exponential(a, alpha))
    return call("mul", inner, number(gamma, a))


def _celu(node: NodeView, a: Expr) -> Expr:
    alpha = node.attr("alpha", 1.0)
    scaled = call("mul", a, number(1 / alpha, a))
    return _branch(_positive(a), a, _exponential(scaled, alpha))


def _clamp(a: Expr, low: float, high: float) -> Expr:
    return call("min", call("max", a, number(low, a)), number(high, a))


def _hard_sigmoid(node: NodeView, a: Expr) -> Expr:
    alpha, beta = node.attr("alpha", 0.2), node.attr("beta", 0.5)
    return _clamp(call("add", call("mul", a, number(alpha, a)), number(beta, a)), 0, 1)


def _hard_swish(_: NodeView, a: Expr) -> Expr:
    gate = _clamp(call("add", call("mul", a, number(1 / 6, a)), number(0.5, a)), 0, 1)
    return call("mul", a, gate)


def _softplus(_: NodeView, a: Expr) -> Expr:
    """max(x, 0) + log1p(exp(-|x|)): exp(x) overflows."""
    small = call("log1p", call("exp", call("neg", call("abs", a))))
    return call("add", call("max", a, number(0, a)), small)


def _softsign(_: NodeView, a: Expr) -> Expr:
    return call("div", a, call("add", call("abs", a), number(1, a)))


def _apply_threshold(node: NodeView, a: Expr) -> Expr:
    over = call("gt", a, number(node.attr("alpha", 1.0), a), dtype="bool")
    return _branch(over, a, number(0, a))


def _shrink(node: NodeView, a: Expr) -> Expr:
    bias, limit = node.attr("bias", 0.0), node.attr("lambd", 0.5)
    up = call("add", a, number(bias, a))
    down = call("sub", a, number(bias, a))
    low = call("lt", a, number(-limit, a), dtype="bool")
    high = call("gt", a, number(limit, a), dtype="bool")
    return _branch(low, up, _branch(high, down, number(0, a)))


def _gelu(node: NodeView, a: Expr) -> Expr:
    half = call("mul", a, number(0.5, a))
    if node.attr("approximate", "none") == "tanh":
        cube = call("mul", call("mul", a, a), a)
        inner = call("add", a, call("mul", cube, number(0.044715, a)))
        gate = call("tanh", call("mul", inner, number(np.sqrt(2 / np.pi), a)))
    else:
        gate = call("erf", call("mul", a, number(np.sqrt(0.5), a)))
    return call("mul", half, call("add", gate, number(1, a)))


def _quick_gelu(node: NodeView, a: Expr) -> Expr:
    alpha = node.attr("alpha", 1.702)
    return call("mul", a, call("sigmoid", call("mul", a, number(alpha, a))))


def _swish(node: NodeView, a: Expr) -> Expr:
    alpha = node.attr("alpha", 1.0)
    return call("mul", a, call("sigmoid", call("mul", a, number(alpha, a))))


def _mish(node: NodeView, a: Expr) -> Expr:
    return call("mul", a, call("tanh", _softplus(node, a)))


def _unary(write: Callable[[NodeView, Expr], Expr]) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        x = node.input(0)
        if x.dtype not in ("float32", "float64"):
            raise Unsupported(f"{node.node.op_type} of {x.dtype}")
        return node.pointwise(lambda a: write(node, a), [x])

    return lower


def _relu_of_any(node: NodeView) -> IrTensor:
    return node.pointwise(lambda a: _relu(node, a), [node.input(0)])


def _prelu(node: NodeView) -> IrTensor:
    x, slope = node.input(0), node.input(1)
    node.require_float32(0, 1)
    if node.opset < 7:
        raise Unsupported("PRelu before opset 7")
    return node.pointwise(lambda a, s: _branch(_positive(a), a, call("mul", a, s)), [x, slope])


def _batch_normalization(node: NodeView) -> IrTensor:
    x = node.input(0)
    node.require_float32(0)
    if node.attr("training_mode", 0) or len([o for o in node.node.outputs if o]) > 1:
        raise Unsupported("BatchNormalization in training")
    scale, bias, mean, variance = (
        node.constant(i, "a BatchNormalization weight").astype(np.float64) for i in range(1, 5)
    )
    factor = scale / np.sqrt(variance + node.attr("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(x.shape) - 2))
    weights = [
        constant(np.asarray(v, np.float32).reshape(shape)) for v in (factor, bias - mean * factor)
    ]
    return node.pointwise(lambda a, f, b: call("fma", a, f, b), [x, *weights])


LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "Relu": _relu_of_any,
    "Sigmoid": _unary(_sigmoid),
    "LeakyRelu": _unary(_leaky),
    "Elu": _unary(_elu),
    "Selu": _unary(_selu),
    "Celu": _unary(_celu),
    "HardSigmoid": _unary(_hard_sigmoid),
    "HardSwish": _unary(_hard_swish),
    "Softplus": _unary(_softplus),
    "Softsign": _unary(_softsign),
    "ThresholdedRelu": _unary(_apply_threshold),
    "Shrink": _unary(_shrink),
    "Gelu": _unary(_gelu),
    "Swish": _unary(_swish),
    "Mish": _unary(_mish),
    "PRelu": _prelu,
    "BatchNormalization": _batch_normalization,
}

CONTRIB: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "Gelu": _unary(_gelu),
    "QuickGelu": _unary(_quick_gelu),
}
