"""What a tensor of floats was dequantised from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from eps.opencl.compile.ir import Tensor

    Array = np.ndarray[Any, np.dtype[Any]]

EIGHT_BITS = ("int8", "uint8")
"""Element types of quantised tensors that kernels multiply as integers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Which float an integer stands for: (integer - zero) * scale.

    Attributes:
        dtype: Of the integers, one of `EIGHT_BITS`.
        scale: float32, of one element or one for each index of `axis`.
        zero: int32, of the shape of `scale`.
        axis: From the front; None where one scale is for all.
    """

    dtype: str
    scale: Array
    zero: Array
    axis: int | None

    def equal(self, other: Steps) -> bool:
        """Whether equal integers stand for equal floats in both."""
        return (
            (self.dtype, self.axis) == (other.dtype, other.axis)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero, other.zero)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Quantised:
    """Integers of the shape of a tensor, and the steps by which they stand for its floats."""

    integers: Tensor
    steps: Steps
