"""One process of startup.py: `one_start.py ENGINE MODEL CACHE FIRST [NAME ARRAY ...]`.

CACHE is the folder of the engine's own cache, or "" for none; each input is a name and an .npy
file. With "numpy" for FIRST it imports numpy and the engine, as programs do at their top, opens the
model, reads its inputs and runs it; with "session" it imports numpy where it reads the inputs, if
the engine has not done so. Before the first answer it imports nothing else that an engine does not
import anyway: what comes in on all sides alike would only hide what an engine takes.

Prints a JSON object: `at`, the `perf_counter` at the first answer; `load`, the seconds that opening
the model a second time and its first run took, all imports done; `peak_rss` after both.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from time import perf_counter

TYPE_CHECKING = False  # typing is no engine's import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from engines import Engine


def main(engine_name: str, model: str, cache: str, first: str, *inputs: str) -> int:
    """Open the model, run it once, say when and how long."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    if first == "numpy":
        import numpy as np  # noqa: F401, PLC0415 - see above
    from engines import ENGINES, AbsentError  # noqa: PLC0415 - no engine imports before this

    absent = ""
    try:
        engine = ENGINES[engine_name]()
        if cache:
            engine.use_cache(Path(cache))
        session = _answered(engine, Path(model), inputs)
        at = perf_counter()
        del session
        gc.collect()
        began = perf_counter()
        _answered(engine, Path(model), inputs)
        load = perf_counter() - began
    except AbsentError as exc:
        absent = str(exc)
        at = load = 0.0
    import json  # noqa: PLC0415 - after the clock

    from memory import peak_rss  # noqa: PLC0415 - as above

    told = {"absent": absent, "at": at, "load": load, "peak_rss": peak_rss()}
    answers.write(json.dumps(told) + "\n")
    answers.flush()
    return 0


def _answered(engine: Engine, model: Path, inputs: Sequence[str]) -> Any:  # noqa: ANN401 - see engines
    """A session that was run once."""
    session = engine.open(model)
    feed = _arrays(inputs)
    infer = getattr(session, "infer", None)
    if infer is not None:
        infer(feed)
    else:
        session.run(None, feed)
    return session


def _arrays(inputs: Sequence[str]) -> dict[str, Any]:
    """From names and files in turns; an .npz would bring in what reads archives."""
    import numpy as np  # noqa: PLC0415 - see main

    return dict(zip(inputs[::2], map(np.load, inputs[1::2]), strict=True))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
