"""A contraction's sizes, and a way to split it: plain values, which payloads and caches keep."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The properties that determine the best tiling of a contraction.

    Attributes:
        batch: Contractions of this size that one kernel does.
        rows, columns: Of the output's pixels; one row where they can be walked as one.
        taps: Rows and columns of the window; (points, 1) of a convolution on transformed tiles.
        depth: Channels that are summed at each tap.
        width: Output channels.
        packed: Whether the weights are constants, packed for the tile.
        operands: Of the epilogue.
        bits: Of an element of the input: 32 of floats, fewer of integers.
        grouped: Whether a work-group shares it in local memory: the tiling has a `GroupTile`.
    """

    batch: int
    rows: int
    columns: int
    taps: tuple[int, int]
    depth: int
    width: int
    packed: bool
    operands: int
    bits: int = 32
    grouped: bool = False

    @property
    def pixels(self) -> int:
        """Number of pixels of the output."""
        return self.rows * self.columns

    @property
    def summands(self) -> int:
        """Number of products that each result sums."""
        return self.taps[0] * self.taps[1] * self.depth

    @property
    def work(self) -> int:
        """Number of multiplications and additions."""
        return 2 * self.batch * self.pixels * self.width * self.summands


@dataclass(frozen=True, slots=True)
class Tile:
    """Pixels (high * wide) by channels (panels * vector) that one work-item keeps."""

    high: int
    wide: int
    panels: int
    vector: int

    @property
    def channels(self) -> int:
        """Output channels of the tile."""
        return self.panels * self.vector

    def fits(self, problem: Problem) -> bool:
        """Whether it is inside the output."""
        inside = self.high <= problem.rows and self.wide <= problem.columns
        return inside and self.channels <= problem.width


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTile:
    """The tile that a work-group computes from operands shared in local memory.

    Attributes:
        down, across: Work-items along the pixels, and along the channels.
        pixels: Of the output, that one work-item keeps.
        panels, vector: Vectors of channels that it keeps of each, and their width.
        step: Summands that are in local memory at a time.
    """

    down: int
    across: int
    pixels: int
    panels: int
    vector: int
    step: int

    def fits(self, problem: Problem) -> bool:
        """Whether loads, of four, and stores come out even."""
        return self.channels % 4 == self.step % 4 == problem.width % self.vector == 0

    @property
    def items(self) -> int:
        """Work-items of the group."""
        return self.down * self.across

    @property
    def rows(self) -> int:
        """Pixels of the group."""
        return self.down * self.pixels

    @property
    def channels(self) -> int:
        """Channels of the group."""
        return self.across * self.panels * self.vector


@dataclass(frozen=True, slots=True)
class Tiling:
    """A tile, and the work-items that a large kernel is split into; of a `GroupTile` the groups."""

    tile: Tile | GroupTile
    tasks: int
