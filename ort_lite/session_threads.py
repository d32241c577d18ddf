"""Threads and profile of one session: what it keeps besides its prepared graph."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ort_lite.options import ExecutionMode
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import AbstractContextManager

    from ort_lite.options import SessionOptions
    from ort_lite.profiling import Profiler


class Surroundings:
    """Made when a session is made, closed with it."""

    def __init__(self, options: SessionOptions) -> None:
        """Start the profile, if one is wanted.

        Raises:
            InvalidArgument: A negative number of threads.
            Fail: The profile's folder cannot be written to.
        """
        self._count = options.inter_op_num_threads
        if self._count < 0:
            raise InvalidArgument(f"inter_op_num_threads is {self._count}, expected 0 or more")
        self._parallel = options.execution_mode == ExecutionMode.ORT_PARALLEL
        self._steps: ThreadPoolExecutor | None = None
        self._calls: ThreadPoolExecutor | None = None
        self.profiler: Profiler | None = None
        if options.enable_profiling:
            from ort_lite.profiling import Profiler  # noqa: PLC0415 - few sessions are profiled

            self.profiler = Profiler(options.profile_file_prefix)

    def pool(self) -> ThreadPoolExecutor | None:
        """Runs partitions that do not wait for each other; None in sequential mode."""
        if self._parallel and self._count != 1 and self._steps is None:
            self._steps = _threads(self._count, "ort_lite-inter-op")
        return self._steps

    def submit(self, call: Callable[[], None]) -> None:
        """Run `call` in a thread of the session; it must handle its own errors."""
        if self._calls is None:
            self._calls = _threads(self._count, "ort_lite-async")
        self._calls.submit(call)

    def span(self, name: str) -> AbstractContextManager[None]:
        """An event of the profile, where there is one."""
        return self.profiler.span(name) if self.profiler is not None else nullcontext()

    def loading(self, source: object) -> AbstractContextManager[None]:
        """The event around reading the model, with onnxruntime's name for it."""
        held = isinstance(source, bytes | bytearray | memoryview)
        return self.span(f"model_loading_{'array' if held else 'uri'}")

    def end_profiling(self) -> str:
        """Write the profile; "" where there is none, as onnxruntime gives."""
        profiler, self.profiler = self.profiler, None
        return profiler.end() if profiler is not None else ""

    def close(self) -> None:
        """End the profile; wait for calls that have begun."""
        for pool in (self._calls, self._steps):
            if pool is not None:
                pool.shutdown(wait=True)
        self.end_profiling()


def _threads(count: int, name: str) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few sessions need threads

    return ThreadPoolExecutor(count or os.cpu_count() or 1, thread_name_prefix=name)
