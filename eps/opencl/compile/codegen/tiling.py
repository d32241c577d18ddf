"""Which register tile a contraction has and how many work-items: by a rule, or as measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.group_tiling import choose_group_tiling, rank_group_tiles
from eps.opencl.compile.tilings import Tile, Tiling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from eps.opencl.compile.tilings import GroupTile, Problem
    from eps.opencl.target import Target

SMALLEST_TASK = 100_000
"""Operations below which starting a work-group costs more than it brings."""
MOST_PANELS = 3


def choose_tiling(problem: Problem, target: Target) -> Tiling:
    """The tiling measured as best on this device, or else the rule's."""
    measured = target.tuned.get(problem)
    if measured is not None:
        return measured
    if problem.grouped:
        assert target.groups is not None, "the target says which problems are grouped"
        return choose_group_tiling(problem, target.groups)
    return Tiling(_rank_register_tiles(problem, target)[0], target.tasks)


def rank_tiles(problem: Problem, target: Target) -> Sequence[Tile | GroupTile]:
    """Tiles that fit into the registers, or into local memory, the least costly first."""
    if problem.grouped:
        assert target.groups is not None, "the target says which problems are grouped"
        return rank_group_tiles(problem, target.groups)
    return _rank_register_tiles(problem, target)


def _rank_register_tiles(problem: Problem, target: Target) -> list[Tile]:
    return sorted(_tiles(problem, target), key=lambda tile: _cost(tile, problem))


def _tiles(problem: Problem, target: Target) -> Iterator[Tile]:
    vector = target.vector
    while vector > problem.width:
        vector //= 2
    yield Tile(1, 1, 1, vector)
    for panels in range(1, min(MOST_PANELS, problem.width // vector) + 1):
        for pixels in range(1, target.accumulators // panels + 1):
            wide = min(pixels, problem.columns)
            yield Tile(min(pixels // wide, problem.rows), wide, panels, vector)


def _cost(tile: Tile, problem: Problem) -> float:
    """For each useful result: overlap at the edges, times loads for each multiplication."""
    rows, columns, width = problem.rows, problem.columns, problem.width
    pixels = tile.high * tile.wide
    computed = -(-rows // tile.high) * tile.high * -(-columns // tile.wide) * tile.wide
    channels = -(-width // tile.channels) * tile.channels
    waste = computed * channels / (rows * columns * width)
    loads = (tile.panels + pixels) / (tile.panels * pixels)
    short = 8 / (tile.panels * pixels) if tile.panels * pixels < 8 else 0  # latency of one
    return waste * (1 + loads + short)


def share_tiles(tiles: int, outer: int, tasks: int, work: int) -> tuple[int, int]:
    """(groups, tiles in each): enough groups to have `tasks` work-items in all."""
    tasks = min(tasks, max(1, work // SMALLEST_TASK))
    groups = min(tiles, max(1, -(-tasks // outer)))
    each = -(-tiles // groups)
    return -(-tiles // each), each
