"""One variant's side of measure.py: `measured_process.py ENGINE session|run PATH FEED`.

Serves turns over stdin and stdout: says hello with what its first repetition took, answers each
line "turn" with the seconds of some repetitions and "end" with its peak memory. A process that
cannot run the engine on this machine says so in its hello, and ends.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.harness.engines import ENGINES, AbsentError
from benchmarks.harness.peak_memory import peak_rss

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.harness.engines import Engine


BLOCK_SECONDS = 0.03
"""How long a turn of runs lasts at least; a run that takes longer is done once."""
MOST = 200


def main() -> int:
    """Serve one variant until stdin ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("what", choices=("session", "run"))
    parser.add_argument("path", type=Path, help="the model to open, plain or compiled")
    parser.add_argument("feed", type=Path, help="an .npz of inputs")
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the answer
    # Nodes that are not on OpenVINO are in the tables; a warning for each session hides them.
    logging.getLogger("ort_lite").setLevel(logging.ERROR)
    began = perf_counter()
    try:
        engine = ENGINES[arguments.engine]()
        session = engine.open(arguments.path)
        first = perf_counter() - began
        if arguments.what == "session":
            facts: dict[str, Any] = {}
            step = _sessions(engine, arguments.path)
        else:
            facts = {"nodes": node_counts(session)}
            first, step = _runs(session, arguments.feed)
    except AbsentError as exc:
        _say(answers, {"absent": str(exc)})
        return 0
    del session
    _say(answers, {"absent": "", "first": first})
    for line in sys.stdin:
        if line.strip() == "end":
            break
        _say(answers, {"seconds": step()})
    _say(answers, {"peak_rss": peak_rss(), "facts": facts})
    return 0


def _say(answers: Any, what: dict[str, Any]) -> None:  # noqa: ANN401 - a text file
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def _sessions(engine: Engine, path: Path) -> Callable[[], list[float]]:
    def step() -> list[float]:
        gc.collect()
        began = perf_counter()
        session = engine.open(path)
        seconds = perf_counter() - began
        del session
        gc.collect()
        return [seconds]

    return step


def _runs(session: Any, path: Path) -> tuple[float, Callable[[], list[float]]]:  # noqa: ANN401 - see engines
    import numpy as np  # noqa: PLC0415 - no session needs it to open

    with np.load(path) as arrays:
        feed = {name: arrays[name] for name in arrays.files}
    infer = getattr(session, "infer", None)

    def once() -> float:
        began = perf_counter()
        if infer is not None:
            infer(feed)
        else:
            session.run(None, feed)
        return perf_counter() - began

    first = once()

    def step() -> list[float]:
        once()  # brings weights back into the caches that another process had
        seconds = [once()]
        while sum(seconds) < BLOCK_SECONDS and len(seconds) < MOST:
            seconds.append(once())
        return seconds

    return first, step


def node_counts(session: object) -> dict[str, int]:
    """Number of nodes by execution provider, where the engine's session reports it."""
    explain = getattr(session, "explain", None)
    counts: dict[str, int] = explain().node_counts() if explain is not None else {}
    return counts


if __name__ == "__main__":
    sys.exit(main())
