"""One process of startup.py: `one_start.py ENGINE MODEL FEED [CACHE]`, timed from inside.

Prints a JSON object: `at`, the `perf_counter` at the first answer; `load`, the seconds that opening
the model a second time and its first run took, all imports done; `peak_rss` after both.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from time import perf_counter

TYPE_CHECKING = False  # typing is no engine's import
if TYPE_CHECKING:
    from typing import Any

    from engines import Engine


def main(engine_name: str, model: str, feed: str, cache: str = "") -> int:
    """Open the model, run it once, say when and how long."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    from engines import ENGINES, AbsentError  # noqa: PLC0415 - no engine imports before this
    from turns import peak_rss  # noqa: PLC0415 - see above

    absent = ""
    try:
        engine = ENGINES[engine_name]()
        if cache:
            engine.use_cache(Path(cache))
        arrays = _arrays(feed)
        session = _answered(engine, Path(model), arrays)
        at = perf_counter()
        del session
        gc.collect()
        began = perf_counter()
        _answered(engine, Path(model), arrays)
        load = perf_counter() - began
    except AbsentError as exc:
        absent = str(exc)
        at = load = 0.0
    told = {"absent": absent, "at": at, "load": load, "peak_rss": peak_rss()}
    answers.write(json.dumps(told) + "\n")
    answers.flush()
    return 0


def _answered(engine: Engine, model: Path, feed: dict[str, Any]) -> Any:  # noqa: ANN401 - see engines
    """A session that was run once."""
    session = engine.open(model)
    infer = getattr(session, "infer", None)
    if infer is not None:
        infer(feed)
    else:
        session.run(None, feed)
    return session


def _arrays(path: str) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 - every engine needs it, and pays for it

    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
