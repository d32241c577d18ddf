"""Einsum, through matrix products wherever two operands meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation, computing_wide, is_floating
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def _einsum(info: KernelInfo) -> KernelFn:
    """ONNX Einsum-12; numpy's own order of contraction, which uses BLAS where it can."""
    equation = info.attr("equation").replace(" ", "")

    def einsum(*operands: Array) -> Array:
        shape = result_shape(equation, [x.shape for x in operands])
        check_allocation(shape, operands[0].dtype)
        wide = operands
        kind = operands[0].dtype
        if kind.itemsize < 8 and not is_floating(kind):  # sums of small integers wrap late
            wide = tuple(x.astype(np.int64) for x in operands)
        result = np.einsum(equation, *wide, optimize=len(operands) > 1)
        return np.asarray(result).astype(kind, copy=False)

    return computing_wide(info, einsum)


def result_shape(equation: str, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that `equation`, without spaces, gives from operands of those shapes.

    Intermediate results are no larger than the largest operand or the result: numpy's own limit.

    Raises:
        ValueError: Terms and operands differ in number, or the result has a label of none.
    """
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"equation '{equation}' for {len(shapes)} operands")
    sizes: dict[str, int] = {}
    spare: tuple[int, ...] = ()
    for term, shape in zip(terms, shapes, strict=True):
        before, dots, after = term.partition("...")
        end = len(shape) - len(after)
        if dots:
            spare = np.broadcast_shapes(spare, tuple(shape[len(before) : end]))
        lengths = (*shape[: len(before)], *shape[max(end, 0) :])
        for label, size in zip(before + after, lengths, strict=False):
            sizes[label] = max(sizes.get(label, 0), size)
    if not arrow:
        once = "".join(sorted(label for label in sizes if left.count(label) == 1))
        right = "..." + once
    before, dots, after = right.partition("...")
    unknown = {*before, *after} - {*sizes}
    if unknown:
        raise ValueError(f"equation '{equation}': no input has {', '.join(sorted(unknown))}")
    middle = spare if dots else ()
    return (*(sizes[label] for label in before), *middle, *(sizes[label] for label in after))


KERNELS: tuple[KernelDef, ...] = (kernel("Einsum", since=(12, 28))(_einsum),)
