"""Warnings that point to the line of the user's program."""

from __future__ import annotations

import sys
import warnings


def warn_user(text: str) -> None:
    """Issue a UserWarning for the innermost frame that is not ort_lite's.

    Python shows a warning once for each line that it is issued for, so that two sessions of one
    program each have theirs.
    """
    frame, level = sys._getframe(1), 2  # noqa: SLF001 - the only way to the callers in Python 3.11
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in {"ort_lite", "contextlib"}
