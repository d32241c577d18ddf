"""Checks that the types cannot express: names must exist, and states need evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ort_lite.hw.errors import MatrixError, suggestion
from ort_lite.hw.patterns import fits, is_range
from ort_lite.hw.rows import expand, row_digest
from ort_lite.hw.schema import ConformanceSuite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Limit, Matrix, Ratio, Require, RowState
    from ort_lite.hw.yaml_text import Document, Place

_ROW_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
"""Of axes, their values, and models: they become names of folders and files."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def check(matrix: Matrix, document: Document, *, outdated: bool) -> None:
    """Refuse a matrix that names what it does not have, or claims what it does not show.

    Args:
        matrix: What the file says.
        document: Its places.
        outdated: Take evidence that answers to another row or other suites than there are now.

    Raises:
        MatrixError: The first such place.
    """
    _check_names(matrix, document)
    _check_rows(matrix, document)
    _check_combinations(matrix, document)
    _check_suites(matrix, document)
    _check_limits(matrix, document)
    _check_requirements(matrix, document)
    rows = expand(matrix)
    _check_states(matrix, rows, document)
    if not outdated:
        _check_evidence(matrix, rows, document)
    _check_patterns(matrix, rows, document)


def _error_at(document: Document, place: Place, problem: str) -> MatrixError:
    return MatrixError(f"{document.at(place)}: {problem}")


def _require_known(
    document: Document, place: Place, what: str, name: str, names: Iterable[str]
) -> None:
    names = list(names)
    if name not in names:
        raise _error_at(document, place, f"unknown {what} '{name}'{suggestion(name, names)}")


def _check_names(matrix: Matrix, document: Document) -> None:
    places: list[Place] = [("models", name) for name in matrix.models]
    places += [("axes", axis) for axis in matrix.axes]
    places += [("axes", axis, value) for axis, values in matrix.axes.items() for value in values]
    for place in places:
        if not _NAME.fullmatch(str(place[-1])):
            problem = (
                f"the name '{place[-1]}' contains characters other than letters, digits . _ + -"
            )
            raise _error_at(document, place, problem)


def _check_rows(matrix: Matrix, document: Document) -> None:
    ids: set[str] = set()
    for i, row in enumerate(matrix.rows):
        place: Place = ("rows", i)
        if not _ROW_ID.fullmatch(row.id):
            problem = f"the row's id '{row.id}' contains characters other than a-z 0-9 . _ -"
            raise _error_at(document, (*place, "id"), problem)
        if row.id in ids:
            raise _error_at(document, (*place, "id"), f"a row before this one is called '{row.id}'")
        ids.add(row.id)
        _require_known(document, (*place, "provider"), "provider", row.provider, matrix.providers)
        _require_known(document, (*place, "machine"), "machine", row.machine, matrix.machines)
        for j, suite in enumerate(row.suites):
            _require_known(document, (*place, "suites", j), "suite", suite, matrix.suites)
        for axis, values in row.axes.items():
            where = (*place, "axes", axis)
            _require_known(document, where, "axis", axis, matrix.axes)
            for j, value in enumerate(values):
                _require_known(document, (*where, j), f"value of {axis}", value, matrix.axes[axis])


def _check_combinations(matrix: Matrix, document: Document) -> None:
    axes = {row.id: tuple(row.axes) for row in matrix.rows}
    for part, whole in (("include", True), ("exclude", False)):
        for i, one in enumerate(matrix.include if whole else matrix.exclude):
            place: Place = (part, i)
            _require_known(document, (*place, "row"), "row", one.row, axes)
            for axis, value in one.axes.items():
                where = (*place, "axes", axis)
                _require_known(document, where, f"axis of {one.row}", axis, axes[one.row])
                _require_known(document, where, f"value of {axis}", value, matrix.axes[axis])
            if whole and tuple(one.axes) != axes[one.row]:
                problem = f"names {list(one.axes)}, the row's axes are {list(axes[one.row])}"
                raise _error_at(document, place, problem)


def _check_suites(matrix: Matrix, document: Document) -> None:
    for name, suite in matrix.suites.items():
        if not isinstance(suite, ConformanceSuite):
            for i, model in enumerate(suite.models):
                where: Place = ("suites", name, "models", i)
                _require_known(document, where, "model", model, matrix.models)
    for i, model in enumerate(matrix.cross_load.models):
        _require_known(document, ("cross_load", "models", i), "model", model, matrix.models)
    reasons = [str(reason) for reason in Reason]
    for i, expected in enumerate(matrix.cross_load.expect):
        for j, reason in enumerate(expected.reasons):
            place = ("cross_load", "expect", i, "reasons", j)
            _require_known(document, place, "reason", reason, reasons)


def _check_limits(matrix: Matrix, document: Document) -> None:
    places: dict[Place, Mapping[Ratio, Limit]] = {}
    for i, row in enumerate(matrix.rows):
        places["rows", i, "limits"] = row.limits
    for axis, values in matrix.axes.items():
        for value, meaning in values.items():
            places["axes", axis, value, "limits"] = meaning.limits
    for place, limits in places.items():
        for ratio, limit in limits.items():
            if not limit.why.strip():
                problem = "a platform's own limit says why it is another, as `why`"
                raise _error_at(document, (*place, ratio), problem)


def _check_requirements(matrix: Matrix, document: Document) -> None:
    places: dict[Place, Require] = {}
    for name, machine in matrix.machines.items():
        places["machines", name, "require"] = machine.require
    for i, row in enumerate(matrix.rows):
        places["rows", i, "require"] = row.require
    for axis, values in matrix.axes.items():
        for value, meaning in values.items():
            places["axes", axis, value, "require"] = meaning.require
    for place, require in places.items():
        for key, text in (("driver", require.driver), ("sdk", require.sdk)):
            if text and not is_range(text):
                problem = f"'{text}' is not a range of versions, such as '>=32.0,<33'"
                raise _error_at(document, (*place, key), problem)


def _check_states(matrix: Matrix, rows: Mapping[str, ExpandedRow], document: Document) -> None:
    for name in matrix.states:
        _require_known(document, ("states", name), "row", name, rows)
    for name in rows:
        if name not in matrix.states:
            raise _error_at(document, ("states",), f"the row '{name}' has no state")
        problem = _state_problem(matrix.states[name])
        if problem:
            raise _error_at(document, ("states", name), f"{name}: {problem}")


def _check_evidence(matrix: Matrix, rows: Mapping[str, ExpandedRow], document: Document) -> None:
    for name, row in rows.items():
        evidence = matrix.states[name].evidence
        if evidence is not None and evidence.row_digest != row_digest(row, matrix):
            problem = (
                f"{name}: the row, or what its suites ask, has changed since it was verified; "
                "run and record it again, or call it expected"
            )
            raise _error_at(document, ("states", name), problem)


def _state_problem(state: RowState) -> str:
    evidence = state.evidence
    if state.state == "unsupported":
        return "" if state.reason else "an unsupported row says why, as `reason`"
    if state.state == "expected":
        return "evidence of a run makes a row verified: ort-lite hw record" if evidence else ""
    if evidence is None:
        return "verified without evidence; ort-lite hw record writes both from a real run"
    if not _COMMIT.fullmatch(evidence.commit) or not evidence.identity.get("device"):
        return "evidence needs a whole commit and the device's identity"
    return ""


def _check_patterns(matrix: Matrix, rows: Mapping[str, ExpandedRow], document: Document) -> None:
    places: dict[Place, str] = {}
    for i, one in enumerate(matrix.expectations):
        places["expectations", i, "row"] = one.row
    for i, pattern in enumerate(matrix.cross_load.rows):
        places["cross_load", "rows", i] = pattern
    for i, pair in enumerate(matrix.cross_load.expect):
        places["cross_load", "expect", i, "from"] = pair.builder
        places["cross_load", "expect", i, "to"] = pair.loader
    for place, pattern in places.items():
        if not any(fits(name, pattern) for name in rows):
            raise _error_at(document, place, f"no row fits '{pattern}'{suggestion(pattern, rows)}")
