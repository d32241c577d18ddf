"""Arithmetic, comparisons, logic and casts of ai.onnx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.element_types import HALF
from eps.opencl.compile.expression import Expr, Literal
from eps.opencl.compile.ir import IrTensor, Unsupported
from eps.opencl.compile.lower.node import (
    FLOATS,
    NodeView,
    call,
    cast_half,
    number,
    require_type,
)
from ort_lite.ep import InvalidArgument, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FLOAT_FUNCTIONS = {
    "Sqrt": "sqrt", "Exp": "exp", "Log": "log", "Floor": "floor", "Ceil": "ceil", "Round": "round",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Sinh": "sinh", "Cosh": "cosh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh",
    "Erf": "erf", "Tanh": "tanh", "Reciprocal": "recip",
}  # fmt: skip
_COMPARISONS = {
    "Equal": "eq", "Less": "lt", "Greater": "gt", "LessOrEqual": "le", "GreaterOrEqual": "ge",
}  # fmt: skip
_BITS = {"BitwiseAnd": "bitand", "BitwiseOr": "bitor", "BitwiseXor": "bitxor"}


def _float_function(name: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        x = node.input(0)
        if x.dtype not in FLOATS:
            raise Unsupported(f"{node.node.op_type} of {x.dtype}")
        return node.pointwise(lambda a: call(name, a), [x])

    return lower


def _arithmetic(name: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        operands = [node.input(0), node.input(1)]
        _require_modern(node)
        if operands[0].dtype == "bool":
            raise Unsupported("arithmetic on bool")
        return node.pointwise(lambda a, b: call(name, a, b), operands)

    return lower


def _require_modern(node: NodeView) -> None:
    """Before opset 7 `broadcast` and `axis` said how shapes fit."""
    if node.opset < 7 and node.input(0).shape != node.input(1).shape:
        raise Unsupported("broadcasting as before opset 7")


def _div(node: NodeView) -> IrTensor:
    x, y = node.input(0), node.input(1)
    _require_modern(node)
    if x.dtype not in FLOATS:
        _require_divisor(y)
    return node.pointwise(lambda a, b: call("div", a, b), [x, y])


def _require_divisor(y: IrTensor) -> None:
    """An integer division by zero ends the process on a CPU device."""
    if y.constant is None or not np.all(y.constant > 0):
        raise Unsupported("integer division by values that are not known to be positive")


def _mod(node: NodeView) -> IrTensor:
    x, y = node.input(0), node.input(1)
    if x.dtype in FLOATS:
        if not node.attr("fmod", 0):
            raise Unsupported("Mod of floats without fmod")
        return node.pointwise(lambda a, b: call("fmod", a, b), [x, y])
    _require_divisor(y)
    name = "mod" if node.attr("fmod", 0) else "floormod"
    return node.pointwise(lambda a, b: call(name, a, b), [x, y])


def _pow(node: NodeView) -> IrTensor:
    base, exponent = node.input(0), node.input(1)
    if base.dtype not in FLOATS:
        raise Unsupported(f"Pow of {base.dtype}")

    def write(a: Expr, b: Expr) -> Expr:
        if isinstance(b, Literal):
            if b.value == 2:
                return call("mul", a, a)
            if b.value == 3:
                return call("mul", call("mul", a, a), a)
            if b.value == 0.5:
                return call("sqrt", a)
        return call("pow", a, b if b.dtype == a.dtype else call("cast", b, dtype=a.dtype))

    return node.pointwise(write, [base, exponent])


def _variadic(name: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        operands = node.present_inputs()
        if operands[0].dtype == "bool":
            raise Unsupported("arithmetic on bool")

        def write(*args: Expr) -> Expr:
            result = args[0]
            for arg in args[1:]:
                result = call("add" if name == "mean" else name, result, arg)
            return call("mul", result, number(1 / len(args), result)) if name == "mean" else result

        return node.pointwise(write, operands)

    return lower


def _compare(name: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        _require_modern(node)
        operands = [node.input(0), node.input(1)]
        return node.pointwise(lambda a, b: call(name, a, b, dtype="bool"), operands, "bool")

    return lower


def _logic(name: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        return node.pointwise(
            lambda *args: call(name, *args, dtype="bool"), node.present_inputs(), "bool"
        )

    return lower


def _bits(name: str) -> Callable[[NodeView], IrTensor]:
    return lambda node: node.pointwise(lambda *args: call(name, *args), node.present_inputs())


def _is_nan(node: NodeView) -> IrTensor:
    x = node.input(0)
    if x.dtype not in FLOATS:
        raise Unsupported(f"IsNaN of {x.dtype}")
    return node.pointwise(lambda a: call("isnan", a, dtype="bool"), [x], "bool")


def _is_inf(node: NodeView) -> IrTensor:
    x, above, below = (
        node.input(0),
        node.attr("detect_positive", 1),
        node.attr("detect_negative", 1),
    )
    if x.dtype not in FLOATS or not (above and below):
        raise Unsupported(f"IsInf of {x.dtype} on one side")
    return node.pointwise(lambda a: call("isinf", a, dtype="bool"), [x], "bool")


def _where(node: NodeView) -> IrTensor:
    condition, x, y = node.input(0), node.input(1), node.input(2)
    return node.pointwise(
        lambda c, a, b: call("where", c, a, b, dtype=a.dtype), [condition, x, y], x.dtype
    )


def _cast(node: NodeView) -> IrTensor:
    x = node.input(0)
    if node.node.op_type == "CastLike":
        dtype = node.input(1).dtype
    else:
        try:
            dtype = numpy_dtype(int(node.attr("to", 0))).name
        except InvalidArgument as exc:
            raise Unsupported(exc.message) from exc
    if HALF in (dtype, x.dtype):
        if {dtype, x.dtype} != {HALF, "float32"} or node.node.op_type != "Cast":
            raise Unsupported(f"{node.node.op_type} from {x.dtype} to {dtype}")
        return cast_half(node, x)
    require_type(dtype)
    if dtype == x.dtype:
        return x
    return node.pointwise(lambda a: call("cast", a, dtype=dtype), [x], dtype)


def _negate(node: NodeView) -> IrTensor:
    return node.pointwise(lambda a: call("neg", a), [node.input(0)])


def _absolute(node: NodeView) -> IrTensor:
    x = node.input(0)
    if x.dtype.startswith("uint"):
        return x
    return node.pointwise(lambda a: call("abs", a), [x])


def _sign(node: NodeView) -> IrTensor:
    def write(a: Expr) -> Expr:
        zero = number(0, a)
        up = call("where", call("gt", a, zero, dtype="bool"), number(1, a), a, dtype=a.dtype)
        return call("where", call("lt", a, zero, dtype="bool"), number(-1, a), up, dtype=a.dtype)

    x = node.input(0)
    if x.dtype.startswith("uint"):
        raise Unsupported(f"Sign of {x.dtype}")
    return node.pointwise(write, [x])


def _clip(node: NodeView) -> IrTensor:
    x = node.input(0)
    bounds: list[tuple[str, IrTensor]] = []
    for position, (attribute, function) in enumerate((("min", "max"), ("max", "min")), 1):
        if node.has(position):
            bounds.append((function, node.input(position)))
        elif attribute in node.node.attributes:
            value = np.asarray(node.attr(attribute), x.dtype)
            bounds.append((function, IrTensor((), x.dtype, value)))

    def write(a: Expr, *limits: Expr) -> Expr:
        for (function, _), limit in zip(bounds, limits, strict=True):
            a = call(function, a, limit)
        return a

    return node.pointwise(write, [x, *(bound for _, bound in bounds)])


def _identity(node: NodeView) -> IrTensor:
    return node.input(0)


LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {
    **{name: _float_function(function) for name, function in _FLOAT_FUNCTIONS.items()},
    **{name: _compare(function) for name, function in _COMPARISONS.items()},
    **{name: _bits(function) for name, function in _BITS.items()},
    **{name: _arithmetic(name.lower()) for name in ("Add", "Sub", "Mul")},
    **{name: _logic(name.lower()) for name in ("And", "Or", "Xor", "Not")},
    "Div": _div,
    "Mod": _mod,
    "Pow": _pow,
    "Sum": _variadic("add"),
    "Mean": _variadic("mean"),
    "Max": _variadic("max"),
    "Min": _variadic("min"),
    "IsNaN": _is_nan,
    "IsInf": _is_inf,
    "Where": _where,
    "Cast": _cast,
    "CastLike": _cast,
    "Neg": _negate,
    "Abs": _absolute,
    "Sign": _sign,
    "Clip": _clip,
    "BitwiseNot": _bits("bitnot"),
    "Identity": _identity,
}
