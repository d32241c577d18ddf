"""com.microsoft operators that are, or were to become, operators of ONNX; and small others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation
from eps.cpu.kernels import gather, grid, quantize, slicing
from eps.cpu.products import matmul
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def _as_onnx(
    definitions: Sequence[KernelDef], version: int, op_type: str, **defaults: str | int
) -> KernelDef:
    """The kernel for `version` of ONNX's operator of that name, for version 1 of Microsoft's."""
    definition = next(d for d in definitions if d.op_type == op_type and d.serves(version))

    def factory(info: KernelInfo) -> KernelFn | None:
        return definition.factory(
            replace(info, domain="", since_version=version, defaults=defaults)
        )

    return kernel(op_type, domain=DOMAIN)(factory)


def _unique(_: KernelInfo) -> KernelFn:
    """Values in the order of their first occurrence, where each went, and how often: Unique-1."""

    def unique(x: Array) -> tuple[Array, Array, Array]:
        values, first, places, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        return values[order], rank[places.reshape(-1)], counts[order]

    return unique


def _range(_: KernelInfo) -> KernelFn:
    """Range-1; the step is optional, and the inputs may have one dimension."""

    def arange(start: Array, limit: Array, delta: Array | None = None) -> Array:
        step = start.dtype.type(1) if delta is None else delta.reshape(())
        if step == 0:
            raise ValueError("delta in Range operator can not be zero!")
        span = float(limit.reshape(())) - float(start.reshape(()))
        count = max(int(np.ceil(span / float(step))), 0)
        check_allocation((count,), start.dtype)
        return np.asarray(start.reshape(()) + np.arange(count).astype(start.dtype) * step)

    return arange


def _expand_dims(_: KernelInfo) -> KernelFn:
    return lambda x, axis: np.expand_dims(x, int(axis.reshape(())))


def _inverse(_: KernelInfo) -> KernelFn:
    def inverse(x: Array) -> Array:
        wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
        return np.asarray(np.linalg.inv(wide), x.dtype)

    return inverse


def _cdist(info: KernelInfo) -> KernelFn | None:
    """Distances of all rows of A to all rows of B: CDist-1, euclidean or its square."""
    metric = info.attr("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        return None

    def distances(a: Array, b: Array) -> Array:
        square = matmul(a, b.T)
        square *= a.dtype.type(-2)
        square += np.vecdot(a, a)[:, None]
        square += np.vecdot(b, b)
        np.maximum(square, 0, out=square)
        return np.asarray(np.sqrt(square) if metric == "euclidean" else square)

    return distances


def _n_gram_repeat(info: KernelInfo) -> KernelFn:
    """Scores of tokens that would repeat an n-gram become -infinity: NGramRepeatBlock-1."""
    size = int(info.attr("ngram_size"))
    if size < 1:
        raise ValueError(f"NGramRepeatBlock: ngram_size is {size}")

    def block(ids: Array, scores: Array) -> Array:
        result = scores.copy()
        for row, tokens in enumerate(ids):
            if tokens.size < size:
                continue
            grams = np.lib.stride_tricks.sliding_window_view(tokens, size)
            last = tokens[tokens.size - size + 1 :]
            result[row, grams[(grams[:, :-1] == last).all(1), -1]] = -np.inf
        return result

    return block


def _plain(op_type: str, factory: KernelFactory) -> KernelDef:
    return kernel(op_type, domain=DOMAIN)(factory)


KERNELS: tuple[KernelDef, ...] = (
    _as_onnx(quantize.KERNELS, 21, "QuantizeLinear"),
    _as_onnx(quantize.KERNELS, 21, "DequantizeLinear"),
    _as_onnx(slicing.KERNELS, 13, "Pad", mode="constant"),
    _as_onnx(slicing.KERNELS, 14, "Trilu", upper=1),
    _as_onnx(
        grid.KERNELS, 16, "GridSample", mode="bilinear", padding_mode="zeros", align_corners=0
    ),
    _as_onnx(gather.KERNELS, 13, "GatherND", batch_dims=0),
    _plain("Unique", _unique),
    _plain("Range", _range),
    _plain("ExpandDims", _expand_dims),
    _plain("Inverse", _inverse),
    _plain("CDist", _cdist),
    _plain("NGramRepeatBlock", _n_gram_repeat),
)
