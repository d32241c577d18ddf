"""Curves as an SVG of small panels, one for each quantity."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from endurance.samples import CURVES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, GAP, LEFT, TOP = 330, 90, 34, 12, 30
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")


def draw(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """An SVG document.

    Args:
        runs: By name of a run, its samples; each curve is scaled from zero to the largest value.
    """
    parts = [_legend(list(runs))]
    for at, name in enumerate(CURVES):
        x = LEFT + at % 2 * (WIDTH + GAP)
        y = TOP + at // 2 * (HEIGHT + GAP) + 18 * (1 + len(runs) // 4)
        parts.append(_panel(name, runs, x, y))
    width = 2 * LEFT + 2 * WIDTH + GAP
    rows = -(-len(CURVES) // 2)
    height = TOP + rows * (HEIGHT + GAP) + 18 * (1 + len(runs) // 4)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _legend(names: Sequence[str]) -> str:
    return "".join(
        f'<text x="{LEFT + i % 4 * 170}" y="{18 + i // 4 * 16}" '
        f'fill="{COLOURS[i % len(COLOURS)]}">{escape(name)}</text>'
        for i, name in enumerate(names)
    )


def _panel(name: str, runs: Mapping[str, Sequence[Mapping[str, float]]], x: int, y: int) -> str:
    most = max((row[name] for rows in runs.values() for row in rows), default=0) or 1
    last = max((row["done"] for rows in runs.values() for row in rows), default=0) or 1
    lines = "".join(
        f'<polyline fill="none" stroke="{COLOURS[i % len(COLOURS)]}" points="'
        + " ".join(
            f"{x + row['done'] / last * WIDTH:.1f},{y + HEIGHT * (1 - row[name] / most):.1f}"
            for row in rows
        )
        + '"/>'
        for i, rows in enumerate(runs.values())
    )
    unit = " kB" if name == "resident" else ""
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>'
        f'<text x="{x}" y="{y - 4}">{name}, 0 to {most:.0f}{unit}; {last:.0f} pieces</text>{lines}'
    )
