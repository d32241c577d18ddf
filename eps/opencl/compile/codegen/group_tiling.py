"""Which tile a work-group computes of a contraction, and how many groups share a sum: by a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.tilings import GroupTile, Tiling
from eps.opencl.target import FEWEST_SHARING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eps.opencl.compile.tilings import Problem
    from eps.opencl.target import Groups, Target

SHAPES = (
    *((16, 16, 8, 8), (16, 16, 8, 4), (16, 16, 4, 8), (16, 16, 4, 4)),
    *((8, 32, 4, 4), (8, 32, 2, 4), (8, 32, 1, 4)),
    *((8, 16, 8, 8), (8, 16, 8, 4), (8, 16, 4, 4)),
    *((8, 8, 8, 8), (8, 8, 8, 4), (8, 8, 4, 4), (4, 16, 1, 4), (1, 64, 1, 4)),
)
"""Work-items down and across, pixels and channels of each: 128 by 128 down to 1 by 256."""
STEPS = (16, 8)
"""Summands in local memory at a time."""
FILLING = 256
"""Work-items that keep a compute unit busy with arithmetic."""
LOCAL_READS, GLOBAL_READS = 1.0, 16.0
"""Of a value from local memory, and from global, in units of one multiplication and addition."""
SPLITS = (1, 2, 4, 8)
"""Groups that may share a sum; each writes its part, and a second kernel adds them."""
SPLIT_COST = 0.06
FEWEST_STEPS = 4
"""Times that a group fills local memory before another is worth to be started."""
SKEW = 4
"""Floats between columns of pixels in local memory, so that storing them meets several banks."""


def choose_group_tiling(problem: Problem, groups: Groups) -> Tiling:
    """The least costly tile, and as many groups as the device wants."""
    return Tiling(rank_group_tiles(problem, groups)[0], groups.min_groups)


def rank_group_tiles(problem: Problem, groups: Groups) -> list[GroupTile]:
    """Tiles that fit into a group and its local memory, the least costly first."""
    return sorted(_tiles(problem, groups), key=lambda tile: _cost(tile, problem, groups))


def local_bytes(tile: GroupTile) -> int:
    """Local memory that a group of the tile takes."""
    return 4 * tile.step * (tile.rows + SKEW + tile.channels)


def splits_of(tile: GroupTile, problem: Problem, min_groups: int) -> int:
    """Groups that share each sum, if there would be fewer than `min_groups`; all have some."""
    steps = -(-problem.summands // tile.step)
    free = min(min_groups // group_count(tile, problem), steps // FEWEST_STEPS)
    splits = max((s for s in SPLITS if s <= free), default=1)
    return -(-steps // -(-steps // splits))


def group_count(tile: GroupTile, problem: Problem) -> int:
    """Groups that compute all results, one each."""
    across = -(-problem.width // tile.channels)
    return problem.batch * -(-problem.pixels // tile.rows) * across


def _tiles(problem: Problem, groups: Groups) -> Iterator[GroupTile]:
    vector = next(v for v in (4, 2, 1) if problem.width % v == 0)
    for down, across, pixels, channels in SHAPES:
        for step in STEPS:
            tile = GroupTile(
                down=down,
                across=across,
                pixels=pixels,
                panels=channels // vector,
                vector=vector,
                step=step,
            )
            if tile.items <= groups.size and local_bytes(tile) <= groups.local:
                yield tile
                break


def _cost(tile: GroupTile, problem: Problem, groups: Groups) -> float:
    """Steps of an item's work that follow each other, weighed by what it reads for each."""
    splits = splits_of(tile, problem, groups.min_groups)
    at_once = groups.units * max(1, FILLING // tile.items)
    waves = -(-group_count(tile, problem) * splits // at_once)
    channels = tile.panels * tile.vector
    reads = LOCAL_READS * (1 / tile.pixels + 1 / channels)
    reads += GLOBAL_READS * (1 / tile.rows + 1 / tile.channels)
    slow = max(1.0, FILLING / (tile.items * 8))  # one item's waits are hidden by eight others
    split = 1 + SPLIT_COST * (splits - 1)
    return waves * tile.pixels * channels * (1 + reads) * slow * split / splits


def in_smaller_groups(target: Target, most: int) -> Target | None:
    """The target for kernels in groups of at most `most` items; None if groups are no larger.

    What was measured for larger groups is left out.
    """
    groups = target.groups
    if groups is None or not 0 < most < groups.size:
        return None
    size = 1 << (most.bit_length() - 1)
    local = groups.local if size >= FEWEST_SHARING else 0
    tuned = {
        problem: tiling
        for problem, tiling in target.tuned.items()
        if not isinstance(tiling.tile, GroupTile) or tiling.tile.items <= size
    }
    return replace(target, groups=replace(groups, size=size, local=local), tuned=tuned)
