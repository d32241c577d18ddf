"""Between floats and integers: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.ir import EIGHT_BITS, IrTensor, Quantised, QuantParams, Unsupported
from eps.opencl.compile.lower.node import NodeView, call, constant, normal_axis, number
from eps.opencl.compile.lower.pooling import reduce_axes
from ort_lite.ep import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.expression import Expr

    Result = IrTensor | Sequence[IrTensor]
    Array = np.ndarray[Any, np.dtype[Any]]

_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}


def _along_axis(node: NodeView, weight: IrTensor, x: IrTensor) -> IrTensor:
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


def _dequantize(node: NodeView) -> IrTensor:
    if node.input(0).dtype not in (*_RANGES, "int32"):
        raise Unsupported(f"input 0 is {node.input(0).dtype}")
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

    output = node.pointwise(write, operands, "float32")
    output.quantised = _origin(node)
    return output


def dequantize_constant(node: NodeView) -> IrTensor | None:
    """The value of a DequantizeLinear of constants; None of types that no kernel takes.

    onnx.reference has the operator from opset 19 on, and would forget the integers.
    """
    x, scale = node.input(0), node.input(1)
    plain = x.dtype in (*_RANGES, "int32") and scale.dtype == "float32"
    if not plain or node.attr("output_dtype") not in (None, 0, 1):
        return None
    scales = _along_axis(node, scale, x).constant
    zeros = _along_axis(node, node.input(2), x).constant if node.has(2) else np.zeros((), np.int32)
    if x.constant is None or scales is None or zeros is None:
        return None
    whole = x.constant.astype(np.int32) - zeros.astype(np.int32)
    output = constant(np.asarray(whole.astype(np.float32) * scales, np.float32))
    output.quantised = _origin(node)
    return output


def _origin(node: NodeView) -> Quantised | None:
    """The quantised operand of a DequantizeLinear, if kernels can use it directly."""
    steps = _read_params(node, node.input(0).dtype)
    return None if steps is None else Quantised(node.input(0), steps)


def _read_params(node: NodeView, dtype: str) -> QuantParams | None:
    """Of 8-bit integers, for all or along an axis, from inputs 1 and 2."""
    scale = node.input(1).constant
    zero = node.input(2).constant if node.has(2) else np.zeros((), np.int32)
    if dtype not in EIGHT_BITS or scale is None or zero is None or scale.dtype != np.float32:
        return None
    if scale.size != 1 and (node.attr("block_size", 0) or scale.ndim != 1):
        return None
    shape = () if scale.size == 1 else scale.shape
    axis = None if scale.size == 1 else normal_axis(node.attr("axis", 1), len(node.input(0).shape))
    if zero.size != scale.size and zero.size != 1:
        return None
    zero = np.broadcast_to(zero.reshape(() if zero.size == 1 else shape), shape).astype(np.int32)
    return QuantParams(dtype=dtype, scale=scale.reshape(shape), zero=zero, axis=axis)


def saturate(a: Expr, zero: Expr | None, dtype: str) -> Expr:
    """Rounded to the nearest, ties to even, moved by the zero point, held in the range."""
    a = call("round", a)
    if zero is not None:
        a = call("add", a, call("cast", zero, dtype="float32"))
    low, high = _RANGES[dtype]
    a = call("atmost", call("atleast", a, number(low, a)), number(high, a))
    return call("cast", a, dtype=dtype)


def _quantize(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    x = node.input(0)
    dtype = "uint8"
    if node.has(2):
        dtype = node.input(2).dtype
    elif node.attr("output_dtype", 0):
        dtype = numpy_dtype(int(node.attr("output_dtype"))).name
    if dtype not in _RANGES or node.attr("precision", 0) not in (0, 1):
        raise Unsupported(f"QuantizeLinear to {dtype}")
    steps = _read_params(node, dtype)
    if x.quantised is not None and steps is not None and steps.is_equal(x.quantised.steps):
        return x.quantised.integers
    operands = [x, _along_axis(node, node.input(1), x)]
    if node.has(2):
        operands.append(_along_axis(node, node.input(2), x))
    return node.pointwise(
        lambda a, s, *z: saturate(call("div", a, s), z[0] if z else None, dtype),
        operands,
        dtype,
    )


def _dynamic_quantize(node: NodeView) -> list[IrTensor]:
    node.require_float32(0)
    return dynamic_steps(node, node.input(0))


def dynamic_steps(node: NodeView, x: IrTensor) -> list[IrTensor]:
    """uint8 over the range of x, which is widened to hold zero; a range of zero has scale 1.

    Returns:
        x quantised, and the scale and the zero point [].
    """
    axes = range(len(x.shape))
    ends = [node.reshape(reduce_axes(node, x, kind, axes), ()) for kind in ("min", "max")]

    def width(low: Expr, high: Expr) -> Expr:
        top = call("max", high, number(0, high))
        span = call("sub", top, call("min", low, number(0, low)))
        none = call("eq", span, number(0, span), dtype="bool")
        scale = call("div", span, number(255, span))
        return call("where", none, number(1, span), scale, dtype="float32")

    scale = node.pointwise(width, ends)

    def place(low: Expr, s: Expr) -> Expr:
        least = call("min", low, number(0, low))
        return saturate(call("div", call("neg", least), s), None, "uint8")

    zero = node.pointwise(place, [ends[0], scale], "uint8")
    y = node.pointwise(
        lambda a, s, z: saturate(call("div", a, s), z, "uint8"), [x, scale, zero], "uint8"
    )
    return [y, scale, zero]


LOWERINGS: Mapping[str, Callable[[NodeView], Result]] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
}
