"""Matches texts with patterns in RE2's syntax."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_POSIX_CLASS = "[:"
"""Begins a class such as [:alpha:], which Python takes for a set of those letters."""
_FIRST_NOT_LONGEST = re.compile(r"\||[*+?}]\?")


def full_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text as a whole matches `pattern`.

    By RE2 where google-re2 is installed, in time that grows with the text's length alone. Else by
    Python's `re`, where a pattern made to backtrack takes time without bound.

    Raises:
        ValueError: The pattern is not valid, or means something else to Python.
    """
    compiled = _compile_pattern(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def finder(pattern: str) -> Callable[[str], list[tuple[int, int]]]:
    """Begin and end of what `pattern` matches in a text, from left to right, each the longest.

    Raises:
        ValueError: As `full_matcher`; or without google-re2 the longest may not be found.
    """
    compiled = _compile_pattern(pattern, longest=True)
    return lambda text: [match.span() for match in compiled.finditer(text)]


def _compile_pattern(pattern: str, *, longest: bool = False) -> Any:  # noqa: ANN401 - of re2 or re
    try:
        import re2  # noqa: PLC0415 - lazy: rare
    except ImportError:
        return _by_python(pattern, longest=longest)
    options = re2.Options()
    options.log_errors = False
    options.longest_match = longest
    try:
        return re2.compile(pattern, options)
    except re2.error as exc:
        said = exc.args[0]
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        raise ValueError(f"invalid pattern: {text}") from exc


def _by_python(pattern: str, *, longest: bool) -> re.Pattern[str]:
    if longest and _FIRST_NOT_LONGEST.search(pattern):
        raise ValueError(
            f"pattern '{pattern}' has alternatives, of which Python's `re` takes the first and "
            "not the longest: install google-re2"
        )
    if _POSIX_CLASS in pattern:
        raise ValueError(f"pattern '{pattern}' has a POSIX class: install google-re2")
    try:
        return re.compile(pattern, re.ASCII)  # RE2's \d, \s, \w and \b know ASCII only
    except re.error as exc:
        raise ValueError(f"invalid pattern: {exc} (Python's `re`; google-re2 knows all)") from exc
