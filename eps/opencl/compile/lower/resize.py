"""Resize and Upsample as weighted sums of neighbours, each axis independently."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.ir import IrTensor, Sample, Unsupported
from eps.opencl.compile.lower.node import NodeView, normal_axis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Taps = list[tuple[int, float]]

_NEAREST: Mapping[str, Callable[[float], float]] = {
    "round_prefer_floor": lambda x: ceil(x - 0.5),
    "round_prefer_ceil": lambda x: floor(x + 0.5),
    "floor": floor,
    "ceil": ceil,
}


def _resize(node: NodeView) -> IrTensor:
    x = node.input(0)
    node.require_float32(0)
    for name, default in (("antialias", 0), ("exclude_outside", 0)):
        if node.attr(name, default):
            raise Unsupported(f"Resize with {name}")
    if node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unsupported("Resize that keeps the aspect ratio")
    shape, scales = _target(node, x)
    return _sample(node, x, shape, scales)


def _target(node: NodeView, x: IrTensor) -> tuple[list[int], list[float]]:
    """Output shape and scale of every axis: ONNX Resize-18."""
    rank = len(x.shape)
    first = 2 if node.opset >= 11 else 1
    attribute = node.attr("axes")
    axes = [normal_axis(int(a), rank) for a in attribute] if attribute else list(range(rank))
    shape, scales = list(x.shape), [1.0] * rank
    if node.has(first + 1) and node.input(first + 1).size:
        for axis, size in zip(axes, node.integers(first + 1, "the sizes"), strict=True):
            shape[axis], scales[axis] = size, size / x.shape[axis]
    else:
        values = node.constant(first, "the scales").reshape(-1)
        for axis, scale in zip(axes, values, strict=True):
            shape[axis], scales[axis] = _scaled_size(x.shape[axis], scale), float(scale)
    return shape, scales


def _scaled_size(size: int, scale: float) -> int:
    """Size of an axis after scaling; in float32, as ONNX Runtime and onnx's inference have it."""
    return floor(np.float32(size) * np.float32(scale))


def _upsample(node: NodeView) -> IrTensor:
    x = node.input(0)
    node.require_float32(0)
    scales = node.attr("scales")
    if scales is None:
        scales = node.constant(1, "the scales").reshape(-1)
    values = [float(s) for s in scales]
    shape = [_scaled_size(n, s) for n, s in zip(x.shape, values, strict=True)]
    return _sample(node, x, shape, values)


def _sample(node: NodeView, x: IrTensor, shape: list[int], scales: list[float]) -> IrTensor:
    if tuple(shape) == x.shape and all(s == 1.0 for s in scales):
        return x
    taps = [
        _axis_taps(node, n, m, scale) for n, m, scale in zip(x.shape, shape, scales, strict=True)
    ]
    output = IrTensor(tuple(shape), x.dtype)
    sources = tuple(tuple(tuple(i for i, _ in t) for t in axis) for axis in taps)
    weights = tuple(tuple(tuple(w for _, w in t) for t in axis) for axis in taps)
    node.emit(Sample((x,), output, sources, weights))
    return output


def _axis_taps(node: NodeView, n: int, m: int, scale: float) -> Sequence[Taps]:
    """Input indices and weights of each output index, on an axis of n elements."""
    if n == m and scale == 1.0:
        return [[(i, 1.0)] for i in range(n)]
    mode = node.attr("mode", "nearest")
    taps = []
    for at in _coordinates(node, n, m, scale):
        if mode == "nearest":
            rule = node.attr("nearest_mode", "round_prefer_floor")
            if node.node.op_type == "Upsample" or node.opset < 11:
                rule = "floor"
            taps.append([(min(max(int(_NEAREST[rule](at)), 0), n - 1), 1.0)])
        elif mode == "linear":
            taps.append(_linear(at, n))
        elif mode == "cubic":
            taps.append(_cubic(at, n, node.attr("cubic_coeff_a", -0.75)))
        else:
            raise Unsupported(f"mode {mode}")
    return taps


def _coordinates(node: NodeView, n: int, m: int, scale: float) -> Sequence[float]:
    """Place among the n elements of an axis of each of the m new ones.

    Computed in float32 as ONNX Runtime does, so that places between two elements fall on the same
    side. Where corners are aligned the new length is taken before rounding, as in onnx.reference.
    """
    old = node.node.op_type == "Upsample" or node.opset < 11
    mode = "asymmetric" if old else node.attr("coordinate_transformation_mode", "half_pixel")
    x, ratio, size = np.arange(m, dtype=np.float32), np.float32(scale), np.float32(n)
    half, one = np.float32(0.5), np.float32(1)
    centres = (x + half) / ratio - half
    if mode == "asymmetric":
        places = x / ratio
    elif mode == "align_corners":
        exact = ratio * size
        places = x * (size - one) / (exact - one) if exact != 1 else np.zeros_like(x)
    elif mode == "pytorch_half_pixel":
        places = centres if m > 1 else np.zeros_like(x)
    elif mode == "half_pixel":
        places = centres
    elif mode == "half_pixel_symmetric":
        places = size / np.float32(2) * (one - np.float32(m) / (ratio * size)) + centres
    else:
        raise Unsupported(f"coordinates {mode}")
    return [float(place) for place in places]


def _linear(at: float, n: int) -> Taps:
    low = floor(at)
    rest = at - low
    first, second = (min(max(k, 0), n - 1) for k in (low, low + 1))
    if rest == 0.0 or first == second:
        return [(first, 1.0)]
    return [(first, 1.0 - rest), (second, rest)]


def _cubic(at: float, n: int, a: float) -> Taps:
    low = floor(at)
    r = at - low
    weights = (
        ((a * (r + 1) - 5 * a) * (r + 1) + 8 * a) * (r + 1) - 4 * a,
        ((a + 2) * r - (a + 3)) * r * r + 1,
        ((a + 2) * (1 - r) - (a + 3)) * (1 - r) * (1 - r) + 1,
        ((a * (2 - r) - 5 * a) * (2 - r) + 8 * a) * (2 - r) - 4 * a,
    )
    return [(min(max(low - 1 + k, 0), n - 1), w) for k, w in enumerate(weights)]


LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {"Resize": _resize, "Upsample": _upsample}
