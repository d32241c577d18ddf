"""How long each kernel of a model takes on the OpenCL EP's device."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.harness.measure import MeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.harness.samples import Sample


class KernelTiming(NamedTuple):
    """One launch: floating-point operations where they are counted, and bytes that it may touch."""

    kernel: str
    microseconds: float
    work: int
    size: int


PASSES = 5
LOGGER = "ort_lite.eps.opencl.runtime"


def kernel_calls(
    sample: Sample, passes: int = PASSES, between: Callable[[], None] = lambda: None
) -> Sequence[Sequence[KernelTiming]]:
    """The calls of each of some runs, by provider option `profiling`; `between` goes before each.

    Raises:
        MeasureError: None was logged, though the EP has nodes of the model.
    """
    import ort_lite as ort  # noqa: PLC0415 - see engines: nothing of ours before it is measured

    providers = [("OpenCLExecutionProvider", {"profiling": "true"})]
    log, heard = logging.getLogger(LOGGER), _Heard()
    calls = []
    with ort.InferenceSession(sample.path, providers=providers) as session:
        with np.load(sample.feed) as feed:
            values = {name: feed[name] for name in feed.files}
        session.run(None, values)
        log.addHandler(heard)
        log.setLevel(logging.DEBUG)
        for _ in range(passes):
            between()
            calls.append(heard.record_during(lambda: session.run(None, values)))
        log.removeHandler(heard)
        log.setLevel(logging.NOTSET)
        silent = providers[0][0] in session.explain().node_counts() and not any(calls)
    if silent:
        raise MeasureError(f"{LOGGER} logged no kernel; was the logger renamed?")
    return calls


class _Heard(logging.Handler):
    """Collects what provider option `profiling` logs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[KernelTiming] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        assert isinstance(record.args, tuple)
        kernel, microseconds, work, size = map(str, record.args)
        self.calls.append(KernelTiming(kernel, float(microseconds), int(work), int(size)))

    def record_during(self, run: Callable[[], object]) -> list[KernelTiming]:
        """What is logged while `run` runs."""
        self.calls = []
        run()
        return self.calls
