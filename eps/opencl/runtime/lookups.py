"""What runs with new shapes found: a program, or why there was none."""

from __future__ import annotations

from collections import deque

SHOWN = 4


class Lookups:
    """Counts of hits and misses, and the last misses with their reasons."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._hits = self._misses = 0
        self._last: deque[str] = deque(maxlen=SHOWN)

    def count(self, shapes: str, miss: str) -> None:
        """Count a run.

        Args:
            shapes: Of its inputs, as a text.
            miss: Why its program was not ready; "" for a hit.
        """
        if not miss:
            self._hits += 1
            return
        self._misses += 1
        self._last.append(f"{shapes} ({miss})")

    def notes(self) -> tuple[str, ...]:
        """Lines for `explain()`; none before the first run."""
        if not self._hits + self._misses:
            return ()
        total = f"{self._hits} of {self._hits + self._misses} runs found their program"
        if not self._misses:
            return (total,)
        skipped = self._misses - len(self._last)
        more = f"{skipped} earlier; " if skipped else ""
        return (f"{total}; not ready: {more}{'; '.join(self._last)}",)
