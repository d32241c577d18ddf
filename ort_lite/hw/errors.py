"""Errors of a matrix file and of its requests."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class MatrixError(Exception):
    """The file is wrong; the message begins with `file:line:`."""


class EnvironmentFailed(Exception):  # noqa: N818 - what happened, as ort_lite.status names its own
    """An environment cannot be built; says which, and the end of what pip said."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'rows'?`, or what there is, or ""."""
    names = list(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there is: {', '.join(names)}" if names else ""
