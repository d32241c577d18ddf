"""One thing that `ort-lite doctor` looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What came of a check."""

    OK = "ok"
    ABSENT = "absent"
    """Not here, and nothing needs it."""
    BROKEN = "broken"
    """Here, and in a state in which it cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check.

    Attributes:
        found: What is there, or why not.
        fix: The command or step that mends it; "" where nothing is to be done.
    """

    name: str
    state: State
    found: str
    fix: str = ""
