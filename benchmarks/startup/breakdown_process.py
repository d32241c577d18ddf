"""One process of breakdown.py, started by launch.py: CONTEXT FIRST [NAME ARRAY ...].

The program of first_answer_process.py for ort_lite, with a note of when the vendor gets the
payload, and of the modules that are there when a thread begins to see to that.

Prints a JSON object as first_answer_process.py does, with `modules` besides: those that ort_lite
had brought in by then. `steps` follow each other as those of floor_process.py do; digest, a part of
what comes before, is the wait for it.
"""

import sys
from time import perf_counter

TYPE_CHECKING = False  # importing typing would be counted as the program's
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ort_lite.start.load_request import LoadClock

PROVIDERS = ["OpenVINOExecutionProvider"]
VENDOR, DIGEST = "vendor import", "payload digest"


def main(started: float, context: str, first: str, *inputs: str) -> int:
    """Open the context, run it once, say when and how long."""
    if first == "numpy":
        import numpy as np  # noqa: F401, PLC0415 - see first_answer_process
    imported = perf_counter()
    known = set(sys.modules)
    import ort_lite as ort  # noqa: PLC0415 - its time is part of the answer

    noted = _note_phases()
    session = ort.InferenceSession(context, providers=PROVIDERS)
    opened = perf_counter()
    from benchmarks.startup.first_answer_process import read_arrays  # noqa: PLC0415 - first_answer_process has it by then

    feed = read_arrays(inputs)
    fed = perf_counter()
    session.run(None, feed)
    at = perf_counter()
    from benchmarks.harness.process_result import send_result  # noqa: PLC0415 - after the clock

    began, ended, _ = noted[VENDOR]
    digest_began, digest_ended, modules = noted[DIGEST]
    del session
    noted.clear()
    reopened = perf_counter()
    ort.InferenceSession(context, providers=PROVIDERS)
    steps = {
        "numpy": imported - started,
        "before": began - imported,
        "import": ended - began,
        "after": opened - ended,
        "feed": fed - opened,
        "run": at - fed,
        "digest": digest_ended - digest_began,
        "again": noted[VENDOR][0] - reopened - (noted[DIGEST][1] - noted[DIGEST][0]),
    }
    brought = [name for name in modules if name not in known and not name.startswith("benchmarks")]
    send_result(1, started=started, at=at, steps=steps, modules=brought)
    return 0


def _note_phases() -> "dict[str, tuple[float, float, list[str]]]":
    """By phase when it began and ended, and the modules that were there when it began."""
    from contextlib import contextmanager  # noqa: PLC0415 - ort_lite.start.load_request imports it

    from ort_lite.start.load_request import LoadClock  # noqa: PLC0415 - the session imports it first

    noted: dict[str, tuple[float, float, list[str]]] = {}
    phase = LoadClock.phase

    @contextmanager
    def noting(self: "LoadClock", name: str) -> "Iterator[None]":
        modules = list(sys.modules)
        began = perf_counter()
        with phase(self, name):
            yield
        noted[name] = began, perf_counter(), modules

    LoadClock.phase = noting  # type: ignore[method-assign] # this process is there for that
    return noted
