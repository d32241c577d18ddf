"""Known failures: what is expected to fail may, until its day; what then passes must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ort_lite.hw.wildcard import fits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from ort_lite.hw.result import Case
    from ort_lite.hw.schema import Expectation


def apply_expectations(
    cases: Iterable[Case], row: str, expectations: Iterable[Expectation], today: date
) -> tuple[Case, ...]:
    """The cases of a row, with the first expectation that fits each applied."""
    mine = [one for one in expectations if fits(row, one.row)]
    return tuple(_judged(case, mine, today) for case in cases)


def _judged(case: Case, expectations: list[Expectation], today: date) -> Case:
    expected = next((one for one in expectations if fits(case.test, one.test)), None)
    if expected is None or case.outcome == "skipped":
        return case
    known = " ".join(filter(None, (f"expected: {expected.reason}", expected.issue)))
    if not case.is_bad:
        message = f"passes, and was {known}; take the expectation away"
        return msgspec.structs.replace(case, outcome="unexpected_pass", message=message)
    told = f"{known}; {case.message}"
    if today > expected.until:
        message = f"out of date since {expected.until}; {told}"
        return msgspec.structs.replace(case, outcome="expired", message=message)
    return msgspec.structs.replace(case, outcome="expected_failure", message=told)
