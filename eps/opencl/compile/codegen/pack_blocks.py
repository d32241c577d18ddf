"""Weights of 4 or 8 bits, quantised by blocks, packed by panels of columns.

A word of 32 bits has the next 8 or 4 weights of a column; the words of a panel's columns follow
each other, so that vectors of them load at once:

    weights [panel, word of a column, column of the panel]    int
    scales  [panel, block, column of the panel]               float
    zeros   [panel, block, column of the panel]               uchar, or float

The last panel overlaps the one before. All kernels that read such weights share this layout, for
any number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.views import Storage

if TYPE_CHECKING:
    from eps.opencl.compile.decoder_op import BlockGather, BlockMatMul
    from eps.opencl.compile.expert_op import ExpertMatMul
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]

PANEL_VECTORS = 4
"""Vectors of a panel: their sums are the work of one broadcast input."""
DEPTH = 512
"""Largest depth of the floats in private memory."""
STRIP = 2
"""Vectors of a panel that a tile of rows is multiplied by at a time, so that few are loaded."""
WORD = 32
PAGE = 4096
"""Alignment of packed weights, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSizes:
    """Sizes of one product, and of the panels of its weights.

    Attributes:
        rows, depth, width: M, K and N.
        vector: Columns of a vector.
        vectors: Of a panel.
        bits, block: Of a weight, 32 for floats; weights of a block.
        by_columns: Whether all blocks of a column have one scale and zero point.
    """

    rows: int
    depth: int
    width: int
    vector: int
    vectors: int
    bits: int
    block: int
    by_columns: bool = False

    @property
    def is_scaled(self) -> bool:
        """Whether weights are integers, and not floats."""
        return self.bits < WORD

    @property
    def scales(self) -> int:
        """Scales of a column."""
        return 1 if self.by_columns else self.blocks

    @property
    def key(self) -> tuple[int, ...]:
        """All of them: equal ones are divided among work-items in the same way."""
        sizes = (self.rows, self.depth, self.width)
        return (*sizes, self.vector, self.vectors, self.bits, self.block)

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return self.vector * self.vectors

    @property
    def strip(self) -> int:
        """Vectors of a strip of a panel."""
        return STRIP if self.vectors % STRIP == 0 else self.vectors

    @property
    def part(self) -> int:
        """Depth of the floats in private memory: whole blocks, in parts of about one size."""
        parts = -(-self.depth // max(self.block, DEPTH))
        return -(-self.blocks // parts) * self.block

    @property
    def overlaps(self) -> bool:
        """Whether the last panel overlaps the one before."""
        return self.width % self.panel != 0

    @property
    def panels(self) -> int:
        """Panels of all columns."""
        return -(-self.width // self.panel)

    @property
    def blocks(self) -> int:
        """Blocks of a column."""
        return -(-self.depth // self.block)

    @property
    def each(self) -> int:
        """Weights in a word."""
        return WORD // self.bits

    @property
    def words(self) -> int:
        """Words of a block of a column."""
        return self.block // self.each

    @property
    def middle(self) -> float:
        """The zero point of blocks without one."""
        return float(1 << (self.bits - 1))


def choose_sizes(
    op: BlockMatMul | BlockGather | ExpertMatMul, shape: tuple[int, int, int], target: Target
) -> BlockSizes:
    """Panels for M, K and N; M does not matter to them."""
    rows, depth, width = shape
    vector = target.vector
    while vector > width:
        vector //= 2
    return BlockSizes(
        rows=rows, depth=depth, width=width, vector=vector,
        vectors=_panel_vectors(width // vector, width % vector), bits=op.bits, block=op.block,
    )  # fmt: skip


def _panel_vectors(whole: int, rest: int) -> int:
    """Vectors of a panel: as many as divide the columns, where any do; for all M the same."""
    most = min(PANEL_VECTORS, whole)
    return most if rest else next(n for n in range(most, 0, -1) if whole % n == 0)


def pack_weights(step: PlacedOp, sizes: BlockSizes, operands: int) -> list[Storage]:
    """Weights, scales and maybe zero points, inputs 1 to `operands` - 1, as the module says."""
    result = []
    for index, view in enumerate(step.inputs[1:operands]):
        value = view.buffer.constant
        assert value is not None, "lowering takes constant weights"
        if index == 0:
            value = np.ascontiguousarray(value).reshape(sizes.width, -1).view("<i4")
        value = value.reshape(sizes.width, -1)
        packed = allocate_packed((sizes.panels, value.shape[1], sizes.panel), value.dtype)
        for p, to in enumerate(packed):
            start = min(p * sizes.panel, sizes.width - sizes.panel)
            to[:] = value[start : start + sizes.panel].T
        result.append(Storage(packed.size, packed.dtype.name, packed.reshape(-1)))
    return result


def allocate_packed(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array without contents, at the start of a page.

    A device that shares the host's memory reads it in place, so that weights are in memory once.
    """
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(dtype).reshape(shape)
