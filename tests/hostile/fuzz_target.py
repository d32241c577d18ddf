"""A format that is damaged, and what became of a case."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path


class Finding(AssertionError):  # noqa: N818 - it is one
    """A case that ort_lite gets wrong."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: "refused", "right", "another model", "unchanged"; and why."""

    kind: str
    detail: str = ""


class Target(ABC):
    """Valid files of one format; a case damages one of them and loads the result."""

    name: ClassVar[str]
    last: bytes = b""
    """The damaged file of the case that runs, or that ran last."""

    def case(self, seed: int, index: int) -> Outcome:
        """Run case `index` of a seed.

        Raises:
            Finding: It was not refused and should have been, or computed wrong numbers.
        """
        return self.run(Random(f"{self.name}:{seed}:{index}"))

    @abstractmethod
    def __init__(self, folder: Path) -> None:
        """Make the valid files in a folder."""

    @abstractmethod
    def run(self, random: Random) -> Outcome:
        """Damage and load."""
