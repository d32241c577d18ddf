"""Matches texts with patterns in RE2's syntax."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_POSIX_CLASS = "[:"
"""Begins a class such as [:alpha:], which Python takes for a set of those letters."""


def full_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text as a whole matches `pattern`.

    By RE2 where google-re2 is installed, in time that grows with the text's length alone. Else by
    Python's `re`, where a pattern made to backtrack takes time without bound.

    Raises:
        ValueError: The pattern is not valid, or means something else to Python.
    """
    try:
        import re2  # noqa: PLC0415 - optional
    except ImportError:
        return _by_python(pattern)
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as exc:
        said = exc.args[0]
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        raise ValueError(f"invalid pattern: {text}") from exc
    return lambda text: compiled.fullmatch(text) is not None


def _by_python(pattern: str) -> Callable[[str], bool]:
    if _POSIX_CLASS in pattern:
        raise ValueError(f"pattern '{pattern}' has a POSIX class: install google-re2")
    try:
        compiled = re.compile(pattern, re.ASCII)  # RE2's \d, \s, \w and \b know ASCII only
    except re.error as exc:
        raise ValueError(f"invalid pattern: {exc} (Python's `re`; google-re2 knows all)") from exc
    return lambda text: compiled.fullmatch(text) is not None
