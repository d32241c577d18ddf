"""Work in parts: each part once, by threads that nobody waits for."""

from __future__ import annotations

import warnings
from functools import partial
from threading import Event, Thread

import numpy as np
import pytest

from eps.cpu.blas_threads import find_blas_threads
from eps.cpu.shared_work import WorkThreads, run_shared


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_part_is_called_once(count: int) -> None:
    called: list[int] = []
    WorkThreads().run([partial(called.append, part) for part in range(100)], count)
    assert sorted(called) == list(range(100))


def test_no_work_waits_for_a_thread_that_is_busy_elsewhere() -> None:
    threads, event = WorkThreads(), Event()
    other = Thread(target=threads.run, args=([partial(event.wait, 60)] * 2, 2))
    other.start()
    called: list[int] = []
    try:
        threads.run([partial(called.append, part) for part in range(4)], 2)
        assert not event.is_set()
    finally:
        event.set()
        other.join()
    assert sorted(called) == [0, 1, 2, 3]


def fail(event: Event) -> None:
    event.set()
    raise MemoryError("no room")


def test_what_another_thread_raises_is_raised_here() -> None:
    """One of the two has the part that waits for the other's failure."""
    event, called = Event(), list[int]()
    parts = [partial(event.wait, 60), partial(fail, event), *[partial(called.append, 1)] * 9]
    with pytest.raises(MemoryError, match="no room"):
        WorkThreads().run(parts, 2)


def test_nothing_runs_any_more_once_this_thread_has_failed() -> None:
    threads, event, going = WorkThreads(), Event(), Event()
    running: list[bool] = []

    def wait() -> None:
        going.set()
        running.append(True)
        assert event.wait(60)
        running.pop()

    def wait_and_fail() -> None:
        """Fail once the other part runs, which ends only after that."""
        assert going.wait(60)
        Thread(target=event.set).start()
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        threads.run([wait_and_fail, wait], 2)
    assert not running


def test_the_errors_of_numpy_are_silent_in_every_thread() -> None:
    zeros = np.zeros(1000, np.float32)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        run_shared([partial(np.divide, 1, zeros)] * 50)


def test_blas_has_its_threads_again_after_a_failure() -> None:
    blas = find_blas_threads()
    if blas is None:
        pytest.skip("this numpy brings no OpenBLAS")
    with blas.single() as before:
        pass
    with pytest.raises(MemoryError, match="no room"):
        run_shared([partial(fail, Event())] * 3)
    with blas.single() as after:
        assert after == before
