"""Compiles for new shapes behind a session, while another execution provider answers.

A partition with free dimensions may compile for each set of shapes that it meets
(`SupportsCompileByShape`). Here a thread compiles, and runs with such shapes go meanwhile to the
same nodes on execution providers that compile nothing. docs/adr/0016-background-compile.md.
"""

from __future__ import annotations

import threading
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.ep.interface import CompiledPartition, SupportsCompileByShape
from ort_lite.ep.memory_use import MemoryUse, SupportsMemoryReport
from ort_lite.planning.prepared_graph import PreparedGraph
from ort_lite.sdk_thread import SdkThread
from ort_lite.session_log import get_logger, logging_as
from ort_lite.start.other_answers import prepare_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ort_lite.ep.interface import ExecutionProvider, Shapes, Value
    from ort_lite.ep.other_answers import OtherAnswers
    from ort_lite.planning.prepared_graph import Partition
    from ort_lite.session_log import LogScope

log = get_logger(__name__)

MAX_WAITING = 16
"""Compiles that wait for their turn; shapes beyond are asked for again by a later run."""


@dataclass(frozen=True, slots=True)
class _ShapeRequest:
    """One compile to be done."""

    partition: InterimPartition
    shapes: Shapes


class ShapeCompiles:
    """The compiles for new shapes of one session, one after the other.

    The thread is there while there is something to do, and is not a daemon.
    """

    def __init__(self, given_up: Callable[[], bool], log_scope: LogScope) -> None:
        """Do nothing yet.

        Args:
            given_up: Whether the results are no longer needed.
            log_scope: Of the session.
        """
        self._given_up = given_up
        self._log_scope = log_scope
        self._lock = threading.Lock()
        self._waiting: deque[_ShapeRequest] = deque()
        self._thread: SdkThread | None = None
        self._at_work = False
        self.failure: Exception | None = None

    def ask(self, partition: InterimPartition, shapes: Shapes) -> bool:
        """Have a compile done; False if too many wait."""
        with self._lock:
            if len(self._waiting) >= MAX_WAITING:
                return False
            self._waiting.append(_ShapeRequest(partition, shapes))
            if self.is_busy():
                return True
            name = "ort_lite-background-compile"
            self._thread = SdkThread(target=self._work, name=name, daemon=False)
            self._at_work = True
            try:
                self._thread.start()
            except RuntimeError as exc:  # no more threads, or the interpreter is on its way out
                self._thread = None
                self._waiting.clear()
                self.failure = exc
                return False
            return True

    def is_busy(self) -> bool:
        """True while a shape is being compiled; never after a fork."""
        return self._at_work and self._thread is not None and self._thread.is_alive()

    def leave(self) -> None:
        """Let a thread that has nothing left to compile end, for a session that closes."""
        with self._lock:
            thread = None if self.is_busy() else self._thread
        if thread is not None:
            thread.wait_for_end()

    def wait(self, timeout: float | None) -> None:
        """Until nothing is compiled, or `timeout` seconds."""
        end = None if timeout is None else monotonic() + timeout
        while (thread := self._thread) is not None:
            thread.wait_for_end(None if end is None else max(0.0, end - monotonic()))
            if thread is self._thread or (end is not None and monotonic() >= end):
                return

    def _work(self) -> None:
        with logging_as(self._log_scope):
            while (request := self._next_request()) is not None:
                try:
                    request.partition.get_ready(request.shapes)
                except Exception as exc:  # noqa: BLE001 - whatever it is, the session must report it
                    self.failure = exc
                    log.warning(
                        "%s: the compile for %s in the background failed; %s goes on: %s",
                        request.partition.name,
                        list(request.shapes),
                        ", ".join(request.partition.interim_names),
                        exc,
                    )

    def _next_request(self) -> _ShapeRequest | None:
        with self._lock:
            if self._given_up():
                self._waiting.clear()
            if self._waiting:
                return self._waiting.popleft()
            self._at_work = False
            return None


class InterimPartition(CompiledPartition):
    """A partition that answers elsewhere until it is compiled for the shapes at hand."""

    def __init__(
        self,
        compiled: CompiledPartition,
        interim: PreparedGraph,
        behind: ShapeCompiles,
        name: str,
    ) -> None:
        """Take over both.

        Args:
            compiled: Also SupportsCompileByShape.
            interim: The same nodes on EPs that compile nothing.
            behind: Compiles.
            name: For messages.
        """
        assert isinstance(compiled, SupportsCompileByShape), "as answers_meanwhile sees to"
        self._compiled = compiled
        self._by_shape: SupportsCompileByShape = compiled
        self._interim = interim
        self._behind = behind
        self._lock = threading.Lock()
        self._requested: set[Shapes] = set()
        self.name = name

    @property
    def interim_names(self) -> tuple[str, ...]:
        """The EPs that answer meanwhile."""
        return tuple(dict.fromkeys(part.ep.name for part in self._interim.partitions))

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, here or elsewhere."""
        shapes = tuple(tuple(value.shape) for value in inputs)
        if self._by_shape.is_ready(shapes):
            return self._compiled.run(inputs)
        with self._lock:
            new = shapes not in self._requested
            self._requested.add(shapes)
        if new and not self._behind.ask(self, shapes):
            with self._lock:
                self._requested.discard(shapes)
        return self._interim.run(inputs)

    def get_ready(self, shapes: Shapes) -> None:
        """Compile; shapes for which that fails are not tried again."""
        self._by_shape.get_ready(shapes)
        with self._lock:
            self._requested.discard(shapes)  # they may be given up again, and come back

    def memory_use(self) -> MemoryUse:
        """See SupportsMemoryReport: without what answers meanwhile, which has its own entry."""
        if isinstance(self._compiled, SupportsMemoryReport):
            return self._compiled.memory_use()
        return MemoryUse(weights=None, arena=None, peak=None)

    def other_answers(self) -> OtherAnswers:
        """See SupportsOtherAnswersReport."""
        return self._interim

    @property
    def notes(self) -> tuple[str, ...]:
        """The shapes that are compiled, and the EPs that answer for others."""
        return (*self._compiled.notes, f"{', '.join(self.interim_names)} for new shapes")

    def forget_source(self) -> None:
        """Let both partitions drop the weights they no longer read."""
        self._compiled.forget_source()
        self._interim.forget_weights()

    def release(self) -> None:
        """Release both; a compile that goes on lets go of what it makes."""
        self._compiled.release()
        self._interim.release()


def answers_meanwhile(
    prepared: PreparedGraph, eps: Sequence[ExecutionProvider], behind: ShapeCompiles
) -> PreparedGraph:
    """`prepared` with an answer at once for shapes that its partitions have not met.

    Partitions that compile for all shapes, and those that `eps` do not run, stay what they are.

    Args:
        prepared: Taken over.
        eps: EPs that compile nothing.
        behind: Compiles.
    """
    parts = [_with_answer(part, eps, behind) for part in prepared.partitions]
    if all(new is old for new, old in zip(parts, prepared.partitions, strict=True)):
        return prepared
    return PreparedGraph(prepared.graph, parts, prepared.refusals, prepared.watch)


def _with_answer(
    part: Partition, eps: Sequence[ExecutionProvider], behind: ShapeCompiles
) -> Partition:
    if not isinstance(part.compiled, SupportsCompileByShape):
        return part
    interim = prepare_elsewhere(part.graph, eps, "runs wait for compiles")
    if interim is None:
        return part
    return replace(part, compiled=InterimPartition(part.compiled, interim, behind, part.name))
