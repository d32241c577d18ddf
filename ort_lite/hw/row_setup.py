"""What a row needs before it runs: its environment, its device, its models and the oracle."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ort_lite.hw.child import row_environ, run_child
from ort_lite.hw.environment import ensure_environment, recipe_of
from ort_lite.hw.errors import EnvironmentFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ort_lite.hw.child import Ended
    from ort_lite.hw.environment import Environment
    from ort_lite.hw.facts import Facts
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix, Model

PROBE_TIMEOUT_S = 120
"""For looking at a device and for asking an oracle; less where the matrix says less."""
FETCH_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where rows run.

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
    facts: Facts
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRow:
    """A row with its environment and a folder, whose children can be started."""

    row: ExpandedRow
    place: Workplace
    environment: Environment
    folder: Path
    keeps_contexts: bool = False
    done: dict[str, Any] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """Where all children's output goes."""
        return self.folder / "log.txt"

    def job(self) -> dict[str, Any]:
        """What every task needs to know of the row."""
        return {
            "ep": self.row.ep,
            "options": dict(self.row.options),
            "config": dict(self.row.config),
            "keeps_contexts": self.keeps_contexts,
        }

    def short_s(self) -> float:
        """Seconds for what ought to be quick."""
        return min(PROBE_TIMEOUT_S, self.place.matrix.defaults.timeout_s)

    def call(self, command: list[str], timeout_s: float) -> Ended:
        """Run `python COMMAND` of the environment in the row's folder."""
        environ = row_environ(self.place.environ, self.row.env, self.environment.folder)
        return run_child(
            [str(self.environment.python), *command],
            env=environ,
            folder=self.folder,
            timeout_s=timeout_s,
            log=self.log,
        )

    def ask(
        self, task: str, details: Mapping[str, Any], timeout_s: float
    ) -> tuple[Ended, dict[str, Any]]:
        """Let a child do one task; its answer is empty if it did not come to one."""
        files = [self.folder / "job.json", self.folder / "answer.json"]
        files[0].write_text(json.dumps({"task": task, **self.job(), **details}), encoding="utf-8")
        files[1].unlink(missing_ok=True)
        ended = self.call(["-m", "ort_lite.hw.child_task", *map(str, files)], timeout_s)
        if ended.code != 0 or not files[1].is_file():
            return ended, {}
        answer: dict[str, Any] = json.loads(files[1].read_text(encoding="utf-8"))
        return ended, answer


def prepare_environment(row: ExpandedRow, place: Workplace) -> ReadyRow:
    """Build or find the row's environment, and empty its folder's log.

    Raises:
        EnvironmentFailed: It cannot be built.
    """
    folder = place.out.resolve() / row.folder
    folder.mkdir(parents=True, exist_ok=True)
    recipe = recipe_of(row, place.matrix.defaults.install, place.root, place.facts)
    plain = row_environ(place.environ, {}, place.cache)
    environment = ensure_environment(recipe, place.cache.resolve(), plain)
    ready = ReadyRow(row=row, place=place, environment=environment, folder=folder)
    ready.log.unlink(missing_ok=True)
    return ready


def ensure_model(name: str, place: Workplace) -> Path:
    """The file of a model, fetched if it is missing.

    Raises:
        EnvironmentFailed: It cannot be had.
    """
    model = place.matrix.models[name]
    path = place.root / model.path
    if path.is_file():
        return path
    if not model.fetch:
        raise EnvironmentFailed(f"model {name}: {path} is not there, and nothing fetches it")
    command = [part.replace("{python}", sys.executable) for part in model.fetch]
    place.out.mkdir(parents=True, exist_ok=True)
    ended = run_child(
        command,
        env=place.environ,
        folder=place.root,
        timeout_s=FETCH_TIMEOUT_S,
        log=place.out / "fetch.txt",
    )
    if ended.code != 0 or not path.is_file():
        raise EnvironmentFailed(
            f"model {name}: {' '.join(command)} {ended.describe()}: {ended.tail}"
        )
    return path


def model_job(ready: ReadyRow, name: str) -> dict[str, Any]:
    """What tasks on a model need; the oracle answers the first time.

    Raises:
        EnvironmentFailed: No model, no input, or no answer of the oracle.
    """
    if name in ready.done:
        return dict(ready.done[name])
    place = ready.place
    model = place.matrix.models[name]
    folder = ready.folder / "oracle"
    folder.mkdir(exist_ok=True)
    tolerance = model.tolerance or place.matrix.defaults.tolerance
    job = {
        "name": name,
        "model": str(ensure_model(name, place)),
        "feed": str(folder / f"{name}.feed.npz"),
        "expected": str(folder / f"{name}.expected.npz"),
        "tolerance": msgspec.to_builtins(tolerance),
        "folder": str(ready.folder / "contexts"),
    }
    ended, answer = ready.ask("oracle", {**job, **_oracle(model, place)}, ready.short_s())
    if "outputs" not in answer:
        problem = answer.get("error", {}).get("message") or f"{ended.describe()}: {ended.tail}"
        raise EnvironmentFailed(f"the oracle of {name} does not answer: {problem}")
    ready.done[name] = job
    return dict(job)


def _oracle(model: Model, place: Workplace) -> dict[str, Any]:
    is_file = model.oracle.endswith(".npz")
    inputs: Any = model.inputs
    return {
        "oracle": str(place.root / model.oracle) if is_file else model.oracle,
        "inputs": str(place.root / inputs) if isinstance(inputs, str)
        else msgspec.to_builtins(inputs),
    }  # fmt: skip
