"""Measured tilings as JSON and back, for payloads and for the cache of a device."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from eps.opencl.compile.tilings import GroupTile, Problem, Tile, Tiling
from eps.opencl.payload.table import array, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Size = Callable[[str], int]
    """A whole number of a row, from 1 on."""

VECTORS = (1, 2, 4, 8, 16)
MOST_SUMS = 256
"""Vectors in an item's tile: a file from elsewhere must not make us write endless kernels."""
MOST_ITEMS = 1 << 10
MOST_STEP = 1 << 6
MOST_TASKS = 1 << 20
_LARGEST = (1 << 31) - 1


def rows_of(tuned: Mapping[Problem, Tiling]) -> list[dict[str, object]]:
    """One object for each problem."""
    return [
        {**asdict(problem), **asdict(tiling.tile), "tasks": tiling.tasks}
        for problem, tiling in tuned.items()
    ]


def read_tuned_rows(rows: Iterable[object]) -> dict[Problem, Tiling]:
    """Decode what `rows_of` wrote; every tile must be inside its problem.

    Raises:
        FormatError: Something is not what it must be.
    """
    return dict(_pair(row) for row in rows)


def _pair(row: object) -> tuple[Problem, Tiling]:
    if not isinstance(row, dict):
        raise FormatError("tuned", str(row)[:40], "an object")

    def size(name: str, low: int = 1, high: int = _LARGEST) -> int:
        return number(row.get(name), f"tuned.{name}", low, high)

    taps = [number(n, "tuned.taps", 1, _LARGEST) for n in array(row.get("taps"), "tuned.taps", 2)]

    def flag(name: str) -> bool:
        value = row.get(name)
        if not isinstance(value, bool):
            raise FormatError(f"tuned.{name}", str(value)[:40], "true or false")
        return value

    problem = Problem(
        batch=size("batch"),
        rows=size("rows"),
        columns=size("columns"),
        taps=(taps[0], taps[1]),
        depth=size("depth"),
        width=size("width"),
        packed=flag("packed"),
        operands=size("operands", low=0),
        bits=size("bits"),
        grouped=flag("grouped"),
    )
    tile = _group_tile(size, problem) if problem.grouped else _tile(size, problem)
    return problem, Tiling(tile, size("tasks", high=MOST_TASKS))


def _tile(size: Size, problem: Problem) -> Tile:
    tile = Tile(size("high"), size("wide"), size("panels"), size("vector"))
    sums = tile.high * tile.wide * tile.panels
    if tile.vector not in VECTORS or sums > MOST_SUMS or not tile.fits(problem):
        raise FormatError("tuned", f"{tile}", f"a tile inside of {problem}")
    return tile


def _group_tile(size: Size, problem: Problem) -> GroupTile:
    names = ("down", "across", "pixels", "panels", "vector", "step")
    tile = GroupTile(**{name: size(name) for name in names})
    sums = tile.pixels * tile.panels
    small = sums <= MOST_SUMS and tile.items <= MOST_ITEMS and tile.step <= MOST_STEP
    if not small or tile.vector not in VECTORS or not tile.fits(problem):
        raise FormatError("tuned", f"{tile}", f"a tile of a work-group for {problem}")
    return tile
