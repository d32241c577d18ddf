"""Rows with their axes expanded, and the digest that ties a row to its evidence."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ort_lite.hw.errors import MatrixError, suggestion
from ort_lite.hw.patterns import fits
from ort_lite.hw.schema import ConformanceSuite, Require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.hw.schema import (
        AxisValue,
        Limit,
        Matrix,
        MatrixModel,
        Ratio,
        Row,
        RowState,
        Suite,
    )

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedRow:
    """A row of the file with one value for each of its axes.

    Attributes:
        id: `row` or `row[axis=value,...]`, in the order of the row's axes.
        packages: Requirements of its environment.
        env: Variables of its processes; {env} is the environment's folder.
        limits: Thresholds of `bench` that it has instead of the suite's.
        requires: Every one must be met.
    """

    id: str
    row: str
    ep: str
    device: str
    machine: str
    about: str = ""
    lane: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
    packages: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    sdk_modules: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    limits: Mapping[Ratio, Limit] = field(default_factory=dict)
    requires: tuple[Require, ...] = ()
    allow_failure: bool = False

    @property
    def folder(self) -> str:
        """The id as a name for a folder."""
        return self.id.replace("[", "-").replace("]", "").replace(",", "-").replace("=", "-")


def expand(matrix: Matrix) -> dict[str, ExpandedRow]:
    """Every expanded row by its id, in the order of the file.

    An axis that a row names without values (`embed: []`) takes all that the file has for it.
    """
    expanded_rows = {}
    for row in matrix.rows:
        for choice in _choices(matrix, row):
            expanded = _expand_row(matrix, row, choice)
            expanded_rows[expanded.id] = expanded
    return expanded_rows


def select(rows: Mapping[str, ExpandedRow], names: Sequence[str]) -> tuple[ExpandedRow, ...]:
    """The rows that are named: by id, by the row's name before its axes, or with `*`.

    Raises:
        MatrixError: A name that fits no row.
    """
    chosen: dict[str, ExpandedRow] = {}
    for name in names or ["*"]:
        fitting = {i: r for i, r in rows.items() if r.row == name or fits(i, name)}
        if not fitting:
            raise MatrixError(f"no row is called '{name}'{suggestion(name, rows)}")
        chosen |= fitting
    return tuple(chosen.values())


def state_of(matrix: Matrix, row: ExpandedRow) -> RowState:
    """A row as the file describes it."""
    return matrix.states[row.id]


def row_id(row: str, axes: Mapping[str, str]) -> str:
    """Name a row by its axes: `row[axis=value,...]`."""
    return row + (f"[{','.join(f'{k}={v}' for k, v in axes.items())}]" if axes else "")


def _choices(matrix: Matrix, row: Row) -> list[dict[str, str]]:
    values = {axis: chosen or tuple(matrix.axes[axis]) for axis, chosen in row.axes.items()}
    choices = [dict(zip(values, combined, strict=True)) for combined in product(*values.values())]
    choices += [dict(more.axes) for more in matrix.include if more.row == row.id]
    left_out = [less.axes for less in matrix.exclude if less.row == row.id]
    return [c for c in choices if not any(less.items() <= c.items() for less in left_out)]


def _expand_row(matrix: Matrix, row: Row, choice: Mapping[str, str]) -> ExpandedRow:
    provider, machine = matrix.providers[row.provider], matrix.machines[row.machine]
    values: list[AxisValue] = [matrix.axes[axis][value] for axis, value in choice.items()]
    requires = [machine.require, row.require, *(value.require for value in values)]
    abouts = [row.about, *(value.about for value in values)]
    return ExpandedRow(
        id=row_id(row.id, choice),
        row=row.id,
        ep=provider.ep,
        device=provider.device,
        machine=row.machine,
        about="; ".join(filter(None, abouts)),
        lane=row.lane,
        axes=choice,
        python=next((value.python for value in values if value.python), ""),
        packages=(
            *matrix.defaults.packages,
            *row.packages,
            *(package for value in values for package in value.packages),
        ),
        env=_merge(row.env, *(value.env for value in values)),
        options=_merge(provider.options, *(value.options for value in values)),
        config=_merge(*(value.config for value in values)),
        sdk_modules=provider.sdk_modules,
        suites=row.suites,
        limits=_merge(row.limits, *(value.limits for value in values)),
        requires=tuple(require for require in requires if require != Require()),
        allow_failure=row.allow_failure,
    )


def _merge(*parts: Mapping[Key, Value]) -> dict[Key, Value]:
    return {key: value for part in parts for key, value in part.items()}


NOT_DIGESTED = ("about", "lane", "allow_failure")
"""Fields of a row that do not affect a run."""
TIME_LIMITS = ("timeout_s", "fetch")
"""Fields of suites and models that do not affect what a run shows."""


def row_digest(row: ExpandedRow, matrix: Matrix) -> str:
    """Digest of everything that determines what a passed run of the row shows.

    The row's pins, variables, options and requirements; its suites with their thresholds; their
    models with inputs, oracle and tolerance; and its expected failures. Descriptions and time
    limits are left out.
    """
    digested = {
        "row": _row_fields(row),
        "suites": {name: _without_keys(matrix.suites[name], TIME_LIMITS) for name in row.suites},
        "models": {name: _model_fields(matrix, name) for name in _models_of_row(row, matrix)},
        "expected failures": [one.test for one in matrix.expectations if fits(row.id, one.row)],
    }
    return hashlib.sha256(json.dumps(digested, sort_keys=True).encode()).hexdigest()[:16]


def _row_fields(row: ExpandedRow) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(row).items() if key not in NOT_DIGESTED}
    limits = {ratio: limit.at_most for ratio, limit in row.limits.items()}
    return plain | {"requires": msgspec.to_builtins(row.requires), "limits": limits}


def _model_fields(matrix: Matrix, name: str) -> dict[str, Any]:
    model = matrix.models[name]
    tolerance = msgspec.to_builtins(model.tolerance or matrix.defaults.tolerance)
    return _without_keys(model, TIME_LIMITS) | {"tolerance": tolerance}


def _models_of_row(row: ExpandedRow, matrix: Matrix) -> set[str]:
    suites = [matrix.suites[name] for name in row.suites]
    return {m for suite in suites if not isinstance(suite, ConformanceSuite) for m in suite.models}


def _without_keys(value: Suite | MatrixModel, keys: tuple[str, ...]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return {key: part for key, part in plain.items() if key not in keys}
