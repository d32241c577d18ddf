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


def milliseconds(measured: Found, name: str) -> str:
    """A variant's time."""
    if measured[name].absent:
        return NOTHING
    value = measured[name].seconds * 1000
    digits = 3 if value < 1 else 2 if value < 100 else 0
    return f"{value:.{digits}f}"


def over(measured: Found, name: str, peer: str, most: float | None = None) -> str:
    """A variant's time as a multiple of the peer's, with a mark where it is over `most`."""
    value = ratio(measured, name, peer)
    if value is None:
        return NOTHING
    return f"{'>' if most is not None and value > most else ''}{value:.2f}x"


def mebibytes(measured: Found, name: str) -> str:
    """A variant's peak memory."""
    return NOTHING if measured[name].absent else f"{measured[name].peak_rss / 2**20:.0f}"


def over_peak(measured: Found, name: str, peer: str) -> str:
    """A variant's peak memory as a multiple of the peer's."""
    if measured[name].absent or measured[peer].absent:
        return NOTHING
    return f"{measured[name].peak_rss / measured[peer].peak_rss:.2f}x"


def absences(results: Mapping[str, Found]) -> str:
    """One line for each reason why a variant is missing, or ""."""
    reasons = {m.absent for measured in results.values() for m in measured.values() if m.absent}
    return "".join(f"{NOTHING}: {reason}\n" for reason in sorted(reasons))


def write_json(path: Path, results: Mapping[str, Found]) -> None:
    """All that was measured, by model and variant; times in seconds, memory in bytes."""
    plain = {
        model: {name: asdict(measurement) for name, measurement in measured.items()}
        for model, measured in results.items()
    }
    path.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
