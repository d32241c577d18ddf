"""Measures one engine on one model in a process of its own: `measure.py ENGINE MODEL FOLDER`.

Prints one JSON object: median seconds of a session from the plain model and from each kind of
compiled model that the engine keeps, and of a run. Writes the outputs to FOLDER for the parent.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from engines import ENGINES

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from model_set.example_inputs import make_inputs
from model_set.manifest import load_manifest
from model_set.store import model_file

if TYPE_CHECKING:
    from engines import Engine

SESSIONS = 5
RUN_SECONDS = 0.6
"""How long runs are repeated; at least three of them."""


def main(engine_name: str, model_name: str, folder: Path) -> dict[str, Any]:
    """All measurements of one engine on one model, in seconds."""
    engine = ENGINES[engine_name]()
    entry = load_manifest()[model_name]
    model, feed = model_file(entry), make_inputs(entry)
    names = {"model": model}
    for kind, suffix in engine.contexts.items():
        names[kind] = folder / f"{engine_name}-{model_name}-{kind}{suffix}"
        engine.write_context(model, names[kind], embed=kind == "embedded")
    found: dict[str, Any] = {}
    for kind, path in names.items():
        found[f"session_{kind}"], session = time_sessions(engine, path)
        outputs = session.run(None, feed)
        np.savez(folder / f"{engine_name}-{model_name}-{kind}.npz", *outputs)
        if kind == "model":
            found["run"] = time_runs(session, feed)
            found["nodes"] = node_counts(session)
        del session
        gc.collect()
    return found


def time_sessions(engine: Engine, path: Path) -> tuple[float, Any]:
    """Median seconds until a session is there, after a first that warms up; and the last one."""
    session = engine.open(path)
    seconds = []
    for _ in range(SESSIONS):
        del session
        gc.collect()
        began = perf_counter()
        session = engine.open(path)
        seconds.append(perf_counter() - began)
    return median(seconds), session


def time_runs(session: Any, feed: dict[str, Any]) -> float:  # noqa: ANN401 - see engines
    """Median seconds of a run."""
    seconds: list[float] = []
    for _ in range(3):
        session.run(None, feed)
    while sum(seconds) < RUN_SECONDS or len(seconds) < 3:
        began = perf_counter()
        session.run(None, feed)
        seconds.append(perf_counter() - began)
    return median(seconds)


def node_counts(session: object) -> dict[str, int]:
    """Nodes by execution provider, of a session that tells."""
    explain = getattr(session, "explain", None)
    counts: dict[str, int] = explain().node_counts() if explain is not None else {}
    return counts


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
