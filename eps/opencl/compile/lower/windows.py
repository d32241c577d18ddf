"""Attributes of sliding windows, in one or two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.ir import IrTensor, Unsupported, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from eps.opencl.compile.lower.node import NodeView


def pair(node: NodeView, name: str, default: int) -> tuple[int, int]:
    """An attribute for (rows, columns); of one number, for columns."""
    attribute = node.attr(name)
    values = [default, default] if not attribute else [int(v) for v in attribute]
    if len(values) == 1:
        values = [default, *values]
    if len(values) != 2:
        raise Unsupported(f"{name} of {len(values)} dimensions")
    return values[0], values[1]


def explicit_pads(node: NodeView, pads: Sequence[int] | None) -> tuple[int, int, int, int]:
    """`pads` as (top, left, bottom, right); none if it is None."""
    if not pads:
        return 0, 0, 0, 0
    if len(pads) == 2:
        return 0, int(pads[0]), 0, int(pads[1])
    if len(pads) != 4 or min(pads) < 0:
        raise Unsupported(f"{node.node.op_type} with pads {list(pads)}")
    return int(pads[0]), int(pads[1]), int(pads[2]), int(pads[3])


def window_output(shape: Sequence[int], window: Window, *, ceil: bool = False) -> tuple[int, int]:
    """Rows and columns of a window's output: ONNX Conv, MaxPool."""
    sizes = []
    for axis in (0, 1):
        reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1
        n = shape[2 + axis] + window.pads[axis] + window.pads[axis + 2]
        stride = window.strides[axis]
        count = (-(-(n - reach) // stride) if ceil else (n - reach) // stride) + 1
        if ceil and (count - 1) * stride >= shape[2 + axis] + window.pads[axis]:
            count -= 1  # a window that starts in the padding after the end is left out
        if n < reach or count < 1:
            raise Unsupported(f"a window of {reach} over {n} elements")
        sizes.append(count)
    return sizes[0], sizes[1]


def window_over(node: NodeView, x: IrTensor, kernel: tuple[int, int]) -> Window:
    """ONNX Conv's or a pooling's window over x [N, C, H, W], by `auto_pad` or `pads`."""
    strides, dilations = pair(node, "strides", 1), pair(node, "dilations", 1)
    mode = node.attr("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        sides = []
        for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            small, large = total // 2, total - total // 2
            sides.append((small, large) if mode == "SAME_UPPER" else (large, small))
        pads = (sides[0][0], sides[1][0], sides[0][1], sides[1][1])
    else:
        pads = explicit_pads(node, node.attr("pads") if mode == "NOTSET" else None)
    return Window(kernel=kernel, strides=strides, dilations=dilations, pads=pads)


def conv_window(node: NodeView, x: IrTensor, weights: np.ndarray) -> Window:
    """ONNX Conv's window with weights [O, C/groups, kh, kw]; else as `window_over`."""
    return window_over(node, x, (weights.shape[2], weights.shape[3]))


def as_image(node: NodeView, x: IrTensor) -> IrTensor:
    """[N, C, L] as [N, C, 1, L]."""
    if len(x.shape) == 3:
        return node.reshape(x, (*x.shape[:2], 1, x.shape[2]))
    if len(x.shape) != 4:
        raise Unsupported(f"a convolution of rank {len(x.shape)}")
    return x


def image_weights(weights: np.ndarray) -> np.ndarray:
    """[O, C, L] as [O, C, 1, L]."""
    return weights if weights.ndim == 4 else weights[:, :, None, :]
