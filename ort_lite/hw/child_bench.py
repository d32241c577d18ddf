"""In a row's child: times as ratios, ours and the peer's alternating."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from ort_lite.cli.arrays import load_feed
from ort_lite.cli.peers import open_peer
from ort_lite.hw.child_models import build_context, session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LOADS = 3
WARM_UP = 3
REST_S = 0.1
"""Before each call: the engine before it may leave threads that spin on for a while."""


def bench(job: Mapping[str, Any]) -> dict[str, Any]:
    """Medians in seconds, and the ratios `run`, `reload` and `payload`."""
    model = Path(job["model"])
    found: dict[str, Any] = {}
    loads = [lambda: session_of(job, model).close()]
    if job["keeps_contexts"]:
        built = build_context(job)
        loads.append(lambda: session_of(job, built["context"]).close())
        found["payload"] = built["bytes"] / model.stat().st_size
    times = _alternating(loads, LOADS)
    found["load_s"] = times[0]
    if job["keeps_contexts"]:
        found |= {"reload_s": times[1], "reload": times[1] / times[0]}
    with session_of(job, model) as session:
        feed = load_feed(Path(job["feed"]), session.get_inputs())
        peer = open_peer(job["against"], model)
        calls = [lambda: session.run(None, feed), lambda: peer.run(None, dict(feed))]
        _alternating(calls, WARM_UP)
        ours, theirs = _alternating(calls, job["runs"])
        placement = dict(session.explain().node_counts())
    found |= {"run_s": ours, "peer_run_s": theirs, "run": ours / theirs}
    return {"metrics": found, "placement": placement}


def _alternating(calls: Sequence[Callable[[], object]], count: int) -> list[float]:
    """The median time of each call, in turns of changing order: a busy machine slows them all."""
    times: list[list[float]] = [[] for _ in calls]
    pairs = list(zip(times, calls, strict=True))
    for turn in range(count):
        for mine, call in pairs if turn % 2 == 0 else reversed(pairs):
            sleep(REST_S)
            began = perf_counter()
            call()
            mine.append(perf_counter() - began)
    return [median(mine) for mine in times]
