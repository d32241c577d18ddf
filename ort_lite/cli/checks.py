"""A check of `ort-lite doctor` and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    ABSENT = "absent"
    """Absent and not required."""
    BROKEN = "broken"
    """Present but not usable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check.

    Attributes:
        found: What was found, or why nothing was.
        fix: The command or step that fixes it; "" if none is needed.
    """

    name: str
    state: State
    found: str
    fix: str = ""
