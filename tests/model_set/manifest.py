"""The pinned list of real models: which file of which PyPI package, and what to feed it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST = Path(__file__).with_name("manifest.json")
CACHE = Path(__file__).parents[2] / ".models"
"""Where models are kept: inside the checkout, not under version control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """How to make one example input.

    Attributes:
        type: numpy's name of the element type.
        values: "normal", "text_line" (a picture), {"below": n} for integers in [0, n), or
            {"constant": c}.
    """

    shape: tuple[int, ...]
    type: str
    values: str | Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model.

    Attributes:
        file: Path inside the wheel.
        bytes: Size of that file.
        sha256: Digest of that file.
        weights_sha256: For a model that travels without its weights, the digest of what
            `bake` makes of it; "" for the others.
    """

    name: str
    kind: str
    package: str
    version: str
    file: str
    bytes: int
    sha256: str
    inputs: Mapping[str, InputSpec]
    weights_sha256: str = ""

    @property
    def final_sha256(self) -> str:
        """Digest of the model as tests get it."""
        return self.weights_sha256 or self.sha256


def load_manifest(path: Path = MANIFEST) -> dict[str, Entry]:
    """All entries by name, in the order of the file.

    Raises:
        ValueError: Another schema, or a name that is there twice.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["schema"] != 1:
        raise ValueError(f"{path}: schema {data['schema']}, expected 1")
    found: dict[str, Entry] = {}
    for row in data["models"]:
        entry = _entry(row)
        if entry.name in found:
            raise ValueError(f"{path}: two models are called {entry.name}")
        found[entry.name] = entry
    return found


def _entry(row: dict[str, Any]) -> Entry:
    inputs = {
        name: InputSpec(shape=tuple(spec["shape"]), type=spec["type"], values=spec["values"])
        for name, spec in row["inputs"].items()
    }
    return Entry(**{**row, "inputs": inputs})
