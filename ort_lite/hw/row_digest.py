"""What evidence answers to: a row as it is run, and what its suites ask of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from ort_lite.hw.schema import ConformanceSuite
from ort_lite.hw.wildcard import fits

if TYPE_CHECKING:
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix, Model, Suite

TOLD = ("about", "lane", "allow_failure")
"""Of a row: shown and planned by, and nothing of a run depends on it."""
PATIENCE = ("timeout_s", "fetch")
"""Of suites and models: how long to wait and where from, not what to ask."""


def row_digest(row: ExpandedRow, matrix: Matrix) -> str:
    """Of all that decides what a passed run of the row shows.

    The row's pins, variables, options and requirements; its suites with their thresholds; their
    models with inputs, oracle and tolerance; and the failures that are expected of it. Not the
    texts about it, nor limits of time.
    """
    shown = {
        "row": _of_row(row),
        "suites": {name: _without(matrix.suites[name], PATIENCE) for name in row.suites},
        "models": {name: _of_model(matrix, name) for name in _models(row, matrix)},
        "expected failures": [one.test for one in matrix.expectations if fits(row.id, one.row)],
    }
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:16]


def _of_row(row: ExpandedRow) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(row).items() if key not in TOLD}
    limits = {ratio: limit.at_most for ratio, limit in row.limits.items()}
    return plain | {"requires": msgspec.to_builtins(row.requires), "limits": limits}


def _of_model(matrix: Matrix, name: str) -> dict[str, Any]:
    model = matrix.models[name]
    tolerance = msgspec.to_builtins(model.tolerance or matrix.defaults.tolerance)
    return _without(model, PATIENCE) | {"tolerance": tolerance}


def _models(row: ExpandedRow, matrix: Matrix) -> set[str]:
    suites = [matrix.suites[name] for name in row.suites]
    return {m for suite in suites if not isinstance(suite, ConformanceSuite) for m in suite.models}


def _without(value: Suite | Model, keys: tuple[str, ...]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return {key: part for key, part in plain.items() if key not in keys}
