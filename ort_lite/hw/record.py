"""Writes what real runs showed into the `states` of a matrix file, and nothing else of it."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from ctx_formats.atomic_write import write_file
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.result import counts_text
from ort_lite.hw.rows import row_digest
from ort_lite.hw.schema import Evidence, RowState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ort_lite.hw.result import RowResult
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix

RECORDED_PACKAGES = ("ort-lite", "numpy", "onnx", "onnxruntime", "openvino", "pyopencl",
                 "pocl-binary-distribution", "intel-opencl-rt")  # fmt: skip
"""Distributions that evidence names."""
_STATES = re.compile(r"^states:.*\Z", re.MULTILINE | re.DOTALL)


def refusal(result: RowResult, row: ExpandedRow, matrix: Matrix) -> str:
    """Why a result is not evidence; "" if it is."""
    if result.status != "passed":
        return f"the row is {result.status.replace('_', '-')}"
    if not result.commit:
        return "the project is not a git repository, so its commit is unknown"
    if not result.clean:
        return "files differed from the commit when it ran"
    if result.row_digest != row_digest(row, matrix):
        return "the row, or what its suites ask, has changed since it ran"
    missing = [suite for suite in row.suites if not result.of_suite(suite)]
    if missing or not row.suites:
        return f"the suites {', '.join(missing) or '(none)'} did not run"
    return ""


def evidence_of(result: RowResult) -> Evidence:
    """The evidence that a passed result provides."""
    return Evidence(
        date=date.fromisoformat(result.started[:10]),
        commit=result.commit,
        row_digest=result.row_digest,
        identity=result.identity,
        packages={n: v for n, v in result.packages.items() if n in RECORDED_PACKAGES},
        suites={suite: counts_text(result.of_suite(suite)) for suite in result.suites},
    )


def with_evidence(matrix: Matrix, results: Iterable[RowResult]) -> dict[str, RowState]:
    """The states with the rows of `results` verified, in the order of the file."""
    verified = {
        result.row: RowState(state="verified", evidence=evidence_of(result)) for result in results
    }
    return {row: verified.get(row, state) for row, state in matrix.states.items()}


def write_states(path: Path, states: Mapping[str, RowState]) -> None:
    """Put `states` in place of the file's, which stand at its end.

    Raises:
        MatrixError: Something comes after them.
    """
    text = path.read_text(encoding="utf-8")
    block = _STATES.search(text)
    if block is None or re.search(r"^(?!states:)\S", block[0], re.MULTILINE):
        raise MatrixError(f"{path.name}: `states:` must be the last part of the file")
    plain = {row: _plain(state) for row, state in states.items()}
    dumped = yaml.safe_dump({"states": plain}, sort_keys=False, width=110, allow_unicode=True)
    write_file(path, (text[: block.start()] + dumped).encode(), replace=True)


def _plain(state: RowState) -> dict[str, Any]:
    fields = msgspec.to_builtins(state)
    return {key: value for key, value in fields.items() if value}
