"""Work in parts that threads share, none of which waits for another to start.

The thread that wants the work does its parts one after the other, and other threads take parts from
it if they get a core in time (docs/adr/0046-shared-products.md).
"""

from __future__ import annotations

import os
from collections import deque
from functools import lru_cache
from threading import Lock, Thread
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.blas_threads import find_blas_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from queue import SimpleQueue

    Part = Callable[[], object]
    """A call that writes its result where the caller looks for it."""

MOST_PARTS = 16
"""Most threads that work on one thing; also a good number of parts."""


def run_shared(parts: Sequence[Part]) -> None:
    """All parts, each once, in any order and by as many threads as BLAS has.

    OpenBLAS has one thread meanwhile.

    Args:
        parts: Calls of numpy that take some 0.1 ms or more: to wake a thread takes 0.05.

    Raises:
        BaseException: What one of them raised, once none is running.
    """
    threads = find_blas_threads() if len(parts) > 1 else None
    if threads is None:
        for part in parts:
            part()
        return
    with threads.single() as count:
        find_work_threads(os.getpid()).run(parts, count)


class _SharedWork:
    """Parts to be taken by any thread.

    Attributes:
        parts: Those that nobody has taken.
        error: What a part raised in another thread.
    """

    __slots__ = ("error", "parts")

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = deque(parts)
        self.error: BaseException | None = None

    def do(self) -> None:
        """Call parts until none is left."""
        while True:
            try:
                part = self.parts.popleft()
            except IndexError:
                return
            part()


class WorkThreads:
    """Threads that take parts of work; daemons, since no part outlives its run."""

    def __init__(self) -> None:
        """Threads start once they are wanted."""
        from queue import SimpleQueue  # noqa: PLC0415 - lazy: rare

        self._queue: SimpleQueue[tuple[_SharedWork, Lock]] = SimpleQueue()
        self._threads: list[Thread] = []
        self._starting = Lock()

    def run(self, parts: Sequence[Part], count: int) -> None:
        """All parts, by this thread and up to `count` - 1 that come in time.

        Raises:
            BaseException: What one of them raised, once none is running.
        """
        work = _SharedWork(parts)
        others = min(count, len(parts), MOST_PARTS) - 1
        if len(self._threads) < others:
            self._start(others)
        busy = [Lock() for _ in range(others)]
        for lock in busy:
            self._queue.put((work, lock))
        try:
            work.do()
        finally:
            work.parts.clear()
            for lock in busy:  # no part is left to take; some may still be running
                with lock:
                    pass
        if work.error is not None:
            raise work.error

    def _start(self, count: int) -> None:
        with self._starting:
            for number in range(len(self._threads), count):
                name = f"ort_lite work {number}"
                self._threads.append(Thread(target=self._serve, name=name, daemon=True))
                self._threads[-1].start()

    def _serve(self) -> None:
        with np.errstate(all="ignore"):  # as in a run; threads do not inherit it
            while True:
                work, lock = self._queue.get()
                with lock:
                    try:
                        work.do()
                    except BaseException as exc:  # noqa: BLE001 - raised where the work is wanted
                        work.error = exc
                        work.parts.clear()
                del work, lock  # a waiting thread would keep the arrays


@lru_cache(maxsize=1)
def find_work_threads(process: int) -> WorkThreads:  # noqa: ARG001 - a forked process has no threads
    """Those of a process, by its number."""
    return WorkThreads()
