"""Loops over units of work: blocks of them for a CPU's tasks, adjacent ones for adjacent items."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import decode, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.kernel import Code
    from eps.opencl.target import Target

    Spread = tuple[int, int]
    """Global and local size, as `Kernel` takes them."""

SMALLEST_TASK = 8192
"""Elements below which another task costs more than it brings."""


def open_units(code: Code, units: int, worth: int, target: Target, name: str = "u") -> Spread:
    """Open a loop over `units` with index `name`.

    Args:
        code: Gets the loop's head.
        units: How many there are.
        worth: Tasks that the work is worth on a CPU, where each task takes a block of units. Where
            there are work-groups each item takes one unit, and another one launch further on.
        target: The device.
        name: Of the index.
    """
    if target.groups is None:
        tasks, each = share(units, min(target.tasks, max(1, worth)))
        code.add("const int id = get_global_id(0);")
        end = f"min(id * {each} + {each}, {units})"
        code.open(f"for (int {name} = id * {each}; {name} < {end}; ++{name})")
        return tasks, 1
    size = target.groups.size
    items = min(-(-units // size), max(1, target.tasks // size)) * size
    code.open(f"for (int {name} = get_global_id(0); {name} < {units}; {name} += {items})")
    return items, size


class TileUnits:
    """A nest of loops whose outer indices a CPU's tasks share; work-groups share all of them."""

    def __init__(
        self,
        code: Code,
        sizes: Sequence[int],
        inner: int,
        strides: Sequence[int],
        worth: int,
        target: Target,
    ) -> None:
        """Open the loops that come before the inner ones.

        Args:
            code: Gets the loops.
            sizes: Of the indices, the inner ones last, in the order of a CPU's loops.
            inner: How many of them are loops of their own on a CPU.
            strides: Of each index in the output: adjacent items differ in that with the smallest.
            worth: As `open_units` has it.
            target: The device.
        """
        self._code, self._sizes = code, sizes
        self._before = code.depth
        self._apart = len(sizes) - inner
        self._names: list[str] = []
        if target.groups is None:
            self.spread = open_units(code, prod(sizes[: self._apart]), worth, target)
            self.outer = decode(code, "u", sizes[: self._apart], "d")
            return
        self.spread = open_units(code, prod(sizes), worth, target)
        order = sorted(range(len(sizes)), key=lambda a: -abs(strides[a]))
        coordinates = decode(code, "u", [sizes[a] for a in order], "d")
        names = dict(zip(order, coordinates, strict=True))
        self._names = [names[a] for a in range(len(sizes))]
        self.outer = self._names[: self._apart]

    def open_inner(self) -> list[str]:
        """Open the inner loops; the names of their indices."""
        if self._names:
            return self._names[self._apart :]
        names = []
        for i, size in enumerate(self._sizes[self._apart :]):
            self._code.open(f"for (int i{i} = 0; i{i} < {size}; ++i{i})")
            names.append(f"i{i}")
        return names

    def close(self) -> None:
        """End all of its loops."""
        self._code.close(self._code.depth - self._before)
