"""Prepares a row to run: its environment, its models and the oracle's outputs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ort_lite.hw.child_process import row_environ, run_child
from ort_lite.hw.environment import ensure_environment, recipe_of
from ort_lite.hw.errors import EnvironmentFailed
from ort_lite.hw.result import LOG_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ort_lite.hw.child_process import ChildExit
    from ort_lite.hw.environment import Environment
    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix, MatrixModel

PROBE_TIMEOUT_S = 120
"""Seconds to probe a device or to ask an oracle, unless the matrix allows less."""
FETCH_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """The machine and folders in which rows run.

    Attributes:
        root: Folder of the matrix file; its paths are relative to it.
        out: Each row gets a folder in it.
        cache: Of environments.
        environ: The outer environment variables.
    """

    matrix: Matrix
    root: Path
    out: Path
    cache: Path
    facts: MachineFacts
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRow:
    """A row with its environment and a folder, whose children can be started."""

    row: ExpandedRow
    run_env: RunEnvironment
    environment: Environment
    folder: Path
    keeps_contexts: bool = False
    done: dict[str, Any] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """File with the output of all children."""
        return self.folder / LOG_FILE

    def job(self) -> dict[str, Any]:
        """The row's part of every task's job."""
        return {
            "ep": self.row.ep,
            "options": dict(self.row.options),
            "config": dict(self.row.config),
            "keeps_contexts": self.keeps_contexts,
        }

    def short_s(self) -> float:
        """Time limit, in seconds, of quick tasks."""
        return min(PROBE_TIMEOUT_S, self.run_env.matrix.defaults.timeout_s)

    def call(self, command: list[str], timeout_s: float) -> ChildExit:
        """Run `python COMMAND` of the environment in the row's folder."""
        environ = row_environ(self.run_env.environ, self.row.env, self.environment.folder)
        return run_child(
            [str(self.environment.python), *command],
            env=environ,
            folder=self.folder,
            timeout_s=timeout_s,
            log=self.log,
        )

    def ask(
        self, task: str, details: Mapping[str, Any], timeout_s: float
    ) -> tuple[ChildExit, dict[str, Any]]:
        """Run one task in a child; the answer is empty if the child did not finish it."""
        files = [self.folder / "job.json", self.folder / "answer.json"]
        files[0].write_text(json.dumps({"task": task, **self.job(), **details}), encoding="utf-8")
        files[1].unlink(missing_ok=True)
        ended = self.call(["-m", "ort_lite.hw.child_main", *map(str, files)], timeout_s)
        if ended.code != 0 or not files[1].is_file():
            return ended, {}
        answer: dict[str, Any] = json.loads(files[1].read_text(encoding="utf-8"))
        return ended, answer


def prepare_environment(row: ExpandedRow, run_env: RunEnvironment) -> ReadyRow:
    """Build or find the row's environment, and empty its folder's log.

    Raises:
        EnvironmentFailed: It cannot be built.
    """
    folder = run_env.out.resolve() / row.folder
    folder.mkdir(parents=True, exist_ok=True)
    recipe = recipe_of(row, run_env.matrix.defaults.install, run_env.root, run_env.facts)
    plain = row_environ(run_env.environ, {}, run_env.cache)
    environment = ensure_environment(recipe, run_env.cache.resolve(), plain)
    ready = ReadyRow(row=row, run_env=run_env, environment=environment, folder=folder)
    ready.log.unlink(missing_ok=True)
    return ready


def ensure_model(name: str, run_env: RunEnvironment) -> Path:
    """The file of a model, fetched if it is missing.

    Raises:
        EnvironmentFailed: It is missing and cannot be fetched.
    """
    model = run_env.matrix.models[name]
    path = run_env.root / model.path
    if path.is_file():
        return path
    if not model.fetch:
        raise EnvironmentFailed(
            f"model {name}: {path} does not exist, and the matrix has no `fetch` for it"
        )
    command = [part.replace("{python}", sys.executable) for part in model.fetch]
    run_env.out.mkdir(parents=True, exist_ok=True)
    ended = run_child(
        command,
        env=run_env.environ,
        folder=run_env.root,
        timeout_s=FETCH_TIMEOUT_S,
        log=run_env.out / "fetch.txt",
    )
    if ended.code != 0 or not path.is_file():
        raise EnvironmentFailed(
            f"model {name}: {' '.join(command)} {ended.describe()}: {ended.tail}"
        )
    return path


def model_job(ready: ReadyRow, name: str) -> dict[str, Any]:
    """The job of tasks on a model; the first call asks the oracle.

    Raises:
        EnvironmentFailed: No model, no input, or no answer of the oracle.
    """
    if name in ready.done:
        return dict(ready.done[name])
    run_env = ready.run_env
    model = run_env.matrix.models[name]
    folder = ready.folder / "oracle"
    folder.mkdir(exist_ok=True)
    tolerance = model.tolerance or run_env.matrix.defaults.tolerance
    job = {
        "name": name,
        "model": str(ensure_model(name, run_env)),
        "feed": str(folder / f"{name}.feed.npz"),
        "expected": str(folder / f"{name}.expected.npz"),
        "tolerance": msgspec.to_builtins(tolerance),
        "folder": str(ready.folder / "contexts"),
    }
    ended, answer = ready.ask("oracle", {**job, **_oracle_job(model, run_env)}, ready.short_s())
    if "outputs" not in answer:
        problem = answer.get("error", {}).get("message") or f"{ended.describe()}: {ended.tail}"
        raise EnvironmentFailed(f"the oracle of {name} failed: {problem}")
    ready.done[name] = job
    return dict(job)


def _oracle_job(model: MatrixModel, run_env: RunEnvironment) -> dict[str, Any]:
    is_file = model.oracle.endswith(".npz")
    inputs: Any = model.inputs
    return {
        "oracle": str(run_env.root / model.oracle) if is_file else model.oracle,
        "inputs": str(run_env.root / inputs) if isinstance(inputs, str)
        else msgspec.to_builtins(inputs),
    }  # fmt: skip
