"""Durations of compiles, by which the next one of the same partition is estimated.

    {"format": 1, "seconds": {"<key>": 12.5}}

One file in the user's folder of caches, oldest entry first. A key is a digest of the partition's
name, which contains a digest of its nodes, and of the session's providers and options. A file that
is damaged, or cannot be written, costs the estimate and nothing else.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

FORMAT = 1
FILE = "compile_times.json"
MAX_ENTRIES = 500
MAX_BYTES = 1 << 20
SHORTEST = 1.0
"""Seconds below which a compile needs no estimate, and is not recorded."""
KEY_DIGITS = 32


class CompileTimes:
    """The recorded durations, in seconds.

    Attributes:
        path: Of the file; None records nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._seconds = _read(path) if path is not None else {}

    def last(self, key: str) -> float | None:
        """Seconds of the last compile under `key`, if one is recorded."""
        return self._seconds.get(key)

    def record(self, durations: dict[str, float]) -> None:
        """Add durations, in seconds, and write the file."""
        if self.path is None or not durations:
            return
        from ctx_formats.atomic_write import write_file

        known = {k: s for k, s in _read(self.path).items() if k not in durations}
        self._seconds = dict(list({**known, **durations}.items())[-MAX_ENTRIES:])
        text = json.dumps({"format": FORMAT, "seconds": self._seconds})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, text.encode(), replace=True)
        except OSError as exc:
            log.info("compile times are not recorded: %s", exc)


class CompileClock:
    """Times the partitions of one session, one after the other."""

    def __init__(
        self, times: CompileTimes, settings: str, now: Callable[[], float] = perf_counter
    ) -> None:
        """`settings` is everything besides the partition that decides a duration."""
        self._times = times
        self._settings = settings
        self._now = now
        self._current: tuple[str, float] | None = None
        self._durations: dict[str, float] = {}

    def begin(self, partition: str) -> float | None:
        """Start timing a partition; returns the seconds that it took last time, if known."""
        self._stop()
        key = key_of(partition, self._settings)
        self._current = key, self._now()
        return self._times.last(key)

    def end(self) -> None:
        """Record every duration that is worth an estimate, once the session is ready."""
        self._stop()
        self._times.record(self._durations)

    def _stop(self) -> None:
        if self._current is not None:
            key, began = self._current
            seconds = self._now() - began
            if seconds >= SHORTEST:
                self._durations[key] = round(seconds, 3)
        self._current = None


def key_of(partition: str, settings: str) -> str:
    """Key of a partition's duration under the session's settings."""
    return blake3(json.dumps([partition, settings]).encode()).hexdigest()[:KEY_DIGITS]


def open_times() -> CompileTimes:
    """The durations recorded for this user; none without a home folder."""
    from ort_lite.model_cache.user_folder import user_cache_folder
    from ort_lite.status import InvalidArgument

    try:
        return CompileTimes(Path(user_cache_folder(os.environ)) / FILE)
    except InvalidArgument:
        return CompileTimes(None)


def _read(path: Path) -> dict[str, float]:
    """Recorded durations; empty if the file is missing, damaged, too large or of another format."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    seconds = content.get("seconds") if isinstance(content, dict) else None
    if not isinstance(seconds, dict) or content.get("format") != FORMAT:
        return {}
    return {
        key: float(value)
        for key, value in seconds.items()
        if isinstance(value, int | float) and 0 < value < float("inf")
    }
