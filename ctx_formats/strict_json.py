"""JSON of untrusted files: bounded, and without duplicate names or impossible values."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

_BOM = b"\xef\xbb\xbf"


def read_json_object(data: bytes, where: str, *, limit: int) -> dict[str, JsonValue]:
    """The JSON object that `data` encodes in UTF-8, with or without a byte order mark.

    Args:
        data: The whole file.
        where: Its name in an error.
        limit: Most bytes that it may have.

    Raises:
        FormatError: It is longer, is not JSON (RFC 8259), is not an object, is nested too deeply,
            has a name twice in one object, or has a number or character that no JSON text may
            have.
    """
    if len(data) > limit:
        raise FormatError(where, f"{len(data)} bytes", f"at most {limit}")
    try:
        text = data.removeprefix(_BOM).decode("utf-8")
        content = json.loads(
            text,
            object_pairs_hook=_collect_pairs,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
        )
        json.dumps(content, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except (ValueError, RecursionError) as exc:
        raise FormatError(where, f"not valid JSON: {str(exc)[:200]}", "a JSON object") from exc
    if not isinstance(content, dict):
        raise FormatError(where, f"JSON of type {type(content).__name__}", "a JSON object")
    return content


def _collect_pairs(pairs: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError(f"the name {_find_twice(pairs)[:80]!r} appears twice in one object")
    return content


def _find_twice(pairs: Sequence[tuple[str, JsonValue]]) -> str:
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            break
        names.add(name)
    return name


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


def _parse_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value
