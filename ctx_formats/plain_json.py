"""Plain JSON objects, read and spelled without the json module, whose import takes 3 ms.

Plain is an object of text, whole numbers and such objects, spelled without white space or escapes:
all that ort_lite itself writes to the notes of most nodes. Everything else is the json module's,
valid or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    PlainValue: TypeAlias = "str | int | dict[str, PlainValue]"

MAX_DEPTH = 8
_MAX_DIGITS = 18


def read_plain_object(text: str) -> dict[str, PlainValue] | None:
    """The value of a plain object, as `json.loads` returns it; None if `text` is anything else."""
    try:
        content, end = _read_object(text, 0, MAX_DEPTH)
    except _NotPlainError:
        return None
    return content if end == len(text) else None


def spell_plain_object(content: Mapping[str, PlainValue]) -> str:
    """A value of `read_plain_object`, as `json.dumps` spells it with its keys in order.

    The separators are without blanks, and characters beyond ASCII stay as they are.
    """
    members = ",".join([f'"{key}":{_spell(content[key])}' for key in sorted(content)])
    return f"{{{members}}}"


class _NotPlainError(Exception):
    """The text is not plain."""


def _spell(value: PlainValue) -> str:
    if isinstance(value, dict):
        return spell_plain_object(value)
    return f'"{value}"' if isinstance(value, str) else str(value)


def _read_object(text: str, at: int, depth: int) -> tuple[dict[str, PlainValue], int]:
    """The object at `at`, and the place behind it."""
    if not depth or not text.startswith("{", at):
        raise _NotPlainError
    content: dict[str, PlainValue] = {}
    if text.startswith("}", at + 1):
        return content, at + 2
    while True:
        key, at = _read_text(text, at + 1)
        if key in content or not text.startswith(":", at):
            raise _NotPlainError
        content[key], at = _read_value(text, at + 1, depth)
        if text.startswith("}", at):
            return content, at + 1
        if not text.startswith(",", at):
            raise _NotPlainError


def _read_value(text: str, at: int, depth: int) -> tuple[PlainValue, int]:
    if text.startswith('"', at):
        return _read_text(text, at)
    if text.startswith("{", at):
        return _read_object(text, at, depth - 1)
    end = at
    while text[end : end + 1] in _DIGITS:
        end += 1
    digits = text[at:end]
    if not 0 < len(digits) <= _MAX_DIGITS or (digits[0] == "0" and digits != "0"):
        raise _NotPlainError
    return int(digits), end


_DIGITS = frozenset("0123456789")


def _read_text(text: str, at: int) -> tuple[str, int]:
    """The text in quotes at `at`, and the place behind it."""
    end = text.find('"', at + 1)
    if end < 0 or not text.startswith('"', at):
        raise _NotPlainError
    value = text[at + 1 : end]
    if "\\" in value or not value.isprintable():
        raise _NotPlainError
    return value, end + 1
