"""YAML as plain values with the line of each; every scalar stays the text that was written.

YAML's own guesses lose what a matrix needs: `3.10` would be 3.1, `no` False. The schema says
what a text means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from ctx_formats.file_kind import kind_of
from ort_lite.hw.errors import MatrixError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Key = str | int
Place = tuple[Key, ...]
MAX_DEPTH = 20
MAX_BYTES = 1 << 18
"""PyYAML reads 10 to 30 KB a second; the matrix of this repository has 17 KB."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file.

    Attributes:
        value: Mappings, lists, texts and None.
        lines: Line of each value, and of each key, by its place: ("rows", 0, "id").
    """

    path: Path
    value: Any
    lines: Mapping[Place, int]

    def at(self, place: Place) -> str:
        """`hw_matrix.yaml:12`, of the nearest place that the file has."""
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.path.name}:{self.lines.get(place, 1)}"


def read_yaml(path: Path) -> Document:
    """Parse a file.

    Raises:
        MatrixError: It cannot be read, is over MAX_BYTES, is not YAML, or has a key twice, an
            anchor or a tag.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode()
    except OSError as exc:
        raise MatrixError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        kind = kind_of(memoryview(data)) or "not UTF-8 text"
        raise MatrixError(f"{path}: {kind}, expected a hardware matrix (YAML)") from exc
    if len(data) > MAX_BYTES:
        raise MatrixError(f"{path}: over {MAX_BYTES} bytes, expected a matrix of at most as many")
    try:
        _check_events(text, path.name)
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f"{path.name}:{mark.line + 1}" if mark else path.name
        raise MatrixError(f"{where}: not YAML: {getattr(exc, 'problem', exc)}") from exc
    except (ValueError, OverflowError, RecursionError) as exc:
        # Numbers of a %YAML directive and of "\U..." in quotes raise what Python raises.
        raise MatrixError(f"{path.name}: not YAML: {exc}") from exc
    if root is None:
        raise MatrixError(f"{path.name}:1: the file is empty")
    lines: dict[Place, int] = {}
    return Document(path, _value(root, (), lines, path.name), lines)


def _check_events(text: str, file: str) -> None:
    """A value stands where it is used: no anchors, aliases or tags, and no deep nesting.

    The depth is checked here, before anything is composed: PyYAML takes time that grows with its
    square.
    """
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1 if event.start_mark else 1
        if depth > MAX_DEPTH + 1:
            raise MatrixError(f"{file}:{line}: nested deeper than {MAX_DEPTH}")
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise MatrixError(
                f"{file}:{line}: anchors, aliases and tags are not read; write it out"
            )


def _value(node: yaml.Node, place: Place, lines: dict[Place, int], file: str) -> Any:  # noqa: ANN401 - any YAML
    line = node.start_mark.line + 1
    lines.setdefault(place, line)
    if len(place) > MAX_DEPTH:
        raise MatrixError(f"{file}:{line}: nested deeper than {MAX_DEPTH}")
    if isinstance(node, yaml.ScalarNode):
        plain = node.style is None
        return None if plain and node.value in ("", "~", "null") else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*place, i), lines, file) for i, item in enumerate(node.value)]
    mapping: dict[str, Any] = {}
    for key, item in node.value:
        where = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise MatrixError(f"{file}:{where}: a key must be text")
        if key.value in mapping:
            raise MatrixError(f"{file}:{where}: the key '{key.value}' appears twice")
        lines[*place, key.value] = where
        mapping[key.value] = _value(item, (*place, key.value), lines, file)
    return mapping
