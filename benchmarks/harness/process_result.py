"""What a measured process says at its end: imported after its clock has stopped."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from benchmarks.harness.peak_memory import peak_rss

if TYPE_CHECKING:
    from collections.abc import Mapping


def send_result(answers: int, **what: float | Mapping[str, float] | list[str]) -> None:
    """Write it, and the process's peak memory, as a line of JSON to a file descriptor."""
    os.write(answers, json.dumps({**what, "peak_rss": peak_rss()}).encode() + b"\n")
