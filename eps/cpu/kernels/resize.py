"""Resize and Upsample, all versions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.arrays import Array, axis_in, check_allocation, is_floating, widen_floats
from eps.cpu.interpolation import AxisResize, Interpolation, source_places
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Empty
    from ort_lite.ep import KernelFn, KernelInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resizer:
    """A node's attributes.

    Attributes:
        policy: keep_aspect_ratio_policy.
        extrapolation: Value of what lies outside under tf_crop_and_resize.
    """

    interpolation: Interpolation
    axes: Sequence[int] | None = None
    policy: str = "stretch"
    extrapolation: float = 0.0
    empty: Empty = np.empty

    def run(self, x: Array, roi: Array | None, scales: Array | None, sizes: Array | None) -> Array:
        """`x` resized; `scales` or `sizes` are for the node's axes, as is `roi`."""
        chosen = range(x.ndim) if self.axes is None else [axis_in(a, x.ndim) for a in self.axes]
        dims = [x.shape[a] for a in chosen]
        pairs = self._lengths(dims, scales, sizes)
        regions = _regions(roi, len(dims)) if roi is not None and roi.size else None
        plan = {
            at: AxisResize(
                size=dims[i],
                length=pairs[i][0],
                scale=pairs[i][1],
                roi=regions[i] if regions else (0.0, 1.0),
            )
            for i, at in enumerate(chosen)
        }
        lengths = [plan[d].length if d in plan else n for d, n in enumerate(x.shape)]
        check_allocation(lengths, x.dtype)
        if 0 in lengths:
            return np.empty(lengths, x.dtype)
        return self._resize_axes(x, plan)

    def _resize_axes(self, x: Array, plan: dict[int, AxisResize]) -> Array:
        cropping = self.interpolation.transformation == "tf_crop_and_resize"
        nearest = self.interpolation.mode == "nearest"
        result = x if nearest else _as_float(x)
        for at, axis in sorted(plan.items(), key=lambda item: item[1].scale):
            if axis.length != axis.size or axis.scale != 1 or cropping:
                result = self.interpolation.resize(result, at, axis, self.empty)
        if cropping:
            result = self._extrapolate(result, plan)
        return result if nearest else _as_type(result, x)

    def _lengths(
        self, dims: Sequence[int], scales: Array | None, sizes: Array | None
    ) -> list[tuple[int, float]]:
        """New length and scale for each axis."""
        if sizes is not None and sizes.size:
            lengths = integers(sizes)
            if len(lengths) != len(dims):
                raise ValueError(f"{len(lengths)} sizes for {len(dims)} axes")
            ratios = [w / d if d else 0.0 for w, d in zip(lengths, dims, strict=True)]
            if self.policy == "stretch":
                return list(zip(lengths, ratios, strict=True))
            ratio = min(ratios) if self.policy == "not_larger" else max(ratios)
            return [(math.floor(ratio * d + 0.5), ratio) for d in dims]
        if scales is None or not scales.size:
            raise ValueError("Either `sizes` or `scales` must be provided, but not both of them")
        factors = scales.reshape(-1).tolist()
        if len(factors) != len(dims):
            raise ValueError(f"{len(factors)} scales for {len(dims)} axes")
        if any(not factor > 0 for factor in factors):
            raise ValueError(f"Scale value should be greater than 0: {factors}")
        single = np.float32
        return [(int(single(f) * single(d)), f) for f, d in zip(factors, dims, strict=True)]

    def _extrapolate(self, result: Array, plan: dict[int, AxisResize]) -> Array:
        """`extrapolation` wherever a place of any axis lies outside the tensor."""
        outside = np.zeros((), np.bool_)
        for at, axis in plan.items():
            places = source_places("tf_crop_and_resize", axis)
            beyond = (places < 0) | (places > axis.size - 1)
            outside = outside | beyond.reshape((-1,) + (1,) * (result.ndim - at - 1))
        return np.where(outside, result.dtype.type(self.extrapolation), result)


def _regions(roi: Array, count: int) -> list[tuple[float, float]]:
    edges = roi.reshape(-1).tolist()
    if len(edges) != 2 * count:
        raise ValueError(f"roi has {len(edges)} entries for {count} axes")
    return list(zip(edges[:count], edges[count:], strict=True))


def _as_float(x: Array) -> Array:
    """`x` in float32, or float64 where it is that."""
    wide: Array = widen_floats(x)
    return wide if is_floating(wide.dtype) else wide.astype(np.float32)


def _as_type(result: Array, x: Array) -> Array:
    """Back to the type of `x`; integers are clamped, and cut like a C cast."""
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        result = np.clip(result, info.min, info.max)
    return result.astype(x.dtype, copy=False)


def _interpolation(info: KernelInfo) -> Interpolation:
    mode = info.attr("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise ValueError(f"Resize: mode is '{mode}', expected nearest, linear or cubic")
    return Interpolation(
        mode=mode,
        transformation=info.attr("coordinate_transformation_mode", "half_pixel"),
        nearest_mode=info.attr("nearest_mode", "round_prefer_floor"),
        cubic_a=float(info.attr("cubic_coeff_a", -0.75)),
        exclude_outside=bool(info.attr("exclude_outside", 0)),
        antialias=bool(info.attr("antialias", 0)),
    )


def _resize(info: KernelInfo) -> KernelFn:
    """ONNX Resize-11."""
    resizer = _Resizer(
        interpolation=_interpolation(info),
        axes=info.attr("axes"),
        policy=info.attr("keep_aspect_ratio_policy", "stretch"),
        extrapolation=float(info.attr("extrapolation_value", 0.0)),
        empty=info.empty,
    )
    return lambda x, roi=None, scales=None, sizes=None: resizer.run(x, roi, scales, sizes)


def _legacy(info: KernelInfo) -> _Resizer:
    """Upsample and Resize-10 know only scales, from the corner."""
    mode = "linear" if info.attr("mode", "nearest") in ("linear", "bilinear") else "nearest"
    return _Resizer(
        interpolation=Interpolation(mode=mode, transformation="asymmetric", nearest_mode="simple"),
        empty=info.empty,
    )


def _scales_from_input(info: KernelInfo) -> KernelFn:
    """ONNX Resize-10 and Upsample-9: scales are an input."""
    resizer = _legacy(info)
    return lambda x, scales: resizer.run(x, None, scales, None)


def _scales_from_attribute(info: KernelInfo) -> KernelFn:
    """ONNX Upsample-7 (`scales`), and 1 (`height_scale`, `width_scale`)."""
    resizer = _legacy(info)
    if info.since_version >= 7:
        scales = np.array(info.attr("scales"), np.float32)
    else:
        scales = np.array([1, 1, info.attr("height_scale"), info.attr("width_scale")])
    return lambda x: resizer.run(x, None, scales, None)


KERNELS: tuple[KernelDef, ...] = (
    kernel("Resize", since=(10, 10))(_scales_from_input),
    kernel("Resize", since=(11, 19))(_resize),
    kernel("Upsample", since=(1, 7))(_scales_from_attribute),
    kernel("Upsample", since=(9, 10))(_scales_from_input),
)
