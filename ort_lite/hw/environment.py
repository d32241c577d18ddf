"""A row's environment: a venv with the row's pins, cached by a digest of its recipe."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ort_lite.hw.child_process import run_child
from ort_lite.hw.errors import EnvironmentFailed
from ort_lite.hw.requirements import HERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.rows import ExpandedRow

BUILD_TIMEOUT_S = 1800
PIP_NOISE = ("WARNING:", "ERROR: Ignored the following")
"""Prefixes of pip's lines that do not name the error."""
SHAPING_PARTS = (
    ("build-system",),
    ("project", "name"),
    ("project", "version"),
    ("project", "entry-points"),
    ("project", "scripts"),
    ("tool", "setuptools"),
)
"""Parts of a project's pyproject.toml that an editable install depends on."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with all packages of a row."""

    folder: Path

    @property
    def python(self) -> Path:
        """Path of the venv's Python interpreter."""
        windows = os.name == "nt"
        return self.folder / ("Scripts/python.exe" if windows else "bin/python")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecipe:
    """Everything that determines an environment's contents.

    Attributes:
        python: Interpreter that creates the venv.
        packages: Requirements for pip.
        install: Arguments of `pip install --no-deps`, run in `root`; relative to it.
    """

    python: str
    packages: tuple[str, ...]
    install: tuple[str, ...]
    root: Path

    def key(self) -> str:
        """Digest that is equal for equal environments."""
        parts = [self.python, sorted(self.packages), self.install]
        if self.install:
            parts += [str(self.root), _shape(self.root / "pyproject.toml")]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def recipe_of(
    row: ExpandedRow, install: Sequence[str], root: Path, facts: MachineFacts
) -> EnvironmentRecipe:
    """The recipe of a row's environment."""
    python = sys.executable if row.python in ("", HERE) else facts.pythons[row.python]
    return EnvironmentRecipe(
        python=python, packages=row.packages, install=tuple(install), root=root
    )


def ensure_environment(
    recipe: EnvironmentRecipe, cache: Path, environ: Mapping[str, str]
) -> Environment:
    """Return the environment, building it if needed; waits for another process that builds it.

    Raises:
        EnvironmentFailed: pip or venv failed; nothing incomplete is left under its name.
    """
    folder = cache / recipe.key()
    environment = Environment(folder)
    complete = folder / "complete.json"
    cache.mkdir(parents=True, exist_ok=True)
    with _lock_file(cache / f"{folder.name}.lock"):
        if complete.is_file():
            return environment
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _build(recipe, environment, cache / f"{folder.name}.log", environ)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        complete.write_text(json.dumps({"packages": recipe.packages}), encoding="utf-8")
    return environment


def _build(
    recipe: EnvironmentRecipe, environment: Environment, log: Path, environ: Mapping[str, str]
) -> None:
    if find_spec("pip") is None:
        raise EnvironmentFailed(f"{sys.executable} has no pip to fill a row's environment with")
    log.unlink(missing_ok=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment.python), "--no-input",
           "--disable-pip-version-check", "install", "--quiet"]  # fmt: skip
    steps = [[recipe.python, "-m", "venv", "--without-pip", str(environment.folder)]]
    if recipe.packages:
        steps.append([*pip, *recipe.packages])
    if recipe.install:
        steps.append([*pip, "--no-deps", *recipe.install])
    for step in steps:
        ended = run_child(step, env=environ, folder=recipe.root, timeout_s=BUILD_TIMEOUT_S, log=log)
        if ended.code != 0:
            what = "venv" if "venv" in step else f"pip install {' '.join(step[len(pip) :])}"
            lines = [line for line in ended.tail.splitlines() if not line.startswith(PIP_NOISE)]
            text = "\n".join(lines)[-1500:]
            raise EnvironmentFailed(f"{what}: {ended.describe()}: {text}")


@contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    """Hold a lock file; where the system has no flock, builds are not serialised."""
    with path.open("wb") as file:
        if sys.platform != "win32":
            import fcntl  # noqa: PLC0415 - lazy: reload

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _shape(pyproject: Path) -> list[Any]:
    """The parts of a pyproject.toml that shape an editable install; nothing without the file."""
    if not pyproject.is_file():
        return []
    try:
        content = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as exc:
        raise EnvironmentFailed(f"{pyproject} is not TOML: {exc}") from exc
    return [reduce(_nested_part, place, content) for place in SHAPING_PARTS]


def _nested_part(content: Any, key: str) -> Any:  # noqa: ANN401 - any TOML
    return content.get(key) if isinstance(content, dict) else None
