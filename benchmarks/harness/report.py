"""Measurements as text for people and as JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from benchmarks.harness.measure import ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.harness.measure import Measurement

    Found = Mapping[str, Measurement]

NOTHING = "-"
"""The cell of a variant that is absent."""


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines of aligned cells; the first column to the left, all others to the right."""
    lines = [columns, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def milliseconds(found: Found, name: str) -> str:
    """A variant's time."""
    if found[name].absent:
        return NOTHING
    value = found[name].seconds * 1000
    digits = 3 if value < 1 else 2 if value < 100 else 0
    return f"{value:.{digits}f}"


def over(found: Found, name: str, peer: str, most: float | None = None) -> str:
    """A variant's time as a multiple of the peer's, with a mark where it is over `most`."""
    value = ratio(found, name, peer)
    if value is None:
        return NOTHING
    return f"{'>' if most is not None and value > most else ''}{value:.2f}x"


def mebibytes(found: Found, name: str) -> str:
    """A variant's peak memory."""
    return NOTHING if found[name].absent else f"{found[name].peak_rss / 2**20:.0f}"


def over_peak(found: Found, name: str, peer: str) -> str:
    """A variant's peak memory as a multiple of the peer's."""
    if found[name].absent or found[peer].absent:
        return NOTHING
    return f"{found[name].peak_rss / found[peer].peak_rss:.2f}x"


def absences(results: Mapping[str, Found]) -> str:
    """One line for each reason why a variant is missing, or ""."""
    reasons = {m.absent for found in results.values() for m in found.values() if m.absent}
    return "".join(f"{NOTHING}: {reason}\n" for reason in sorted(reasons))


def write_json(path: Path, results: Mapping[str, Found]) -> None:
    """All that was measured, by model and variant; times in seconds, memory in bytes."""
    plain = {
        model: {name: asdict(measurement) for name, measurement in found.items()}
        for model, found in results.items()
    }
    path.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
