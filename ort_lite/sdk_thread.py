"""A thread that calls SDKs, and whose end in the operating system matters.

Before Python 3.13, `Thread.join` returns before the system's thread has ended, which still runs
destructors of SDKs. Where a session was closed meanwhile that OpenVINO had compiled for in a
thread, memory was overwritten, and a later import died in malloc (OpenVINO 2026.4.1). It never did
once the thread had ended.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

MOST_SECONDS = 1.0
"""A thread that has left Python ends in less than a millisecond."""
_PAUSE = 0.0002


class SdkThread(threading.Thread):
    """A thread that Python waits for at exit, and whose real end others can wait for."""

    _has_ended = False

    def wait_for_end(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, in Python and, where /proc shows it, in the system.

        In the thread itself this returns at once: a log handler may ask there.

        Args:
            timeout: Seconds to wait for the former; None waits for as long as it takes.
        """
        if self._has_ended or self is threading.current_thread():
            return
        self.join(timeout)
        if self.is_alive():
            return
        entry = Path(f"/proc/self/task/{self.native_id}")
        end = time.monotonic() + MOST_SECONDS
        while entry.exists() and time.monotonic() < end:
            time.sleep(_PAUSE)
        self._has_ended = True  # the number may be another thread's from now on
