"""OpenVINO's errors as ort_lite's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Iterator

SDK_ERRORS = (RuntimeError, UnicodeDecodeError)
"""What OpenVINO's binding raises: RuntimeError for all that the C++ side throws, and
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
    told = [line for line in lines if line and not line.startswith("Exception from ")]
    return " ".join(told) or str(exc)
