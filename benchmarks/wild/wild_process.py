"""One process of wild.py: ENGINE MODEL CACHE OUTPUT [NAME ARRAY ...].

CACHE is the folder of the engine's own cache, or "" for none; each input is a name and an .npy
file. It imports numpy and the engine, opens the model, runs it once and says when it had the
answer; then it runs the model again and again. The outputs of the first run go to the .npz OUTPUT,
and what libraries print to a .log next to it.

Prints a JSON object: `started` and `at`, the `perf_counter` at the beginning and at the first
answer; in `steps` the seconds of `load` (opening the model), `run` (median of the later runs),
`run cpu` (processor time of all threads in one of them, the mean) and `cpu` (the same up to the
first answer); `peak_rss`. A process whose engine cannot open or run the model prints `absent`, the
reason.
"""

import os
from time import perf_counter, process_time

TYPE_CHECKING = False  # no engine imports typing
if TYPE_CHECKING:
    from typing import Any

    from benchmarks.harness.engine_programs import Run

SECONDS = 0.3
"""How long the later runs last at least; at least LEAST of them, at most MOST."""
LEAST, MOST = 3, 300


def main(started: float, engine: str, model: str, cache: str, output: str, *inputs: str) -> int:
    """Open the model, run it, say how long that took."""
    answers = os.dup(1)
    log = os.open(f"{output}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    import numpy as np  # noqa: F401, PLC0415 - as a program does at its top

    from benchmarks.harness.engine_programs import PROGRAMS  # noqa: PLC0415 - imports the engine
    from benchmarks.startup.first_answer_process import read_arrays  # noqa: PLC0415 - see there

    try:
        open_model = PROGRAMS[engine](cache)
        began = perf_counter()
        run = open_model(model)
        load = perf_counter() - began
        feed = read_arrays(inputs)
        outputs = run(feed)
        at, cpu = perf_counter(), process_time()
        steps = {"load": load, "cpu": cpu, **_time_runs(run, feed)}
    # The engines' exceptions have no common base; the reason is in the table.
    except Exception as exc:  # noqa: BLE001 - see above
        import json  # noqa: PLC0415 - after the clock

        first = (str(exc).strip() or type(exc).__name__).splitlines()[0]
        os.write(answers, json.dumps({"absent": first}).encode() + b"\n")
        return 0
    from benchmarks.harness.process_result import send_result  # noqa: PLC0415 - as above

    _save(output, outputs)
    send_result(answers, started=started, at=at, steps=steps)
    return 0


def _time_runs(run: "Run", feed: "dict[str, Any]") -> "dict[str, float]":
    from statistics import median  # noqa: PLC0415 - after the first answer

    seconds: list[float] = []
    used = process_time()
    while len(seconds) < LEAST or (sum(seconds) < SECONDS and len(seconds) < MOST):
        began = perf_counter()
        run(feed)
        seconds.append(perf_counter() - began)
    return {"run": median(seconds), "run cpu": (process_time() - used) / len(seconds)}


def _save(output: str, outputs: "list[Any]") -> None:
    """Arrays of numbers by their places; other outputs are left out."""
    import numpy as np  # noqa: PLC0415 - imported before

    arrays = {
        str(i): value
        for i, value in enumerate(outputs)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    }
    np.savez(output, **arrays)  # type: ignore[arg-type] # numpy 2.4's stub takes allow_pickle for all of **kwds
