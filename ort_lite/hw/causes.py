"""Failures of a report by their cause: one broken driver is one paragraph, not 130 lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.hw.cross_result import Cell, CrossResult
    from ort_lite.hw.result import RowResult

_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[\\/]\S+|0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?")
"""What differs between two messages of one cause: names in quotes, paths, numbers."""
MAX_PLACES = 12
MAX_MESSAGE = 1000


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Failures with the same message but for names, paths and numbers.

    Attributes:
        message: Of the first of them, in one line.
        places: Where it was met: a row with a case, or a row alone.
    """

    message: str
    places: tuple[tuple[str, str], ...]

    def where(self, quote: str = "") -> str:
        """Rows, in `quote`, with their cases: `cpu (models::a, models::b), npu`."""
        by_row: dict[str, list[str]] = {}
        for row, case in self.places[:MAX_PLACES]:
            by_row.setdefault(row, []).extend([case] if case else [])
        told = [
            f"{quote}{row}{quote}" + (f" ({', '.join(cases)})" if cases else "")
            for row, cases in by_row.items()
        ]
        more = len(self.places) - MAX_PLACES
        return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def causes(results: Sequence[RowResult]) -> tuple[Cause, ...]:
    """Why rows and cases did not pass, the most frequent cause first."""
    met = [(r.row, "", lack) for r in results for lack in r.lacks]
    met += [
        (r.row, case.test, f"{case.outcome.replace('_', ' ')}: {case.message}")
        for r in results
        for case in r.cases
        if case.is_bad or case.outcome == "expected_failure"
    ]
    return _grouped(met)


def cross_causes(cross: CrossResult | None) -> tuple[Cause, ...]:
    """Why contexts were not loaded as expected."""
    cells = cross.cells if cross is not None else ()
    return _grouped([(c.builder, f"on {c.loader}", _told(c)) for c in cells if not c.as_expected])


def _told(cell: Cell) -> str:
    return f"{cell.found}, expected {cell.expected or 'nothing'}: {cell.message}"


def _grouped(met: list[tuple[str, str, str]]) -> tuple[Cause, ...]:
    first: dict[str, str] = {}
    places: dict[str, list[tuple[str, str]]] = {}
    for row, case, message in met:
        line = " ".join(message.split())[:MAX_MESSAGE]
        key = _VARYING.sub("?", line)
        first.setdefault(key, line)
        places.setdefault(key, []).append((row, case))
    found = [Cause(message=first[key], places=tuple(where)) for key, where in places.items()]
    return tuple(sorted(found, key=lambda cause: -len(cause.places)))
