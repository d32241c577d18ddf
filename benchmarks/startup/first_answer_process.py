"""One process of first_answer.py: ENGINE MODEL CACHE FIRST LOADS [NAME ARRAY ...].

CACHE is the folder of the engine's own cache, or "" for none; LOADS is 1 or 2; each input is a
name and an .npy file. With "numpy" for FIRST it imports numpy and the engine, as programs do at
their top, opens the model, reads its inputs and runs it; with "session" it imports numpy where it
reads the inputs, if the engine has not done so. Nothing else is imported before the first answer:
what comes in on all sides alike would only hide what an engine takes.

Prints a JSON object: `started` and `at`, the `perf_counter` at the beginning and at the first
answer; with 2 LOADS in `steps` `load`, the seconds that opening the model a second time and its
first run took, all imports done; `peak_rss` after that.
"""

import os
from time import perf_counter

TYPE_CHECKING = False  # importing typing would be counted as the engine's
if TYPE_CHECKING:
    from typing import Any

    from benchmarks.harness.engine_programs import Open, Run


def main(
    started: float, engine: str, model: str, cache: str, first: str, loads: str, *inputs: str
) -> int:
    """Open the model, run it once, say when and how long."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not mix with the answer
    if first == "numpy":
        import numpy as np  # noqa: F401, PLC0415 - see above
    from benchmarks.harness.engine_programs import PROGRAMS  # noqa: PLC0415 - after numpy, for it imports the engine

    open_model = PROGRAMS[engine](cache)
    run = _run_once(open_model, model, inputs)
    at = perf_counter()
    del run
    steps = {"load": _load_again(open_model, model, inputs)} if loads == "2" else {}
    from benchmarks.harness.process_result import send_result  # noqa: PLC0415 - after the clock

    send_result(answers, started=started, at=at, steps=steps)
    return 0


def _run_once(open_model: "Open", model: str, inputs: "tuple[str, ...]") -> "Run":
    """What runs the model, and has run it once."""
    run = open_model(model)
    run(read_arrays(inputs))
    return run


def _load_again(open_model: "Open", model: str, inputs: "tuple[str, ...]") -> float:
    import gc  # noqa: PLC0415 - after the first answer

    gc.collect()
    began = perf_counter()
    _run_once(open_model, model, inputs)
    return perf_counter() - began


def read_arrays(inputs: "tuple[str, ...]") -> "dict[str, Any]":
    """From names and files in turns; an .npz would bring in what reads archives."""
    import numpy as np  # noqa: PLC0415 - see main

    return dict(zip(inputs[::2], map(np.load, inputs[1::2]), strict=True))
