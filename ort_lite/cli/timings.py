"""Timings of phases, as the benchmarks of the command line print them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from ort_lite.cli.device_lines import devices_of, ran_on
from ort_lite.cli.output import print_json, print_line, print_table, time_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ort_lite.planning.explain import SessionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of one phase.

    Attributes:
        p90: The 90th percentile.
    """

    phase: str
    median: float
    p90: float
    best: float
    count: int


def summarize(phase: str, seconds: Sequence[float]) -> Timing:
    """The timing of a phase from the seconds that it took, once or more often."""
    many = len(seconds) > 1
    return Timing(
        phase=phase,
        median=median(seconds),
        p90=quantiles(seconds, n=10, method="inclusive")[-1] if many else seconds[0],
        best=min(seconds),
        count=len(seconds),
    )


def show_timings(
    model: Path, report: SessionReport, timings: Sequence[Timing], *, as_json: bool
) -> None:
    """Print a table of timings, or JSON."""
    if as_json:
        nodes, devices = report.node_counts(), devices_of(report)
        phases = [_json(timing) for timing in timings]
        print_json({"model": str(model), "nodes": nodes, "devices": devices, "phases": phases})
        return
    rows = [
        (t.phase, time_text(t.median), time_text(t.p90), time_text(t.best), str(t.count))
        for t in timings
    ]
    columns = ("phase", "median", "p90", "best", "count")
    print_table(columns, rows, right=columns[1:])
    print_line(ran_on(report))


def _json(timing: Timing) -> dict[str, Any]:
    return {
        "phase": timing.phase,
        "count": timing.count,
        **{f"{key}_s": round(getattr(timing, key), 6) for key in ("median", "p90", "best")},
    }
