"""Rows with their axes expanded: one value for one environment on one kind of machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from ort_lite.hw.errors import MatrixError, suggestion
from ort_lite.hw.schema import Require
from ort_lite.hw.wildcard import fits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.hw.schema import AxisValue, Limit, Matrix, Ratio, Row, RowState

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
    found = {}
    for row in matrix.rows:
        for choice in _choices(matrix, row):
            expanded = _expanded(matrix, row, choice)
            found[expanded.id] = expanded
    return found


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
    """What the file says of a row."""
    return matrix.states[row.id]


def row_id(row: str, axes: Mapping[str, str]) -> str:
    """`row[axis=value,...]`."""
    return row + (f"[{','.join(f'{k}={v}' for k, v in axes.items())}]" if axes else "")


def _choices(matrix: Matrix, row: Row) -> list[dict[str, str]]:
    values = {axis: wanted or tuple(matrix.axes[axis]) for axis, wanted in row.axes.items()}
    choices = [dict(zip(values, combined, strict=True)) for combined in product(*values.values())]
    choices += [dict(more.axes) for more in matrix.include if more.row == row.id]
    left_out = [less.axes for less in matrix.exclude if less.row == row.id]
    return [c for c in choices if not any(less.items() <= c.items() for less in left_out)]


def _expanded(matrix: Matrix, row: Row, choice: Mapping[str, str]) -> ExpandedRow:
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
        env=_merged(row.env, *(value.env for value in values)),
        options=_merged(provider.options, *(value.options for value in values)),
        config=_merged(*(value.config for value in values)),
        sdk_modules=provider.sdk_modules,
        suites=row.suites,
        limits=_merged(row.limits, *(value.limits for value in values)),
        requires=tuple(require for require in requires if require != Require()),
        allow_failure=row.allow_failure,
    )


def _merged(*parts: Mapping[Key, Value]) -> dict[Key, Value]:
    return {key: value for part in parts for key, value in part.items()}
