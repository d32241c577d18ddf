"""Differences between a run and the one before: better, worse, new and gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.hw.cross_result import CrossResult
    from ort_lite.hw.result import RowResult

KINDS = ("worse", "better", "new", "gone", "different")
"""Kinds of changes, in the order in which a reader needs them."""
GOOD = ("passed", "optimal")
TOLERABLE = ("expected_failure", "recompile_advised", "skipped", "wrong_hardware", "not_built")
ROW = "row"
"""What changed, where it is a whole row."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A difference from the previous report.

    Attributes:
        what: "row", a case, or the load of a context.
        before: Outcome in the previous report; "" if it was not there.
        now: Outcome in this one; "" if it is no longer there.
    """

    row: str
    what: str
    before: str
    now: str

    @property
    def kind(self) -> str:
        """One of KINDS."""
        if not self.before:
            return "new"
        if not self.now:
            return "gone"
        before, now = _rank(self.before), _rank(self.now)
        return "different" if before == now else "worse" if now > before else "better"

    @property
    def text(self) -> str:
        """The change as one line, with both outcomes."""
        what = "" if self.what == ROW else f", {self.what}"
        words = [outcome.replace("_", "-") for outcome in (self.before, self.now)]
        if not self.before:
            return f"{self.row}{what}: {words[1]}"
        return f"{self.row}{what}: {words[0]} before, {words[1] or 'not run'} now"


def by_kind(changes: Sequence[Change]) -> Mapping[str, list[Change]]:
    """The changes of each kind that there is, in the order of KINDS."""
    kinds = {kind: [change for change in changes if change.kind == kind] for kind in KINDS}
    return {kind: listed for kind, listed in kinds.items() if listed}


def counts_of_kinds(changes: Sequence[Change]) -> str:
    """Number of changes by kind: `2 worse, 1 better`; "nothing changed" without any."""
    counts = [f"{len(listed)} {kind}" for kind, listed in by_kind(changes).items()]
    return ", ".join(counts) or "nothing changed"


def find_changes(
    results: tuple[Sequence[RowResult], Sequence[RowResult]],
    cross: tuple[CrossResult | None, CrossResult | None],
) -> tuple[Change, ...]:
    """Differences in rows, cases and loads.

    A row that only one side has is one change, without its cases.

    Args:
        results: Of the run before, and of this one.
        cross: Loads, in the same order; not compared if one side has none.
    """
    before = {result.row: result for result in results[0]}
    now = {result.row: result for result in results[1]}
    changed: list[Change] = []
    for row in dict.fromkeys([*now, *before]):
        if row in now and row in before:
            changed += _row_changes(before[row], now[row])
        else:
            old, new = (side[row].status if row in side else "" for side in (before, now))
            changed.append(Change(row=row, what=ROW, before=old, now=new))
    if cross[0] is not None and cross[1] is not None:
        changed += _load_changes(cross[0], cross[1])
    return tuple(changed)


def _row_changes(before: RowResult, now: RowResult) -> list[Change]:
    status = {ROW: (before.status, now.status)}
    old = {case.test: case.outcome for case in before.cases}
    new = {case.test: case.outcome for case in now.cases}
    tests = {test: (old.get(test, ""), new.get(test, "")) for test in [*new, *old]}
    return [
        Change(row=now.row, what=what, before=pair[0], now=pair[1])
        for what, pair in {**status, **tests}.items()
        if pair[0] != pair[1]
    ]


def _load_changes(before: CrossResult, now: CrossResult) -> list[Change]:
    old = {(c.builder, c.loader, c.model): c.verdict_text for c in before.cells}
    new = {(c.builder, c.loader, c.model): c.verdict_text for c in now.cells}
    return [
        Change(
            row=key[1],
            what=f"loading {key[2]} of {key[0]}",
            before=old.get(key, ""),
            now=new.get(key, ""),
        )
        for key in dict.fromkeys([*new, *old])
        if old.get(key, "") != new.get(key, "")
    ]


def _rank(outcome: str) -> int:
    """Rank of an outcome, 0 the best; a load's reason in parentheses does not count."""
    word = outcome.partition("(")[0]
    return 0 if word in GOOD else 1 if word in TOLERABLE else 2
