"""The golden files of one release, unpacked: files as an ort_lite of that version wrote them."""

from __future__ import annotations

import hashlib
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RELEASES = sorted(path.parent for path in HERE.glob("*/files.tar.xz"))


@dataclass(frozen=True, slots=True)
class Context:
    """A context model, and what onnxruntime answered to its plain model.

    Attributes:
        options: Of the provider that compiled it.
    """

    path: Path
    provider: str
    options: dict[str, str]
    inputs: dict[str, np.ndarray]
    output: np.ndarray


@dataclass(frozen=True, slots=True)
class Released:
    """A release's files in a folder that a test may write to."""

    version: str
    root: Path
    about: dict[str, Any]

    def context(self, path: str) -> Context:
        """One of the context models, by its path in the release."""
        (found,) = [one for one in self.about["contexts"] if one["path"] == path]
        inputs = {name: np.array(value, np.float32) for name, value in found["inputs"].items()}
        output = np.array(found["output"], np.float32)
        path_here = self.root / found["path"]
        return Context(path_here, found["provider"], found["options"], inputs, output)

    def file(self, pattern: str) -> Path:
        """The one file of that pattern."""
        (found,) = self.root.glob(pattern)
        return found


def about(release: Path) -> dict[str, Any]:
    """What was recorded when the files were made."""
    content: dict[str, Any] = json.loads((release / "about.json").read_text(encoding="utf-8"))
    return content


def unpack(release: Path, target: Path) -> Released:
    """The files, each of which has its digest."""
    known = about(release)
    with tarfile.open(release / "files.tar.xz") as archive:
        archive.extractall(target, filter="data")
    for name, digest in known["files"].items():
        assert hashlib.sha256((target / name).read_bytes()).hexdigest() == digest, name
    return Released(known["ort_lite"], target, known)


def context_paths() -> list[tuple[Path, str]]:
    """Release and path of every context model of every release."""
    return [(release, one["path"]) for release in RELEASES for one in about(release)["contexts"]]
