"""Runs the steps of a plan at the same time where none waits for another."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from ort_lite.ep.interface import Value

    Call = Callable[[int, list[Value]], Sequence[Value]]
    """Runs a step, given its number and the values that it reads."""


@dataclass(frozen=True, slots=True)
class Helpers:
    """Threads that help the one that runs a plan; runs and plans inside plans share them.

    No run waits for one to come: the calling thread does all work that no other thread takes.

    Attributes:
        count: How many work on one run at most.
    """

    pool: Executor
    count: int


class StepSchedule:
    """Which steps wait for which; fixed, so that many threads may run it at once."""

    def __init__(
        self,
        reads: Sequence[Sequence[int]],
        makes: Sequence[Sequence[int]],
        kept: Sequence[int] = (),
    ) -> None:
        """Take the slots that each step reads and makes, and those to be kept for the end."""
        self.reads = tuple(map(tuple, reads))
        self.makes = tuple(map(tuple, makes))
        maker = {slot: step for step, slots in enumerate(makes) for slot in slots}
        needs = [{maker[slot] for slot in slots if slot in maker} for slots in reads]
        self.waiting = tuple(len(need) for need in needs)
        followers: list[list[int]] = [[] for _ in reads]
        for step, need in enumerate(needs):
            for other in sorted(need):
                followers[other].append(step)
        self.followers = tuple(map(tuple, followers))
        self.readers = dict.fromkeys(kept, 1)  # the end is one, and never comes
        for slot in (slot for slots in reads for slot in set(slots)):
            self.readers[slot] = self.readers.get(slot, 0) + 1

    @property
    def has_choice(self) -> bool:
        """Whether two steps can ever be ready at once."""
        if sum(not count for count in self.waiting) > 1:
            return True
        return any(len(steps) > 1 for steps in self.followers)

    def run(self, helpers: Helpers, env: list[Value], call: Call) -> None:
        """Run every step once, each after all that it waits for; fill `env`, release in it.

        Args:
            helpers: Threads that may help.
            env: A value for each slot that no step makes.
            call: Called in several threads, each in a copy of this one's context.

        Raises:
            BaseException: What the first of the steps that failed raised, once none is running.
        """
        _Run(self, helpers, env, call).to_the_end()


class _Run:
    """The progress of one run; `_changed` guards all of it."""

    def __init__(
        self, schedule: StepSchedule, helpers: Helpers, env: list[Value], call: Call
    ) -> None:
        self._schedule = schedule
        self._helpers = helpers
        self._env = env
        self._call = call
        self._changed = threading.Condition()
        self._waiting = list(schedule.waiting)
        self._readers = dict(schedule.readers)
        self._ready = deque(step for step, count in enumerate(self._waiting) if not count)
        self._running = 0
        self._helping = 0
        self._errors: dict[int, BaseException] = {}

    def to_the_end(self) -> None:
        try:
            over = False
            while not over:
                self._work()
                with self._changed:
                    self._changed.wait_for(lambda: self._ready or not self._running)
                    over = not self._ready
        finally:  # an interrupt, perhaps
            with self._changed:
                self._ready.clear()
        if self._errors:
            raise self._errors[min(self._errors)]

    def _help(self) -> None:
        """The work of a thread of the pool."""
        try:
            self._work()
        finally:
            with self._changed:
                self._helping -= 1

    def _work(self) -> None:
        """Run steps as long as any is ready."""
        with self._changed:
            step = self._next_step()
        while step is not None:
            try:
                results = self._call(step, [self._env[slot] for slot in self._schedule.reads[step]])
            except BaseException as exc:  # noqa: BLE001 - raised again by `to_the_end`
                with self._changed:
                    self._errors[step] = exc
                    self._ready.clear()
                    step = self._finish_step()
            else:
                with self._changed:
                    self._store(step, results)
                    step = self._finish_step()

    def _next_step(self) -> int | None:
        """A step to run now; helpers are called for what is ready besides."""
        if not self._ready:
            return None
        step = self._ready.popleft()
        self._running += 1
        while self._helping < min(len(self._ready), self._helpers.count):
            # A pool of a session that is being closed takes nothing more; we finish alone.
            with suppress(RuntimeError):
                self._helpers.pool.submit(copy_context().run, self._help)
            self._helping += 1
        return step

    def _finish_step(self) -> int | None:
        self._running -= 1
        step = self._next_step()
        if self._ready or not self._running:
            self._changed.notify()
        return step

    def _store(self, step: int, results: Sequence[Value]) -> None:
        """Keep what will be read, release what was read for the last time, see who is ready."""
        schedule, env, readers = self._schedule, self._env, self._readers
        for slot, value in zip(schedule.makes[step], results, strict=False):
            if slot in readers:
                env[slot] = value
        for slot in set(schedule.reads[step]):
            readers[slot] -= 1
            if not readers[slot]:
                env[slot] = None
        if self._errors:
            return
        for follower in schedule.followers[step]:
            self._waiting[follower] -= 1
            if not self._waiting[follower]:
                self._ready.append(follower)
