"""Products and convolutions of 8-bit integers, summed as int32, and their requantisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.ir import EIGHT_BITS, Convolution, IrTensor, Unsupported
from eps.opencl.compile.lower.dense import product
from eps.opencl.compile.lower.node import NodeView, call, constant
from eps.opencl.compile.lower.quantised import dynamic_steps, saturate
from eps.opencl.compile.lower.windows import as_image, conv_window, image_weights, window_output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.expression import Expr

    Array = np.ndarray[Any, np.dtype[Any]]


def _integers(node: NodeView, *positions: int) -> None:
    for position in positions:
        dtype = node.input(position).dtype
        if dtype not in EIGHT_BITS:
            raise Unsupported(f"input {position} is {dtype}")


def _subtract_zero(node: NodeView, x: IrTensor, zero: IrTensor | None) -> IrTensor:
    """x - zero as 16-bit integers, or x itself where zero is 0."""
    nothing = zero is None or (zero.constant is not None and not zero.constant.any())
    if x.constant is not None and (zero is None or zero.constant is not None):
        away = 0 if zero is None or zero.constant is None else zero.constant.astype(np.int16)
        return constant(x.constant.astype(np.int16) - away)
    if nothing or zero is None:
        return x

    def write(a: Expr, z: Expr) -> Expr:
        wide = call("cast", a, dtype="int16")
        return call("sub", wide, call("cast", z, dtype="int16"))

    return node.pointwise(write, [x, zero], "int16")


def _correct_zero(node: NodeView, total: IrTensor, sums: Array, zero: IrTensor | None) -> IrTensor:
    """total - zero * sums: what a zero point that was left in the input has added."""
    if zero is None or (zero.constant is not None and not zero.constant.any()):
        return total
    if zero.constant is not None:
        away = constant(zero.constant.astype(np.int32) * sums)
        return node.pointwise(lambda a, b: call("sub", a, b), [total, away])

    def write(a: Expr, z: Expr, s: Expr) -> Expr:
        return call("sub", a, call("mul", call("cast", z, dtype="int32"), s))

    return node.pointwise(write, [total, zero, constant(sums)])


def integer_product(
    node: NodeView, a: IrTensor, a_zero: IrTensor | None, b: IrTensor, b_zero: IrTensor | None
) -> IrTensor:
    """(a - a_zero) @ (b - b_zero) as int32, which wraps.

    Args:
        node: Where to emit.
        a: 8-bit integers [..., M, K] or [K].
        a_zero: For all, or [..., M, 1]; known or not.
        b: 8-bit integers [..., K, N] or [K].
        b_zero: For all, or as it broadcasts to b.
    """
    b = _subtract_zero(node, b, b_zero)
    if b.constant is None:
        return product(node, _subtract_zero(node, a, a_zero), b)
    total = product(node, a, b)
    flat = len(a.shape) < 2 or len(b.shape) < 2
    sums = b.constant.sum(axis=-2 if len(b.shape) > 1 else 0, dtype=np.int32, keepdims=not flat)
    if flat and a_zero is not None and a_zero.size > 1:
        raise Unsupported("a zero point for each row of a product with a vector")
    return _correct_zero(node, total, np.asarray(sums, np.int32), a_zero)


def integer_convolution(
    node: NodeView, x: IrTensor, zero: IrTensor | None, weights: Array
) -> IrTensor:
    """Convolution of x - zero with integers, as int32 [N, O, ...], which wraps.

    Args:
        node: A Conv, ConvInteger or QLinearConv, whose attributes say how.
        x: 8-bit integers [N, C, ...].
        zero: One for all, known or not.
        weights: int16 [O, C/groups, ...], their zero point taken off.
    """
    image, kernel = as_image(node, x), image_weights(weights)
    groups = node.attr("group", 1)
    if image.shape[1] != kernel.shape[1] * groups or kernel.shape[0] % groups:
        raise Unsupported(f"{x.shape[1]} channels, {groups} groups, weights {weights.shape}")
    window = conv_window(node, image, kernel)
    rows, columns = window_output(image.shape, window)
    outside = 0
    if zero is not None and zero.constant is not None:
        outside = int(zero.constant.reshape(-1)[0])
    elif zero is not None and any(window.pads):
        image, zero = _subtract_zero(node, image, zero), None
    output = IrTensor((image.shape[0], kernel.shape[0], rows, columns), "int32")
    made = Convolution((image, constant(kernel)), output, window, groups, None, outside)
    node.emit(made)
    sums = kernel.sum(axis=(1, 2, 3), dtype=np.int32).reshape(1, -1, 1, 1)
    total = _correct_zero(node, output, sums, zero)
    return node.reshape(total, (*total.shape[:2], columns)) if len(x.shape) == 3 else total


def _row_zero(node: NodeView, position: int) -> IrTensor | None:
    """The scale or zero point of a left operand: for all, or [M] for its rows."""
    if not node.has(position):
        return None
    zero = node.input(position)
    if zero.size == 1:
        return node.reshape(zero, ())
    return node.reshape(zero, (*zero.shape, 1)) if len(zero.shape) == 1 else zero


def _matmul_integer(node: NodeView) -> IrTensor:
    _integers(node, 0, 1)
    b_zero = node.input(3) if node.has(3) else None
    return integer_product(node, node.input(0), _row_zero(node, 2), node.input(1), b_zero)


def _qlinear_matmul(node: NodeView) -> IrTensor:
    _integers(node, 0, 3, 7)
    node.require_float32(1, 4, 6)
    if node.input(6).size != 1 or node.input(7).size != 1:
        raise Unsupported("a scale of the result for each row")
    left = _row_scale(node, 1)
    total = integer_product(node, node.input(0), _row_zero(node, 2), node.input(3), node.input(5))
    return _requantize(node, total, [left, node.input(4)], node.input(6), node.input(7))


def _conv_weights(node: NodeView, position: int, zero: int) -> Array:
    """Weights [O, ...] less their zero point, for all or for each output channel."""
    what = "the weight of a convolution"
    weights = node.constant(position, what).astype(np.int16)
    if not node.has(zero):
        return weights
    away = node.constant(zero, "the zero point of a weight").astype(np.int16)
    if away.size > 1:
        away = away.reshape(-1, *(1,) * (weights.ndim - 1))
    return weights - away.reshape(away.shape if away.size > 1 else ())


def _conv_integer(node: NodeView) -> IrTensor:
    _integers(node, 0, 1)
    zero = node.reshape(node.input(2), ()) if node.has(2) else None
    return integer_convolution(node, node.input(0), zero, _conv_weights(node, 1, 3))


def _qlinear_conv(node: NodeView) -> IrTensor:
    _integers(node, 0, 3, 7)
    node.require_float32(1, 4, 6)
    zero = node.reshape(node.input(2), ())
    total = integer_convolution(node, node.input(0), zero, _conv_weights(node, 3, 5))
    if node.has(8):
        bias = along_channels(node, node.input(8), len(total.shape))
        total = node.pointwise(lambda a, b: call("add", a, b), [total, bias])
    scales = [
        node.reshape(node.input(1), ()),
        along_channels(node, node.input(4), len(total.shape)),
    ]
    return _requantize(node, total, scales, node.input(6), node.input(7))


def along_channels(node: NodeView, values: IrTensor, rank: int) -> IrTensor:
    """[O] along the channels of a result [N, O, ...], or one value for all."""
    if values.size == 1:
        return node.reshape(values, ())
    return node.reshape(values, (1, values.size, *(1,) * (rank - 2)))


def _requantize(
    node: NodeView, total: IrTensor, scales: Sequence[IrTensor], scale: IrTensor, zero: IrTensor
) -> IrTensor:
    """total * scales[0] * scales[1] / scale + zero in zero's type."""
    zero, factor = node.reshape(zero, ()), _factor(node, [*scales, node.reshape(scale, ())])

    def write(a: Expr, f: Expr, z: Expr) -> Expr:
        scaled = call("mul", call("cast", a, dtype="float32"), f)
        return saturate(scaled, z, zero.dtype)

    return node.pointwise(write, [total, factor, zero], zero.dtype)


def _factor(node: NodeView, scales: Sequence[IrTensor]) -> IrTensor:
    """scales[0] * scales[1] / scales[2]."""
    known = [x.constant for x in scales if x.constant is not None]
    if len(known) == len(scales):
        return constant(np.asarray(known[0] * known[1] / known[2], np.float32))
    return node.pointwise(
        lambda left, right, out: call("div", call("mul", left, right), out), scales
    )


def _product_to_float(node: NodeView) -> IrTensor:
    """com.microsoft MatMulIntegerToFloat-1: inputs a, b, their scales, zero points, a bias."""
    _integers(node, 0, 1)
    node.require_float32(2, 3)
    zero = node.input(5) if node.has(5) else None
    left = _row_scale(node, 2)
    return _scale_product(node, node.input(0), left, _row_zero(node, 4), (3, zero, 6))


def _dynamic_product(node: NodeView) -> IrTensor:
    """com.microsoft DynamicQuantizeMatMul-1: inputs a, b, b's scale and zero point, a bias."""
    _integers(node, 1)
    node.require_float32(0, 2)
    steps, scale, place = dynamic_steps(node, node.input(0))
    zero = node.input(3) if node.has(3) else None
    return _scale_product(node, steps, scale, place, (2, zero, 4))


def _row_scale(node: NodeView, position: int) -> IrTensor:
    """The scale of a left operand, as `_row_zero` has its zero point."""
    scale = _row_zero(node, position)
    assert scale is not None, "a scale is required"
    return scale


def _scale_product(
    node: NodeView,
    a: IrTensor,
    scale: IrTensor,
    zero: IrTensor | None,
    right: tuple[int, IrTensor | None, int],
) -> IrTensor:
    """The product with input 1 as float32.

    Args:
        node: Where to emit.
        a: 8-bit integers [..., M, K].
        scale: Of `a`, [] or [M, 1].
        zero: Likewise.
        right: Position of input 1's scale, its zero point, position of the bias.
    """
    b_scale, b_zero, bias = right
    total = integer_product(node, a, zero, node.input(1), b_zero)
    operands = [total, scale, node.input(b_scale)]
    if node.has(bias):
        node.require_float32(bias)
        operands.append(node.input(bias))

    def write(sum_: Expr, left: Expr, other: Expr, *added: Expr) -> Expr:
        value = call("cast", sum_, dtype="float32")
        value = call("mul", value, call("mul", left, other))
        return call("add", value, added[0]) if added else value

    return node.pointwise(write, operands, "float32")


CONTRIB: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "DynamicQuantizeMatMul": _dynamic_product,
    "MatMulIntegerToFloat": _product_to_float,
}
LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _qlinear_matmul,
    "ConvInteger": _conv_integer,
    "QLinearConv": _qlinear_conv,
}
