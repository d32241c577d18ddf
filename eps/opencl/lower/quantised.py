"""Quantised operators: integers are multiplied as float32 that holds each sum exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.opencl.ir import Tensor, Unsupported
from eps.opencl.lower.dense import LOWERINGS as DENSE
from eps.opencl.lower.dense import product
from eps.opencl.lower.node import NodeView, call, constant, normal_axis, number
from eps.opencl.lower.pooling import reduced
from eps.opencl.lower.shape import sliced
from ort_lite.model.tensor_values import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.expression import Expr

    Result = Tensor | Sequence[Tensor]
    Array = np.ndarray[Any, np.dtype[Any]]

EXACT = 1 << 24
"""Integers up to here, and sums of them, are exact in float32 in any order."""
_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}


def _integers(node: NodeView, *positions: int, wide: bool = False) -> None:
    for position in positions:
        found = node.input(position).dtype
        if found not in ("int8", "uint8", *(("int16", "uint16", "int32") if wide else ())):
            raise Unsupported(f"input {position} is {found}")


def _along_axis(node: NodeView, weight: Tensor, x: Tensor) -> Tensor:
    """A scale or zero point as it broadcasts to x: for all, for an axis, or for blocks of it."""
    if weight.size == 1:
        return node.reshape(weight, ())
    axis = normal_axis(node.attr("axis", 1), len(x.shape))
    block = node.attr("block_size", 0)
    if block:
        if weight.constant is None:
            raise Unsupported("scales of blocks that are not known before the run")
        wide = np.repeat(weight.constant, block, axis=axis)
        return constant(np.take(wide, range(x.shape[axis]), axis=axis))
    if weight.shape != (x.shape[axis],):
        raise Unsupported(f"scales of shape {list(weight.shape)} on axis {axis} of {x.shape}")
    return node.reshape(weight, [weight.size if a == axis else 1 for a in range(len(x.shape))])


def _dequantize(node: NodeView) -> Tensor:
    _integers(node, 0, wide=True)
    node.require_float32(1)
    if node.attr("output_dtype") not in (None, 0, 1):
        raise Unsupported("DequantizeLinear to another type than float32")
    x = node.input(0)
    operands = [x, _along_axis(node, node.input(1), x)]
    if node.has(2):
        operands.append(_along_axis(node, node.input(2), x))

    def write(a: Expr, scale: Expr, *zero: Expr) -> Expr:
        whole = call("cast", a, dtype="int32")
        if zero:
            whole = call("sub", whole, call("cast", zero[0], dtype="int32"))
        return call("mul", call("cast", whole, dtype="float32"), scale)

    return node.pointwise(write, operands, "float32")


def _saturated(a: Expr, zero: Expr | None, dtype: str) -> Expr:
    """Rounded to the nearest, ties to even, moved by the zero point, held in the range."""
    a = call("round", a)
    if zero is not None:
        a = call("add", a, call("cast", zero, dtype="float32"))
    low, high = _RANGES[dtype]
    a = call("min", call("max", a, number(low, a)), number(high, a))
    return call("cast", a, dtype=dtype)


def _quantize(node: NodeView) -> Tensor:
    node.require_float32(0, 1)
    x = node.input(0)
    dtype = "uint8"
    if node.has(2):
        dtype = node.input(2).dtype
    elif node.attr("output_dtype", 0):
        dtype = numpy_dtype(int(node.attr("output_dtype"))).name
    if dtype not in _RANGES or node.attr("precision", 0) not in (0, 1):
        raise Unsupported(f"QuantizeLinear to {dtype}")
    operands = [x, _along_axis(node, node.input(1), x)]
    if node.has(2):
        operands.append(_along_axis(node, node.input(2), x))
    return node.pointwise(
        lambda a, s, *z: _saturated(call("div", a, s), z[0] if z else None, dtype),
        operands,
        dtype,
    )


def _dynamic_quantize(node: NodeView) -> list[Tensor]:
    """uint8 over the range of x, which is widened to hold zero; a range of zero has scale 1."""
    node.require_float32(0)
    x = node.input(0)
    axes = range(len(x.shape))
    ends = [node.reshape(reduced(node, x, kind, axes), ()) for kind in ("min", "max")]

    def width(low: Expr, high: Expr) -> Expr:
        top = call("max", high, number(0, high))
        span = call("sub", top, call("min", low, number(0, low)))
        none = call("eq", span, number(0, span), dtype="bool")
        scale = call("div", span, number(255, span))
        return call("where", none, number(1, span), scale, dtype="float32")

    scale = node.pointwise(width, ends)

    def place(low: Expr, s: Expr) -> Expr:
        least = call("min", low, number(0, low))
        return _saturated(call("div", call("neg", least), s), None, "uint8")

    zero = node.pointwise(place, [ends[0], scale], "uint8")
    y = node.pointwise(
        lambda a, s, z: _saturated(call("div", a, s), z, "uint8"), [x, scale, zero], "uint8"
    )
    return [y, scale, zero]


def _centred(node: NodeView, x: Tensor, zero: Tensor | None) -> Tensor:
    """x - zero as float32."""
    if x.constant is not None and (zero is None or zero.constant is not None):
        away = 0 if zero is None or zero.constant is None else zero.constant.astype(np.float32)
        return constant(np.asarray(x.constant.astype(np.float32) - away, np.float32))

    def write(a: Expr, *z: Expr) -> Expr:
        a = call("cast", a, dtype="float32")
        return call("sub", a, call("cast", z[0], dtype="float32")) if z else a

    return node.pointwise(write, [x, *([] if zero is None else [zero])], "float32")


def _depth(left: Tensor, right: Tensor) -> int:
    """How many products a sum may have and stay exact."""
    bounds = [255.0, 255.0]
    for i, x in enumerate((left, right)):
        if x.constant is not None and x.size:
            bounds[i] = max(1.0, float(np.abs(x.constant).max()))
    return int(EXACT // (bounds[0] * bounds[1]))


def _total(node: NodeView, parts: Sequence[Tensor]) -> Tensor:
    """Exact sums added as int32."""

    def write(*args: Expr) -> Expr:
        total: Expr = call("cast", args[0], dtype="int32")
        for arg in args[1:]:
            total = call("add", total, call("cast", arg, dtype="int32"))
        return total

    return node.pointwise(write, parts, "int32")


def _integer_product(node: NodeView, left: Tensor, right: Tensor) -> Tensor:
    """The product of integers held in float32, in parts that are exact each, as int32."""
    depth, most = left.shape[-1], _depth(left, right)
    if depth <= most:
        return _total(node, [product(node, left, right)])
    parts = []
    for at in range(0, depth, most):
        piece = slice(at, min(at + most, depth))
        a = sliced(node, left, [*(slice(None),) * (len(left.shape) - 1), piece])
        rows = [slice(None)] * len(right.shape)
        rows[-2 if len(right.shape) > 1 else 0] = piece
        parts.append(product(node, a, sliced(node, right, rows)))
    return _total(node, parts)


def _row_zero(node: NodeView, position: int) -> Tensor | None:
    """The zero point of a left operand: for all, or [M] for its rows."""
    if not node.has(position):
        return None
    zero = node.input(position)
    if zero.size == 1:
        return node.reshape(zero, ())
    return node.reshape(zero, (*zero.shape, 1)) if len(zero.shape) == 1 else zero


def _matmul_integer(node: NodeView) -> Tensor:
    _integers(node, 0, 1)
    a = _centred(node, node.input(0), _row_zero(node, 2))
    b = _centred(node, node.input(1), node.input(3) if node.has(3) else None)
    return _integer_product(node, a, b)


def _requantized(node: NodeView, total: Tensor, scales: Sequence[Tensor], zero: Tensor) -> Tensor:
    """total * scales[0] * scales[1] / scales[2] + zero in zero's type."""

    def write(a: Expr, left: Expr, right: Expr, out: Expr, z: Expr) -> Expr:
        factor = call("div", call("mul", left, right), out)
        return _saturated(call("mul", call("cast", a, dtype="float32"), factor), z, zero.dtype)

    return node.pointwise(write, [total, *scales, zero], zero.dtype)


def _qlinear_matmul(node: NodeView) -> Tensor:
    _integers(node, 0, 3, 7)
    node.require_float32(1, 4, 6)
    a = _centred(node, node.input(0), _row_zero(node, 2))
    b = _centred(node, node.input(3), node.input(5))
    total = _integer_product(node, a, b)
    left = _row_zero(node, 1)
    assert left is not None, "a scale is required"
    scales = [left, node.input(4), node.reshape(node.input(6), ())]
    if node.input(6).size != 1 or node.input(7).size != 1:
        raise Unsupported("a scale of the result for each row")
    return _requantized(node, total, scales, node.reshape(node.input(7), ()))


def _integer_conv(node: NodeView, x: Tensor, w: Tensor) -> Tensor:
    """An int32 convolution; channels are split where a sum would not be exact."""
    if w.constant is None:
        raise Unsupported("the weight of a convolution is not known before the run")
    each, taps = w.shape[1], int(np.prod(w.shape[2:]))
    most = _depth(x, w) // taps
    groups = node.attr("group", 1)
    if each > most and (groups != 1 or not most):
        raise Unsupported(f"sums of {each * taps} products in groups")
    parts = []
    for at in range(0, each, max(most, 1)) if each > most else (0,):
        piece = slice(at, at + most) if each > most else slice(None)
        channels = sliced(node, x, [slice(None), piece, *(slice(None),) * (len(x.shape) - 2)])
        kernel = constant(w.constant[:, piece])
        made = DENSE["Conv"](replace(node, inputs=(channels, kernel)))
        assert isinstance(made, Tensor), "a convolution gives one tensor"
        parts.append(made)
    return _total(node, parts)


def _output_channels(node: NodeView, values: Tensor, rank: int) -> Tensor:
    """[M] along the channels of the result, or one value for all."""
    if values.size == 1:
        return node.reshape(values, ())
    return node.reshape(values, (1, values.size, *(1,) * (rank - 2)))


def _weight_zero(node: NodeView, position: int, rank: int) -> Tensor | None:
    if not node.has(position):
        return None
    zero = node.input(position)
    shape = () if zero.size == 1 else (zero.size, *(1,) * (rank - 1))
    return node.reshape(zero, shape)


def _conv_integer(node: NodeView) -> Tensor:
    _integers(node, 0, 1)
    rank = len(node.input(0).shape)
    zero = node.reshape(node.input(2), ()) if node.has(2) else None
    x = _centred(node, node.input(0), zero)
    w = _centred(node, node.input(1), _weight_zero(node, 3, rank))
    return _integer_conv(node, x, w)


def _qlinear_conv(node: NodeView) -> Tensor:
    _integers(node, 0, 3, 7)
    node.require_float32(1, 4, 6)
    rank = len(node.input(0).shape)
    x = _centred(node, node.input(0), node.reshape(node.input(2), ()))
    w = _centred(node, node.input(3), _weight_zero(node, 5, rank))
    total = _integer_conv(node, x, w)
    if node.has(8):
        bias = _output_channels(node, node.input(8), rank)
        total = node.pointwise(lambda a, b: call("add", a, b), [total, bias])
    scales = [node.reshape(node.input(1), ()), _output_channels(node, node.input(4), rank)]
    scales.append(node.reshape(node.input(6), ()))
    return _requantized(node, total, scales, node.reshape(node.input(7), ()))


LOWERINGS: Mapping[str, Callable[[NodeView], Result]] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _qlinear_matmul,
    "ConvInteger": _conv_integer,
    "QLinearConv": _qlinear_conv,
}
