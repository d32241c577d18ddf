"""What is noted of a load while it goes on: the time of its phases, and what the cache did."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Iterator

IMPORTS = "imports"
FIRST_RUN = "first run"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOutcome:
    """What the model cache did for one start.

    Attributes:
        state: "off"; "hit" (reloaded); "stored" (compiled, and kept for the next start); or
            "missed" (compiled, and not kept).
        reason: Why it was no hit, why nothing was kept, or why a session that asked for the cache
            goes around it; "" where there is nothing to say.
        key: Of the entry, or "".
    """

    state: str = "off"
    reason: str = ""
    key: str = ""


@dataclass(slots=True)
class LoadClock:
    """Adds up the seconds of each phase while a session is made."""

    began: float = field(default_factory=perf_counter)
    phases: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    payload_bytes: int = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the body towards a phase."""
        began = perf_counter()
        self.phases.setdefault(name, 0.0)
        try:
            yield
        finally:
            self.phases[name] += perf_counter() - began

    def stop(self) -> None:
        """The session is ready."""
        self.total = perf_counter() - self.began
        rest = self.total - sum(self.phases.values())
        self.phases = {IMPORTS: max(0.0, rest), **self.phases}

    def note_first_run(self, seconds: float) -> None:
        """A run has succeeded; of many at once the one that ends first counts."""
        self.phases.setdefault(FIRST_RUN, seconds)
