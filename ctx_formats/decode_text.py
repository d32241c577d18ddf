"""Texts of protobuf messages, and their lists of key and value."""

from __future__ import annotations

from ctx_formats.errors import FormatError
from ctx_formats.wire import delimited_tag, read_fields

_KEY, _VALUE = delimited_tag(1), delimited_tag(2)


def decode_text(data: bytes | memoryview, start: int, end: int, what: str) -> str:
    """Decode a protobuf string, which is UTF-8.

    Raises:
        FormatError: It is not UTF-8.
    """
    try:
        return str(data[start:end], "utf-8")
    except UnicodeDecodeError as exc:
        raise not_text(exc, what) from exc


def not_text(exc: UnicodeDecodeError, what: str) -> FormatError:
    """The error for bytes that should be text."""
    return FormatError(what, f"{bytes(exc.object[:40])!r}", "UTF-8 text")


def decode_entry(data: bytes | memoryview, start: int, end: int, what: str) -> tuple[str, str]:
    """Decode a StringStringEntryProto to key and value."""
    key = value = ""
    for tag, a, b in read_fields(data, start, end):
        if tag == _KEY:
            key = decode_text(data, a, b, f"{what}.key")
        elif tag == _VALUE:
            value = decode_text(data, a, b, f"{what}.value")
    return key, value
