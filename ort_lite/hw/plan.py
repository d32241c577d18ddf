"""The plan: every expanded row, whether this machine can run it, and CI jobs for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from ort_lite.context.quote_argument import quote_argument
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.requirements import machine_lacks
from ort_lite.hw.rows import state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import MachineEntry, Matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """A row, and why it cannot run here, if so.

    Attributes:
        state: verified, expected or unsupported.
        setup: Shell commands that a fresh CI machine needs before the row's own.
        why_not: Empty if it can run.
    """

    row: ExpandedRow
    machine: MachineEntry
    state: str
    setup: tuple[str, ...]
    why_not: tuple[str, ...]

    @property
    def is_runnable(self) -> bool:
        """Whether nothing is known to prevent it."""
        return not self.why_not


def make_plan(
    matrix: Matrix, rows: Iterable[ExpandedRow], facts: MachineFacts
) -> tuple[PlannedRow, ...]:
    """One planned row for each row."""
    return tuple(
        PlannedRow(
            row=row,
            machine=matrix.machines[row.machine],
            state=state_of(matrix, row).state,
            setup=(*matrix.defaults.setup, *matrix.machines[row.machine].setup),
            why_not=_reasons_against(matrix, row, facts),
        )
        for row in rows
    )


def required_libraries(rows: Iterable[ExpandedRow]) -> tuple[str, ...]:
    """Shared libraries that any of the rows needs."""
    return tuple(lib for row in rows for require in row.requires for lib in require.libraries)


def _reasons_against(matrix: Matrix, row: ExpandedRow, facts: MachineFacts) -> tuple[str, ...]:
    state = state_of(matrix, row)
    unsupported = (f"unsupported: {state.reason}",) if state.state == "unsupported" else ()
    return (*unsupported, *machine_lacks(row, facts))


MAX_JOBS = 256
"""Of one matrix in GitHub Actions."""
OUT = "hw-results"
DEFAULT_PYTHON = "3.13"


def plan_json(plan: Sequence[PlannedRow]) -> list[dict[str, Any]]:
    """`rows` of `hw plan --format json`."""
    return [
        {
            "id": planned.row.id,
            "runnable": planned.is_runnable,
            "why_not": list(planned.why_not),
            "state": planned.state,
            "execution_provider": planned.row.ep,
            "device": planned.row.device,
            "machine": planned.row.machine,
            "axes": dict(planned.row.axes),
            "packages": list(planned.row.packages),
            "suites": list(planned.row.suites),
            "lane": planned.row.lane,
        }
        for planned in plan
    ]


def _gha(plan: Sequence[PlannedRow]) -> str:
    """A matrix for `strategy: matrix: ${{ fromJSON(...) }}`, on one line.

    Raises:
        MatrixError: More jobs than GitHub takes.
    """
    if len(plan) > MAX_JOBS:
        raise MatrixError(
            f"{len(plan)} rows, and a matrix in GitHub Actions has at most {MAX_JOBS} jobs; "
            "plan them by --lane or name rows"
        )
    include = [
        {
            "id": planned.row.id,
            "name": planned.row.folder,
            "runs_on": list(planned.machine.runs_on),
            "python": planned.row.python or DEFAULT_PYTHON,
            "setup": "\n".join(planned.setup),
            "allow_failure": planned.row.allow_failure,
        }
        for planned in plan
    ]
    return json.dumps({"include": include})


def _gitlab(plan: Sequence[PlannedRow]) -> str:
    return _yaml(
        {
            f"hw {planned.row.id}": {
                "stage": "test",
                "tags": list(planned.machine.runs_on),
                "script": _commands(planned),
                "allow_failure": planned.row.allow_failure,
                "artifacts": {
                    "when": "always",
                    "paths": [f"{OUT}/"],
                    "reports": {"junit": f"{OUT}/*/junit.xml"},
                },
            }
            for planned in plan
        }
    )


def _buildkite(plan: Sequence[PlannedRow]) -> str:
    steps = [
        {
            "label": planned.row.id,
            "key": planned.row.folder.replace(".", "-"),
            "agents": dict(planned.machine.agents),
            "commands": _commands(planned),
            "artifact_paths": [f"{OUT}/**/*"],
            "soft_fail": planned.row.allow_failure,
        }
        for planned in plan
    ]
    return _yaml({"steps": steps})


def _azure(plan: Sequence[PlannedRow]) -> str:
    jobs = [
        {
            "job": planned.row.folder.replace("-", "_").replace(".", "_"),
            "displayName": planned.row.id,
            "pool": _azure_pool(planned),
            "continueOnError": "true" if planned.row.allow_failure else "false",  # as text
            "steps": [
                *({"script": command} for command in _commands(planned)),
                {"publish": OUT, "artifact": planned.row.folder, "condition": "always()"},
            ],
        }
        for planned in plan
    ]
    return _yaml({"jobs": jobs})


def _azure_pool(planned: PlannedRow) -> dict[str, Any]:
    labels = list(planned.machine.runs_on)
    if "self-hosted" not in labels:
        return {"vmImage": labels[0]} if labels else {}
    return {"name": "self-hosted", "demands": [label for label in labels if label != "self-hosted"]}


def _commands(planned: PlannedRow) -> list[str]:
    return [*planned.setup, f"ort-lite hw run {quote_argument(planned.row.id)} --out {OUT}"]


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=100).rstrip("\n")


FORMATS: Mapping[str, Callable[[Sequence[PlannedRow]], str]] = {
    "gha": _gha,
    "gitlab": _gitlab,
    "buildkite": _buildkite,
    "azure": _azure,
}
