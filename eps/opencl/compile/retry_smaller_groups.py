"""Kernels for smaller work-groups, where one needs too many registers for the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.tilings import GroupTile
from eps.opencl.runtime.groups import FEWEST_SHARING

if TYPE_CHECKING:
    from eps.opencl.runtime.device import Target


def in_smaller_groups(target: Target, most: int) -> Target | None:
    """The target for kernels in groups of at most `most` items; None where groups are no larger.

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
