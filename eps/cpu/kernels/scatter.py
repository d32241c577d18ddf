"""Operators that write updates at indices of a copy."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import axis_in
from eps.cpu.kernels.gather import element_places, slice_places
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

REDUCTIONS: Mapping[str, np.ufunc | None] = MappingProxyType(
    {
        "none": None,
        "add": np.add,
        "mul": np.multiply,
        "max": np.maximum,
        "min": np.minimum,
    }
)


def _reduction(info: KernelInfo) -> np.ufunc | None:
    name = info.attr("reduction", "none")
    if name not in REDUCTIONS:
        raise ValueError(
            f"{info.op_type}: reduction is '{name}', expected one of {', '.join(REDUCTIONS)}"
        )
    return REDUCTIONS[name]


def _write(target: Array, places: Any, updates: Array, reduction: np.ufunc | None) -> None:  # noqa: ANN401 - any index
    if reduction is None:
        target[places] = updates
    else:
        reduction.at(target, places, updates)


def _scatter_elements(info: KernelInfo) -> KernelFn:
    axis, reduction = info.attr("axis", 0), _reduction(info)

    def scatter_elements(x: Array, indices: Array, updates: Array) -> Array:
        if indices.shape != updates.shape:
            raise ValueError(f"indices {indices.shape} and updates {updates.shape} differ")
        result = np.array(x, order="C")
        places = element_places(x.shape, indices, axis_in(axis, x.ndim))
        _write(result.reshape(-1), places.reshape(-1), updates.reshape(-1), reduction)
        return result

    return scatter_elements


def _scatter_nd(info: KernelInfo) -> KernelFn:
    reduction = _reduction(info)

    def scatter_nd(x: Array, indices: Array, updates: Array) -> Array:
        expected = indices.shape[:-1] + x.shape[indices.shape[-1] :]
        if updates.shape != expected:
            raise ValueError(f"updates have shape {updates.shape}, expected {expected}")
        result = np.array(x, order="C")
        places, size = slice_places(x.shape, indices)
        if size and places.size:
            flat = updates.reshape(-1, size)
            _write(result.reshape(-1, size), places.reshape(-1), flat, reduction)
        return result

    return scatter_nd


def _tensor_scatter(info: KernelInfo) -> KernelFn:
    """ONNX TensorScatter-24: updates of a cache along one axis, per batch entry."""
    axis, mode = info.attr("axis", -2), info.attr("mode", "linear")
    if mode not in ("linear", "circular"):
        raise ValueError(f"TensorScatter: mode is '{mode}', expected 'linear' or 'circular'")

    def tensor_scatter(past: Array, update: Array, starts: Array | None = None) -> Array:
        at = axis_in(axis, past.ndim)
        if at == 0:
            raise ValueError("TensorScatter: axis is the batch axis")
        result = past.copy()
        size, count = past.shape[at], update.shape[at]
        first = [0] * past.shape[0] if starts is None else integers(starts)
        for batch, start in enumerate(first):
            places = np.arange(start, start + count)
            if mode == "circular":
                places %= size
            elif start < 0 or start + count > size:
                raise IndexError(f"writing [{start}, {start + count}) of a cache of {size}")
            target = np.moveaxis(result[batch], at - 1, 0)
            target[places] = np.moveaxis(update[batch], at - 1, 0)
        return result

    return tensor_scatter


KERNELS: tuple[KernelDef, ...] = (
    kernel("Scatter", since=(9, 11))(_scatter_elements),
    kernel("ScatterElements", since=(11, 18))(_scatter_elements),
    kernel("ScatterND", since=(11, 18))(_scatter_nd),
    kernel("TensorScatter", since=(24, 24))(_tensor_scatter),
)
