"""Waiting for a thread whose end in the operating system matters.

`Thread.join` returns before the system's thread has ended, which still runs destructors of SDKs.
Where a session was closed meanwhile that OpenVINO had compiled for in a thread, memory was
overwritten, and a later import died in malloc (OpenVINO 2026.4.1). It never did once the thread had
ended.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

MOST_SECONDS = 1.0
"""A thread that has left Python ends in less than a millisecond."""
_PAUSE = 0.0002


def join_thread(thread: threading.Thread, timeout: float | None) -> None:
    """Wait for the end of a thread, in Python and, where /proc shows it, in the system.

    Args:
        thread: Started.
        timeout: Seconds to wait for the former; None waits for as long as it takes.
    """
    thread.join(timeout)
    if thread.is_alive() or thread.native_id is None:
        return
    entry = Path(f"/proc/self/task/{thread.native_id}")
    end = time.monotonic() + MOST_SECONDS
    while entry.exists() and time.monotonic() < end:
        time.sleep(_PAUSE)
