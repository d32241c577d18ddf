"""Tables and a plot of what first_answer.py measured: `... JSON [JSON ...] --svg FILE`.

Several files are taken together, so that a long measurement can be done in portions.
"""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.harness.engines import OURS, PEER, PEER_CPU, RAW
from benchmarks.harness.measure import Measurement
from benchmarks.startup.first_answer_table import tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Results = Mapping[str, Mapping[str, Measurement]]

BARS = {
    f"{OURS} external": ("ort_lite, context model", "#0b6e4f"),
    f"{OURS} cache": ("ort_lite, plain model, model cache", "#5fb49c"),
    f"{PEER} external": ("onnxruntime-ep-openvino, context model", "#8d5a97"),
    f"{RAW} cache": ("openvino, cache_dir", "#2f6db5"),
    f"{RAW} plain": ("openvino, compiling", "#9fc2e8"),
    f"{PEER_CPU} plain": ("onnxruntime, CPU", "#c9a227"),
}
"""Variants that are drawn, with what they are called and their colour."""

WIDTH, LEFT, RIGHT, TOP = 760, 130, 60, 84
BAR, GAP = 13, 16
TICKS = 5
STYLE = "font-family:system-ui,sans-serif;font-size:12px"


def main() -> int:
    """Print the table, draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="written by first_answer.py --json")
    parser.add_argument("--svg", type=Path, help="draw whole processes into this file")
    parser.add_argument("--leave-out", action="append", default=[], metavar="MODEL")
    arguments = parser.parse_args()
    results = {name: measured for path in arguments.files for name, measured in read(path).items()}
    sys.stdout.write(tables(results))
    if arguments.svg is not None:
        drawn = {
            name: measured for name, measured in results.items() if name not in arguments.leave_out
        }
        arguments.svg.write_text(draw(drawn), encoding="utf-8")
    return 0


def read(path: Path) -> dict[str, dict[str, Measurement]]:
    """What `report.write_json` wrote."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    return {
        model: {name: _measurement(one) for name, one in measured.items()}
        for model, measured in plain.items()
    }


def _measurement(recorded: Mapping[str, Any]) -> Measurement:
    turns = tuple(recorded["turns"])
    return Measurement(absent=recorded["absent"], turns=turns, peak_rss=recorded["peak_rss"])


def draw(results: Results) -> str:
    """An SVG with a group of bars for each model, quickest models first.

    Light and dark pages both have to carry it: it brings its own white ground.
    """
    present = [v for v in BARS if any(not measured[v].absent for measured in results.values())]
    models = sorted(results, key=lambda model: results[model][f"{OURS} external"].seconds)
    slowest = max(
        results[m][v].seconds for m in models for v in present if not results[m][v].absent
    )
    step = _round_up(slowest * 1000 / TICKS)
    scale = (WIDTH - LEFT - RIGHT) / (step * TICKS)
    top = TOP + 18 * ((len(present) + 1) // 2)
    group = BAR * len(present) + GAP
    bottom = top + group * len(models)
    parts = [
        _text(16, 26, "From the start of a process to its first answer", weight="bold", size=15),
        _text(16, 46, "milliseconds, medians; shorter is better", colour="#555"),
        *_legend(present),
        *_grid(step, scale, top, bottom),
    ]
    for i, model in enumerate(models):
        parts += _group(model, results[model], present, (top + i * group, scale))
    height = bottom + 34
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" style="{STYLE}">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _legend(present: Sequence[str]) -> list[str]:
    parts = []
    for i, variant in enumerate(present):
        label, colour = BARS[variant]
        x, y = 16 + 360 * (i % 2), 62 + 18 * (i // 2)
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(x + 18, y + 10, label))
    return parts


def _grid(step: float, scale: float, top: int, bottom: int) -> list[str]:
    parts = []
    for i in range(TICKS + 1):
        x = LEFT + i * step * scale
        parts.append(f'<path d="M{x:.1f} {top - 6}V{bottom - 8}" stroke="#ddd"/>')
        parts.append(_text(x, bottom + 10, f"{i * step:g}", anchor="middle", colour="#555"))
    return parts


def _group(
    model: str,
    measured: Mapping[str, Measurement],
    present: Sequence[str],
    place: tuple[int, float],
) -> list[str]:
    """Bars of one model; `place` is where they begin from above, and pixels a millisecond."""
    top, scale = place
    middle = top + BAR * len(present) / 2 + 4
    parts = [_text(LEFT - 8, middle, model, anchor="end")]
    for i, variant in enumerate(present):
        y = top + i * BAR
        if measured[variant].absent:
            parts.append(_text(LEFT + 4, y + 10, "does not run it", colour="#999", size=10))
            continue
        value = median(measured[variant].turns) * 1000
        width = value * scale
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 2}" '
            f'fill="{BARS[variant][1]}"/>'
        )
        parts.append(_text(LEFT + width + 4, y + 10, f"{value:.0f}", colour="#555", size=10))
    return parts


def _text(  # noqa: PLR0913 - the attributes of one element
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    colour: str = "#111",
    size: int = 12,
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size}" font-weight="{weight}">{escape(text)}</text>'
    )


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5 and 5 times a power of ten."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    return next(f * power for f in (1, 1.5, 2, 3, 4, 5, 10) if f * power >= value)


if __name__ == "__main__":
    sys.exit(main())
