"""Products with the weights of some of many experts, as an operation of the kernel graph."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.ir import Op


@dataclass(eq=False, slots=True, kw_only=True)
class ExpertMatMul(Op):
    """Products with the weights of the experts that each token has: MoE and QMoE.

    inputs[0] are tokens [T, K], or [T, top, K] with a row for each of its experts; inputs[1] the
    experts [T, top], int64, all in range; inputs[2] constant weights [experts, N, K] of floats, or
    [experts, N, blocks * block * bits / 8] of bytes. The output is [T, top, N].

    Attributes:
        bits: 4, 8, or 32 for floats.
        block: Weights that are summed before they are scaled; the last block may be partial.
        scales: Input of the scales [experts, N, blocks], or [experts, N, 1]; 0 for none.
        zeros: Input of zero points of the shape of scales, uint8; 0 for half of the range.
        bias: Input [experts, N], a constant; 0 for none.
        pairs: Whether columns 0, 2, 4... come first in the output, and 1, 3, 5... after them.
    """

    bits: int
    block: int
    scales: int = 0
    zeros: int = 0
    bias: int = 0
    pairs: bool = False
