"""Reads hw_matrix.yaml; errors name the file and line, and suggest a fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from ort_lite.hw.check_matrix import check
from ort_lite.hw.errors import MatrixError, suggestion
from ort_lite.hw.schema import Matrix
from ort_lite.hw.yaml_text import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ort_lite.hw.yaml_text import Document, Place

FILE = "hw_matrix.yaml"
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`$")
_ANY = "..."


def read_matrix(path: Path, *, outdated: bool = False) -> Matrix:
    """The matrix in a file, checked.

    Args:
        path: The file.
        outdated: Take evidence that no longer answers to its row, as a run that renews it must.

    Raises:
        MatrixError: What is wrong, where, and what may have been meant.
    """
    document = read_yaml(path)
    if not isinstance(document.value, dict):
        raise MatrixError(
            f"{document.at(())}: found {'a list' if isinstance(document.value, list) else 'text'}, "
            "expected a mapping with the keys schema, providers, machines and rows; "
            "ort-lite hw init MODEL writes one"
        )
    try:
        matrix = msgspec.convert(document.value, Matrix, strict=False)
    except msgspec.ValidationError as exc:
        raise MatrixError(_describe(document, str(exc))) from exc
    check(matrix, document, outdated=outdated)
    return matrix


def json_schema() -> dict[str, Any]:
    """JSON Schema of the file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": FILE,
        **msgspec.json.schema(Matrix),
    }


def _describe(document: Document, message: str) -> str:
    problem, _, path = message.partition(" - at `$")
    place = _resolve_place(document, path.removeprefix("key in ").rstrip("`"), message)
    unknown = _UNKNOWN.match(problem)
    if unknown is None:
        shown = f" (in {_place_text(place)})" if place else ""
        return f"{document.at(place)}: {problem}{shown}"
    key = unknown[1]
    where = f" in {_place_text(place)}" if place else ""
    fields = _fields_at(json_schema(), document.value, place)
    return f"{document.at((*place, key))}: unknown key '{key}'{where}{suggestion(key, fields)}"


def _place_text(place: Place) -> str:
    return ".".join(str(part) for part in place)


def _resolve_place(document: Document, path: str, message: str) -> Place:
    """The place that msgspec means; it writes `[...]` for the key of a mapping."""
    place: list[str | int] = []
    for part in re.findall(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]", path):
        if part[0]:
            place.append(part[0])
        elif part[1] == _ANY:
            place.append(_culprit(document.value, tuple(place), message))
        else:
            place.append(int(part[1]))
    return tuple(place)


def _culprit(value: Any, place: Place, message: str) -> str:  # noqa: ANN401 - any YAML
    """The entry of the mapping at `place` that alone still gives the message."""
    entries = _get(value, place)
    for key in entries:
        try:
            msgspec.convert(_replace_at(value, place, {key: entries[key]}), Matrix, strict=False)
        except msgspec.ValidationError as exc:
            if str(exc) == message:
                return str(key)
    return _ANY


def _get(value: Any, place: Place) -> Any:  # noqa: ANN401 - any YAML
    for part in place:
        value = value[part]
    return value


def _replace_at(value: Any, place: Place, replacement: Any) -> Any:  # noqa: ANN401 - any YAML
    """`value` with another one at `place`; nothing is changed in place."""
    if not place:
        return replacement
    head, rest = place[0], place[1:]
    changed = _replace_at(value[head], rest, replacement)
    if isinstance(value, dict):
        return {**value, head: changed}
    return [changed if i == head else item for i, item in enumerate(value)]


def _fields_at(schema: dict[str, Any], value: Any, place: Place) -> list[str]:  # noqa: ANN401 - any YAML
    """The keys that the schema knows at `place`."""
    here = list(_variants(schema, {"$ref": schema["$ref"]}))
    for part in place:
        value = value[part]
        here = [v for variant in here for v in _step(schema, variant, part)]
    kind = value.get("kind") if isinstance(value, dict) else None
    fitting = [v for v in here if kind in v["properties"].get("kind", {}).get("enum", [kind])]
    return [name for variant in fitting for name in variant["properties"]]


def _step(schema: dict[str, Any], variant: dict[str, Any], part: str | int) -> Iterator[Any]:
    if isinstance(part, int):
        inner = variant.get("items")
    else:
        inner = variant.get("properties", {}).get(part, variant.get("additionalProperties"))
    if isinstance(inner, dict):
        yield from _variants(schema, inner)


def _variants(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in node:
        yield from _variants(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    elif "anyOf" in node:
        for one in node["anyOf"]:
            yield from _variants(schema, one)
    elif node.get("type") in ("object", "array"):
        yield node
