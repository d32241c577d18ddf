"""OpenVINO's errors as ort_lite's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ort_lite.ep import EPFail

if TYPE_CHECKING:
    from collections.abc import Iterator


class OpenVINOError(RuntimeError):
    """A function of OpenVINO's C API failed."""

    def __init__(self, function: str, status: int, message: str) -> None:
        """`message` is OpenVINO's; it has none if an argument was refused."""
        super().__init__(message or f"{function} gives status {status}")


SDK_ERRORS = (RuntimeError, UnicodeDecodeError)
"""Exceptions of OpenVINO's bindings: RuntimeError for all that the C++ side throws, and
UnicodeDecodeError where the message itself holds bytes of a blob (seen with 2026.4.1)."""

PROPERTY_ERRORS = (*SDK_ERRORS, TypeError)
"""Of get_property: TypeError where the binding has no caster for the value."""


@contextmanager
def openvino_errors(doing: str) -> Iterator[None]:
    """Raise EPFail for whatever OpenVINO raises while `doing` something; keeps its text."""
    try:
        yield
    except SDK_ERRORS as exc:
        raise EPFail(f"OpenVINO failed while {doing}: {sdk_text(exc)}") from exc


def sdk_text(exc: BaseException) -> str:
    """The message without OpenVINO's "Exception from file:line" lines, on one line."""
    lines = [line.strip() for line in str(exc).splitlines()]
    messages = [line for line in lines if line and not line.startswith("Exception from ")]
    return " ".join(messages) or str(exc)
