"""Runs the steps of a plan at the same time where none waits for another."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, wait
from contextvars import copy_context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor, Future

    from ort_lite.execution_provider import Value


class Schedule:
    """Which steps wait for which; fixed, so that many threads may run it at once."""

    def __init__(self, reads: Sequence[Sequence[int]], makes: Sequence[Sequence[int]]) -> None:
        """Take the slots that each step reads and makes."""
        maker = {slot: step for step, slots in enumerate(makes) for slot in slots}
        needs = [{maker[slot] for slot in slots if slot in maker} for slots in reads]
        self._waiting = tuple(len(need) for need in needs)
        self._followers: list[list[int]] = [[] for _ in reads]
        for step, need in enumerate(needs):
            for other in sorted(need):
                self._followers[other].append(step)

    @property
    def has_choice(self) -> bool:
        """Whether two steps can ever be ready at once."""
        if sum(not count for count in self._waiting) > 1:
            return True
        return any(len(steps) > 1 for steps in self._followers)

    def run(
        self,
        pool: Executor,
        start: Callable[[int], Sequence[Value]],
        done: Callable[[int, Sequence[Value]], None],
    ) -> None:
        """Run every step once.

        Args:
            pool: Its threads run `start`; no step waits for a thread while it holds one.
            start: Runs a step; called in several threads, after all that it waits for.
            done: Takes a step's results, in the calling thread.

        Raises:
            Exception: What the first step that failed raised, once no step is running.
        """
        waiting = list(self._waiting)
        ready = [step for step, count in enumerate(waiting) if not count]
        pending: dict[Future[Sequence[Value]], int] = {}
        try:
            while ready or pending:
                for step in ready:
                    pending[pool.submit(copy_context().run, start, step)] = step
                finished, _ = wait(pending, return_when=FIRST_COMPLETED)
                ready = []
                for future in sorted(finished, key=pending.__getitem__):
                    step = pending.pop(future)
                    done(step, future.result())
                    for follower in self._followers[step]:
                        waiting[follower] -= 1
                        if not waiting[follower]:
                            ready.append(follower)
        finally:
            wait(pending)
