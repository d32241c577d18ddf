"""Threads and profile of one session: what it keeps besides its prepared graph."""

from __future__ import annotations

from contextlib import nullcontext
from threading import Lock, local
from typing import TYPE_CHECKING

from ort_lite.options import ExecutionMode
from ort_lite.shortages import as_status
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import AbstractContextManager

    from ort_lite.execution.parallel import Helpers
    from ort_lite.execution.profiling import Profiler
    from ort_lite.options import SessionOptions


class SessionServices:
    """Threads and profiler of a session, created and closed with it."""

    def __init__(self, options: SessionOptions) -> None:
        """Start the profile, if one is wanted.

        Raises:
            InvalidArgument: A negative number of threads.
            Fail: The profile's folder cannot be written to.
        """
        self._count = options.inter_op_num_threads
        if self._count < 0:
            raise InvalidArgument(f"inter_op_num_threads is {self._count}, expected 0 or more")
        self._calls: ThreadPoolExecutor | None = None
        self._inside = local()
        self.helpers: Helpers | None = None
        if options.execution_mode == ExecutionMode.ORT_PARALLEL:
            self.helpers = _make_helpers(self._count)
        self.profiler: Profiler | None = None
        self.profiling_start_ns = 0  # kept after the profile has ended, as in onnxruntime
        if options.enable_profiling:
            from ort_lite.execution.profiling import Profiler  # noqa: PLC0415 - lazy: rare

            self.profiler = Profiler(options.profile_file_prefix)
            self.profiling_start_ns = self.profiler.start_time_ns

    @property
    def is_watched(self) -> bool:
        """Whether every run is profiled, or may use several threads."""
        return self.profiler is not None or self.helpers is not None

    def submit(self, call: Callable[[], None]) -> None:
        """Run `call` in a thread of the session; it must handle its own errors.

        Raises:
            RuntimeException: No thread can be started; then it is not run.
        """
        if self._calls is None:
            self._calls = _threads(self._count or _count_cpus(), "ort_lite-async")
        claim = Lock()  # the pool has queued the call before it starts a thread

        def run_if_unclaimed() -> None:
            if claim.acquire(blocking=False):
                self._inside.call = True
                call()

        try:
            self._calls.submit(run_if_unclaimed)
        except RuntimeError as exc:
            if claim.acquire(blocking=False):
                raise as_status(exc, "run_async failed") or exc from exc

    def span(self, name: str) -> AbstractContextManager[None]:
        """An event of the profile, where there is one."""
        return self.profiler.span(name) if self.profiler is not None else nullcontext()

    def loading_span(self, source: object) -> AbstractContextManager[None]:
        """The event around reading the model, with onnxruntime's name for it."""
        held = isinstance(source, bytes | bytearray | memoryview)
        return self.span(f"model_loading_{'array' if held else 'uri'}")

    def end_profiling(self) -> str:
        """Write the profile; "" if profiling is off, as in onnxruntime."""
        profiler, self.profiler = self.profiler, None
        return profiler.end() if profiler is not None else ""

    def close(self) -> None:
        """End the profile; wait for calls that have begun.

        Raises:
            Fail: One of these calls it, and would wait for itself.
        """
        if getattr(self._inside, "call", False):
            raise Fail(
                "a session waits for its calls of run_async when it is closed, and one of them "
                "closes it in its callback: close it in another thread"
            )
        if self._calls is not None:
            self._calls.shutdown(wait=True)
        if self.helpers is not None:
            self.helpers.pool.shutdown(wait=True)
        self.end_profiling()


def _make_helpers(count: int) -> Helpers | None:
    """All threads of a run but the one that calls it; None if that is the only one."""
    from ort_lite.execution.parallel import Helpers  # noqa: PLC0415 - lazy: rare

    others = (count or _count_cpus()) - 1
    return Helpers(_threads(others, "ort_lite-inter-op"), others) if others else None


def _threads(count: int, name: str) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - lazy: rare

    return ThreadPoolExecutor(count, thread_name_prefix=name)


def _count_cpus() -> int:
    from ort_lite.processor import count_usable_cpus  # noqa: PLC0415 - lazy: rare

    return count_usable_cpus()
