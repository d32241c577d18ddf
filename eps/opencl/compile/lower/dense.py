"""Matrix products and convolutions."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.ir import (
    Convolution,
    IrTensor,
    MatMul,
    Permute,
    Stretch,
    TransposedConvolution,
    Unsupported,
    Window,
)
from eps.opencl.compile.lower.node import NodeView, broadcast_shape, call, constant, number
from eps.opencl.compile.lower.windows import (
    as_image,
    conv_window,
    explicit_pads,
    image_weights,
    pair,
    window_output,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def _matmul(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    return product(node, node.input(0), node.input(1))


def product(node: NodeView, a: IrTensor, b: IrTensor) -> IrTensor:
    """numpy's matmul; of integers as int32."""
    if not a.shape or not b.shape:
        raise Unsupported("a matrix product of a scalar")
    rows = a if len(a.shape) > 1 else node.reshape(a, (1, *a.shape))
    columns = b if len(b.shape) > 1 else node.reshape(b, (*b.shape, 1))
    if rows.shape[-1] != columns.shape[-2]:
        raise Unsupported(f"a matrix product of {a.shape} and {b.shape}")
    batch = broadcast_shape(rows.shape[:-2], columns.shape[:-2])
    m, k, n = *rows.shape[-2:], columns.shape[-1]
    if all(x == 1 for x in columns.shape[:-2]) and prod(rows.shape[:-2]) != 1:
        rows, columns = (  # one matrix for all: the batch is more rows
            node.reshape(rows, (rows.size // max(k, 1) if k else 0, k)),
            node.reshape(columns, (k, n)),
        )
        if not k:
            raise Unsupported("a matrix product over nothing")
    else:
        rows = _stretch(node, rows, (*batch, m, k))
        columns = _stretch(node, columns, (*batch, k, n))
    sums = "float32" if a.dtype == "float32" else "int32"
    output = IrTensor((*rows.shape[:-1], n), sums)
    if not k:
        raise Unsupported("a matrix product over nothing")
    node.emit(MatMul((rows, columns), output))
    shape = [*batch, m, n]
    if len(a.shape) == 1:
        del shape[-2]
    if len(b.shape) == 1:
        del shape[-1]
    return node.reshape(output, shape)


def _stretch(node: NodeView, x: IrTensor, shape: Sequence[int]) -> IrTensor:
    if x.shape == tuple(shape):
        return x
    if x.constant is not None:
        return constant(np.broadcast_to(x.constant, shape))
    return node.alias(x, Stretch(tuple(shape)), shape)


def transpose(node: NodeView, x: IrTensor, axes: Sequence[int]) -> IrTensor:
    """numpy's transpose."""
    axes = tuple(axes)
    if sorted(axes) != list(range(len(x.shape))):
        raise Unsupported(f"perm {list(axes)} for a tensor of rank {len(x.shape)}")
    if axes == tuple(range(len(axes))):
        return x
    if x.constant is not None:
        return constant(np.transpose(x.constant, axes))
    return node.alias(x, Permute(axes), [x.shape[a] for a in axes])


def _swap_axes(node: NodeView, x: IrTensor) -> IrTensor:
    rank = len(x.shape)
    return transpose(node, x, (*range(rank - 2), rank - 1, rank - 2))


def _scale(node: NodeView, x: IrTensor, factor: float) -> IrTensor:
    if factor == 1.0:
        return x
    return node.pointwise(lambda a: call("mul", a, number(factor, a)), [x])


def _gemm(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    a, b = node.input(0), node.input(1)
    if node.opset < 7 and node.has(2) and len(node.input(2).shape) != 2 and node.opset < 6:
        raise Unsupported("Gemm before opset 6")
    if node.attr("transA", 0):
        a = _swap_axes(node, a)
    if node.attr("transB", 0):
        b = _swap_axes(node, b)
    result = _scale(node, product(node, a, b), node.attr("alpha", 1.0))
    if not node.has(2):
        return result
    node.require_float32(2)
    bias = _scale(node, node.input(2), node.attr("beta", 1.0))
    return node.pointwise(lambda x, y: call("add", x, y), [result, bias])


def _fused_matmul(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    a, b = node.input(0), node.input(1)
    if node.attr("transBatchA", 0) or node.attr("transBatchB", 0):
        raise Unsupported("FusedMatMul with a transposed batch")
    if node.attr("transA", 0) and len(a.shape) > 1:
        a = _swap_axes(node, a)
    if node.attr("transB", 0) and len(b.shape) > 1:
        b = _swap_axes(node, b)
    return _scale(node, product(node, a, b), node.attr("alpha", 1.0))


def _conv(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    x, w = as_image(node, node.input(0)), node.input(1)
    weights = image_weights(node.constant(1, "the weight of a convolution"))
    groups = node.attr("group", 1)
    if x.shape[1] != weights.shape[1] * groups or weights.shape[0] % groups:
        raise Unsupported(f"{x.shape[1]} channels, {groups} groups, weights {w.shape}")
    window = conv_window(node, x, weights)
    rows, columns = window_output(x.shape, window)
    output = IrTensor((x.shape[0], weights.shape[0], rows, columns), "float32")
    node.emit(Convolution((x, constant(weights)), output, window, groups))
    return _finish(node, output)


def _conv_transpose(node: NodeView) -> IrTensor:
    node.require_float32(0, 1)
    x = as_image(node, node.input(0))
    weights = image_weights(node.constant(1, "the weight of a transposed convolution"))
    groups = node.attr("group", 1)
    if x.shape[1] != weights.shape[0] or weights.shape[0] % groups:
        raise Unsupported(f"{x.shape[1]} channels, {groups} groups, weights {weights.shape}")
    strides, dilations = pair(node, "strides", 1), pair(node, "dilations", 1)
    kernel = (weights.shape[2], weights.shape[3])
    extra, output_shape = pair(node, "output_padding", 0), node.attr("output_shape")
    full = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(x.shape[2:], strides, kernel, dilations, extra, strict=True)
    ]
    pads = _transposed_pads(node, full, output_shape)
    size = [full[i] - pads[i] - pads[i + 2] for i in (0, 1)]
    if min(size) < 1 or min(pads) < 0:
        raise Unsupported(f"a transposed convolution of pads {pads}")
    window = Window(kernel=kernel, strides=strides, dilations=dilations, pads=pads)
    output = IrTensor((x.shape[0], weights.shape[1] * groups, *size), "float32")
    node.emit(TransposedConvolution((x, constant(weights)), output, window, groups))
    return _finish(node, output)


def _transposed_pads(
    node: NodeView, full: Sequence[int], output_shape: Sequence[int] | None
) -> tuple[int, int, int, int]:
    """ONNX ConvTranspose: `output_shape` wins over `pads`."""
    mode = node.attr("auto_pad", "NOTSET")
    if output_shape is None and mode in ("NOTSET", "VALID", ""):
        pads = node.attr("pads") if mode == "NOTSET" else None
        return explicit_pads(node, pads)
    strides, rank = pair(node, "strides", 1), len(node.input(0).shape) - 2
    shape = [n * s for n, s in zip(_as_sizes(node), strides, strict=True)]
    if output_shape is not None:
        shape = [1] * (2 - rank) + [int(v) for v in output_shape][-rank:]
    begins, ends = [], []
    for f, n in zip(full, shape, strict=True):
        total = max(f - n, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if mode == "SAME_UPPER" else large)
        ends.append(large if mode == "SAME_UPPER" else small)
    if output_shape is not None and mode in ("NOTSET", "SAME_LOWER"):
        raise Unsupported("output_shape with an uneven rest on this side")
    return begins[0], begins[1], ends[0], ends[1]


def _as_sizes(node: NodeView) -> list[int]:
    shape = node.input(0).shape[2:]
    return [1, *shape] if len(shape) == 1 else list(shape)


def _finish(node: NodeView, output: IrTensor) -> IrTensor:
    """Bias added, and [N, C, 1, L] as [N, C, L] again."""
    if node.has(2):
        bias = node.reshape(
            node.input(2), (-1 if not node.input(2).shape else output.shape[1], 1, 1)
        )
        output = node.pointwise(lambda a, b: call("add", a, b), [output, bias])
    if len(node.input(0).shape) == 3:
        return node.reshape(output, (*output.shape[:2], output.shape[3]))
    return output


LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
}
CONTRIB: Mapping[str, Callable[[NodeView], IrTensor]] = {"FusedMatMul": _fused_matmul}
