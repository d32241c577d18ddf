"""Einsum, through matrix products wherever two operands meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import computing_wide, is_floating
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelFn, KernelInfo


def _einsum(info: KernelInfo) -> KernelFn:
    """ONNX Einsum-12; numpy's own order of contraction, which uses BLAS where it can."""
    equation = info.attr("equation").replace(" ", "")

    def einsum(*operands: Array) -> Array:
        wide = operands
        kind = operands[0].dtype
        if kind.itemsize < 8 and not is_floating(kind):  # sums of small integers wrap late
            wide = tuple(x.astype(np.int64) for x in operands)
        result = np.einsum(equation, *wide, optimize=len(operands) > 1)
        return np.asarray(result).astype(kind, copy=False)

    return computing_wide(info, einsum)


KERNELS: tuple[KernelDef, ...] = (kernel("Einsum", since=(12, 28))(_einsum),)
