"""Products with weights of few bits, which are unpacked a panel of columns at a time.

The floats of a panel stay in a core's cache. Those of a whole matrix would go to memory and back
for each step of unpacking and for the product, which takes three times as long with one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.products import matmul

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelInfo

PANEL_BYTES = 1 << 19
"""Size of a panel as floats: a core's second cache, on most CPUs."""


def unpack_bits(packed: Array, bits: int) -> Array:
    """Steps of `bits` bits, those in a byte's low bits first, along the last axis.

    Args:
        packed: uint8.
        bits: 2, 4 or 8.
    """
    if bits == 8:
        return packed
    # A byte becomes two of half as many bits, which are in the low and the high one of 16.
    words = packed.astype("<u2", order="C")
    words |= words << 4
    words &= 0x0F0F
    halves = words.view(np.uint8)
    if bits == 4:
        return halves
    words = halves.astype("<u2")
    words |= words << 6
    words &= 0x0303
    return words.view(np.uint8)


def scale_steps(steps: Array, shift: Array, factor: Array) -> Array:
    """(steps - shift) * factor, as float32 [columns, K].

    Args:
        steps: uint8 [columns, blocks, size of a block].
        shift: float32 [columns, blocks, 1], or 1 in place of a dimension.
        factor: As `shift`.
    """
    panel = np.subtract(steps, shift, dtype=np.float32)
    panel *= factor
    return panel.reshape(len(panel), -1)


def multiply_by_panels(
    x: Array, width: int, unpack: Callable[[slice], Array], info: KernelInfo
) -> Array:
    """The product [rows, width] of x with a matrix.

    Args:
        x: float32 [rows, K].
        width: Columns of the matrix.
        unpack: Makes float32 [columns, K] of a range of columns.
        info: Of the kernel that computes it.
    """
    result: Array = info.empty((len(x), width), np.float32)
    step = max(1, PANEL_BYTES // (4 * max(1, x.shape[1])))
    for begin in range(0, width, step):
        columns = slice(begin, min(begin + step, width))
        result[:, columns] = matmul(x, unpack(columns).T)
    return result
