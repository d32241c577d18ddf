"""A contraction's sizes, and a way to split it: plain values, which payloads and caches keep."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What the best tiling of a contraction depends on.

    Attributes:
        batch: Contractions of this size that one kernel does.
        rows, columns: Of the output's pixels; one row where they can be walked as one.
        taps: Rows and columns of the window.
        depth: Channels that are summed at each tap.
        width: Output channels.
        packed: Whether the weights are constants, packed for the tile.
        operands: Of the epilogue.
        bits: Of an element of the input: 32 of floats, fewer of integers.
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

    @property
    def work(self) -> int:
        """Multiplications and additions."""
        taps = self.taps[0] * self.taps[1]
        return 2 * self.batch * self.rows * self.columns * self.width * self.depth * taps


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
        """Whether it lies inside of the output."""
        inside = self.high <= problem.rows and self.wide <= problem.columns
        return inside and self.channels <= problem.width


@dataclass(frozen=True, slots=True)
class Tiling:
    """A tile, and the work-items that a large kernel is split into."""

    tile: Tile
    tasks: int
