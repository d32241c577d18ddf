"""Results of loading rows' contexts on other rows: the cells of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from ort_lite.hw.errors import MatrixError
from ort_lite.hw.patterns import fits
from ort_lite.hw.report_file import write_report_file
from ort_lite.hw.result import require_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ort_lite.hw.schema import CrossExpectation

CellVerdict = Literal[
    "optimal",
    "recompile_advised",
    "invalid_graph",
    "not_implemented",
    "wrong_numbers",
    "crashed",
    "error",
    "not_built",
]
CROSS_VERSION = 1
CROSS_FILE = "crossload.json"


class CrossCell(msgspec.Struct, frozen=True, kw_only=True):
    """One context of `builder`, loaded by `loader`.

    Attributes:
        reason: Of the closed list, for invalid_graph.
        message: What the loader said.
        expected: Verdict and reasons that the matrix expects; "" if it expects none.
        why: The matrix's reason for it.
    """

    builder: str
    loader: str
    model: str
    verdict: CellVerdict
    reason: str = ""
    message: str = ""
    expected: str = ""
    why: str = ""
    as_expected: bool = False
    seconds: float = 0

    @property
    def verdict_text(self) -> str:
        """The verdict with its reason: `invalid_graph(sdk_version)`."""
        return f"{self.verdict}({self.reason})" if self.reason else self.verdict


class CrossRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that took part, or was asked to.

    Attributes:
        lacks: Why it neither built nor loaded; empty if it did.
    """

    row: str
    status: Literal["ready", "wrong_hardware", "environment", "failed"]
    lacks: tuple[str, ...] = ()
    identity: dict[str, str] = {}


class CrossResult(msgspec.Struct, frozen=True, kw_only=True):
    """The cross-load table, with the rows that took part."""

    started: str
    commit: str = ""
    rows: tuple[CrossRow, ...]
    cells: tuple[CrossCell, ...]
    schema_version: int = CROSS_VERSION


def judge(cell: CrossCell, expectations: Iterable[CrossExpectation]) -> CrossCell:
    """The cell, judged by the first expectation that matches; without one it is not as expected."""
    for one in expectations:
        if fits(cell.builder, one.builder) and fits(cell.loader, one.loader):
            right = cell.verdict == one.verdict and (not one.reasons or cell.reason in one.reasons)
            reasons = f"({' or '.join(one.reasons)})" if one.reasons else ""
            return msgspec.structs.replace(
                cell, expected=f"{one.verdict}{reasons}", why=one.why, as_expected=right
            )
    return cell


def write_cross(result: CrossResult, folder: Path) -> None:
    """Write the table to crossload.json in `folder`.

    Raises:
        Fail: It cannot be written; an earlier crossload.json stays.
    """
    text = msgspec.json.format(msgspec.json.encode(result), indent=1)
    write_report_file(folder / CROSS_FILE, text)


def read_cross(folders: Iterable[Path]) -> CrossResult | None:
    """The cells of every crossload.json in or under the folders; None if no folder has one.

    Raises:
        MatrixError: One that is not a result.
    """
    paths = [path for folder in folders for path in sorted(folder.rglob(CROSS_FILE))]
    results = []
    for path in paths:
        try:
            content = path.read_bytes()
            require_version(content, CROSS_VERSION)
            results.append(msgspec.json.decode(content, type=CrossResult))
        except (msgspec.MsgspecError, MatrixError, OSError, ValueError, RecursionError) as exc:
            raise MatrixError(f"{path}: no result of ort-lite hw crossload: {exc}") from exc
    return _merge(sorted(results, key=lambda one: one.started)) if results else None


def _merge(results: Sequence[CrossResult]) -> CrossResult:
    """One table of several machines'; a later cell wins, and a ready row over a lacking one."""
    rows: dict[str, CrossRow] = {}
    cells: dict[tuple[str, str, str], CrossCell] = {}
    for result in results:
        for row in result.rows:
            if row.row not in rows or row.status == "ready":
                rows[row.row] = row
        cells |= {(cell.builder, cell.loader, cell.model): cell for cell in result.cells}
    last = results[-1]
    return CrossResult(
        started=last.started, commit=last.commit, rows=tuple(rows.values()),
        cells=tuple(cells.values()),
    )  # fmt: skip
