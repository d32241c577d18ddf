"""Report of a session's load: time by phase, and where its compiled form came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.start.load_request import CacheOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCompile:
    """State of a compile in the background of a session that answers already.

    Attributes:
        state: "off"; "compiling", for the model or for shapes that a run has brought; "done" (the
            session runs what was compiled); "failed" or "canceled" (it goes on as it began).
        reason: Why it is off, failed or was canceled; "" where there is nothing to say.
        interim: Names of the execution providers that answer, or answered, meanwhile.
        phases: Seconds by phase of the compile, as in `LoadReport` but without `imports`; empty
            before it ends.
        payload_bytes: Size of the payloads that it found compiled and imported.
        error: What it failed with.
    """

    state: str = "off"
    reason: str = ""
    interim: tuple[str, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    payload_bytes: int = 0
    error: Exception | None = None

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON values; times in seconds."""
        return {
            "state": self.state,
            "reason": self.reason,
            "interim": list(self.interim),
            "phases_s": {name: round(seconds, 6) for name, seconds in self.phases.items()},
        }

    def __str__(self) -> str:
        """State, reason and interim providers in one line."""
        line = _with_reason(f"background compile {self.state}", self.reason)
        return f"{line} ({', '.join(self.interim)} meanwhile)" if self.interim else line


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """Cost of getting a session ready, and to its first answer.

    Attributes:
        phases: Seconds by phase, in the order in which phases began. Phases do not overlap:
            what an execution provider does in the background meanwhile is in none, nor what a
            session does while a payload is imported. `imports` is what is in no other phase,
            which is nearly all Python importing modules; so phases add up to `total` and, from
            the first call of `run` on that succeeds, `first run`; and to `compile for a later run`,
            where there was one.
        total: Seconds that making the session took.
        model_bytes: Size of the model file that was decoded: on a cache hit the context model.
        payload_bytes: Size of the payloads that were imported.
        peak_rss: High-water mark of the process's resident memory in bytes; None if the
            system does not report it.
        cache: What the model cache did.
        background: What compiling behind the session has come to so far.
    """

    phases: Mapping[str, float]
    total: float
    model_bytes: int
    payload_bytes: int
    peak_rss: int | None
    cache: CacheOutcome
    background: BackgroundCompile = field(default_factory=BackgroundCompile)

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON values; times in seconds."""
        return {
            "phases_s": {name: round(seconds, 6) for name, seconds in self.phases.items()},
            "total_s": round(self.total, 6),
            "model_bytes": self.model_bytes,
            "payload_bytes": self.payload_bytes,
            "peak_rss_bytes": self.peak_rss,
            "cache": {
                "state": self.cache.state,
                "reason": self.cache.reason,
                "key": self.cache.key,
            },
            "background": self.background.to_json(),
        }

    def __str__(self) -> str:
        """One line a phase, then what the cache and the background did."""
        lines = [*_lines(self.phases), *_lines({"session": self.total})]
        lines.append(f"model cache: {_with_reason(self.cache.state, self.cache.reason)}")
        if self.background.state != "off":
            lines += [str(self.background), *_lines(self.background.phases)]
        return "\n".join(lines)


def _lines(phases: Mapping[str, float]) -> list[str]:
    return [f"{seconds * 1000:8.1f} ms  {name}" for name, seconds in phases.items()]


def _with_reason(state: str, reason: str) -> str:
    return f"{state}: {reason}" if reason else state


def peak_rss() -> int | None:
    """High-water mark of this process's resident memory in bytes, from proc_pid_status(5).

    getrusage's ru_maxrss is not a substitute: it begins at what the parent had when it forked.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
