"""The plan: every expanded row, whether this machine can run it, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ort_lite.hw.requirements import machine_lacks
from ort_lite.hw.rows import state_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ort_lite.hw.facts import Facts
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Machine, Matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """A row and whether it is to run here.

    Attributes:
        state: verified, expected or unsupported.
        setup: Shell commands that a fresh machine of a CI needs before the row's own.
        why_not: Empty if it can run.
    """

    row: ExpandedRow
    machine: Machine
    state: str
    setup: tuple[str, ...]
    why_not: tuple[str, ...]

    @property
    def runnable(self) -> bool:
        """Whether nothing is known to stand against it."""
        return not self.why_not


def make_plan(matrix: Matrix, rows: Iterable[ExpandedRow], facts: Facts) -> tuple[PlannedRow, ...]:
    """One planned row for each row."""
    return tuple(
        PlannedRow(
            row=row,
            machine=matrix.machines[row.machine],
            state=state_of(matrix, row).state,
            setup=(*matrix.defaults.setup, *matrix.machines[row.machine].setup),
            why_not=_why_not(matrix, row, facts),
        )
        for row in rows
    )


def required_libraries(rows: Iterable[ExpandedRow]) -> tuple[str, ...]:
    """Shared libraries that any of the rows needs."""
    return tuple(lib for row in rows for require in row.requires for lib in require.libraries)


def _why_not(matrix: Matrix, row: ExpandedRow, facts: Facts) -> tuple[str, ...]:
    state = state_of(matrix, row)
    told = (f"unsupported: {state.reason}",) if state.state == "unsupported" else ()
    return (*told, *machine_lacks(row, facts))
