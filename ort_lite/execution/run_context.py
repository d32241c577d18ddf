"""The context of a run apart from values: its options, and the session's profiler and threads."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Protocol

    from ort_lite.ep.device_tensors import CopyCounts
    from ort_lite.ep.interface import Value
    from ort_lite.execution.parallel import Helpers
    from ort_lite.run_options import RunOptions

    class NodeProfiler(Protocol):
        """The part of a session's profiler that a run uses."""

        def now(self) -> int:
            """Nanoseconds since the profile began."""
            ...

        def span(self, name: str) -> AbstractContextManager[None]:
            """An event around the body."""
            ...

        def node(self, run: NodeRun) -> None:
            """Record one node's run."""
            ...


TERMINATED = "Exiting due to terminate flag being set to true."


@dataclass(frozen=True, slots=True)
class RunContext:
    """One call of `run` that has options, or whose session is profiled or runs in parallel."""

    options: RunOptions | None = None
    profiler: NodeProfiler | None = None
    helpers: Helpers | None = None

    def check(self) -> None:
        """Stop where `RunOptions.terminate` was set, by another thread perhaps.

        Raises:
            Fail: It was; ONNX Runtime's text.
        """
        if self.options is not None and self.options.terminate:
            raise Fail(TERMINATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabel:
    """The profile record of a node, or of a partition that its EP runs as a whole.

    Attributes:
        input_count: How many of the values that it reads are its inputs, the first ones; None
            for all. The others are those that its bodies capture.
        parameters: How many bytes of the values that it reads are constants.
    """

    name: str
    op_type: str
    provider: str
    input_count: int | None = None
    parameters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """One node or partition, run once.

    Attributes:
        index: Of the node in its graph, or of the partition.
        start: `now()` of the profiler before it.
        copies: Copies to and from a device that its EP had made before and after it; None where
            it has no device.
    """

    label: NodeLabel
    index: int
    start: int
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    copies: tuple[CopyCounts | None, CopyCounts | None] = (None, None)


_CURRENT: ContextVar[RunContext | None] = ContextVar("ort_lite_run", default=None)
"""Of the run that this thread is in; bodies run deep inside kernels, which know nothing of it."""


def current_run() -> RunContext | None:
    """The context of the run that this code is part of; None without run options and profiler."""
    return _CURRENT.get()


@contextmanager
def running(context: RunContext) -> Iterator[None]:
    """Make `context` the current one for a while."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)
