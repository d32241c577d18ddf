"""Measured tilings as JSON and back, for payloads and for the cache of a device."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from eps.opencl.payload_table import array, number
from eps.opencl.tilings import Problem, Tile, Tiling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VECTORS = (1, 2, 4, 8, 16)
MOST_SUMS = 256
"""Vectors in a tile: a file from elsewhere must not make us write endless kernels."""
MOST_TASKS = 1 << 20
_LARGEST = (1 << 31) - 1


def rows_of(tuned: Mapping[Problem, Tiling]) -> list[dict[str, object]]:
    """One object for each problem."""
    return [
        {**asdict(problem), **asdict(tiling.tile), "tasks": tiling.tasks}
        for problem, tiling in tuned.items()
    ]


def tuned_of(rows: Iterable[object]) -> dict[Problem, Tiling]:
    """What `rows_of` wrote, every tile inside of its problem.

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
    packed = row.get("packed")
    if not isinstance(packed, bool):
        raise FormatError("tuned.packed", str(packed)[:40], "true or false")
    problem = Problem(
        batch=size("batch"),
        rows=size("rows"),
        columns=size("columns"),
        taps=(taps[0], taps[1]),
        depth=size("depth"),
        width=size("width"),
        packed=packed,
        operands=size("operands", low=0),
        bits=size("bits"),
    )
    tile = Tile(size("high"), size("wide"), size("panels"), size("vector"))
    sums = tile.high * tile.wide * tile.panels
    if tile.vector not in VECTORS or sums > MOST_SUMS or not tile.fits(problem):
        raise FormatError("tuned", f"{tile}", f"a tile inside of {problem}")
    return problem, Tiling(tile, size("tasks", high=MOST_TASKS))
