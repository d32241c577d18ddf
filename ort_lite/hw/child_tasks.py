"""Tasks of a row's child: probe the device, run models against their oracle, measure times."""

from __future__ import annotations

from importlib.metadata import distributions
from math import isfinite
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.check import check_compatibility
from ort_lite.cli.arrays import load_arrays, load_feed, random_feed, save_arrays
from ort_lite.cli.comparison import compare_outputs
from ort_lite.cli.peers import open_peer, run_named
from ort_lite.ep.interface import CompiledModelCompatibility, SupportsEpContext
from ort_lite.options import SessionOptions
from ort_lite.providers import catalog
from ort_lite.session import InferenceSession
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.ep.interface import ExecutionProvider

    Job = Mapping[str, Any]
    Answer = dict[str, Any]
    from collections.abc import Callable, Mapping

SEED = 20260101
FAR = 1e300
"""Stands for infinity, which JSON lacks."""


def probe(job: Job) -> Answer:
    """Describe the row's device as its EP and SDK see it.

    Raises:
        OrtLiteError: The EP is not installed, or does not open the device.
    """
    ep = open_ep(job)
    probed = catalog.entries()[ep.name].load().probe()
    kinds = {device.kind for device in probed.devices}
    answer = {
        "identity": ep.identity.to_mapping(),
        "kinds": sorted(kinds),
        "keeps_contexts": isinstance(ep, SupportsEpContext),
        "tried": list(probed.tried),
        "packages": {d.metadata["Name"]: d.version for d in distributions()},
    }
    ep.release()
    return answer


def open_ep(job: Job) -> ExecutionProvider:
    """The row's EP with the row's options.

    Raises:
        EPFail: It is not installed, or its SDK or device is not there.
    """
    installed = catalog.entries()
    if job["ep"] not in installed:
        raise EPFail(f"{job['ep']} is not installed; installed: {', '.join(installed)}")
    return catalog.open_provider(installed[job["ep"]], job["options"])


def session_of(
    job: Job, model: str | Path, extra: Mapping[str, str] | None = None
) -> InferenceSession:
    """A session with the row's EP, options and configuration."""
    options = SessionOptions()
    for key, value in {**job.get("config", {}), **(extra or {})}.items():
        options.add_session_config_entry(key, value)
    named = [(job["ep"], job["options"])]
    return InferenceSession(model, options, providers=named, enable_fallback=0)


def context_entries(path: Path) -> dict[str, str]:
    """Configuration with which a session writes its context to `path`."""
    return {"ep.context_enable": "1", "ep.context_file_path": str(path)}


def make_oracle(job: Job) -> Answer:
    """Write the feed of a model and what the oracle answers."""
    model, oracle = Path(job["model"]), job["oracle"]
    peer = open_peer("cpu" if oracle.endswith(".npz") else oracle, model)
    inputs = peer.get_inputs()
    specs = job["inputs"]
    if isinstance(specs, str):
        feed: Mapping[str, Any] = load_feed(Path(specs), inputs)
    else:
        shapes = {name: tuple(spec["shape"]) for name, spec in specs.items()}
        random = random_feed(inputs, shapes, SEED)
        feed = {name: _as_asked(array, specs.get(name, {})) for name, array in random.items()}
    save_arrays(Path(job["feed"]), feed)
    if oracle.endswith(".npz"):
        expected: Mapping[str, Any] = load_arrays(Path(oracle))
    else:
        expected = run_named(peer, feed)
    save_arrays(Path(job["expected"]), expected)
    return {"inputs": sorted(feed), "outputs": sorted(expected)}


def _as_asked(array: Any, spec: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any element type
    if spec.get("constant") is not None:
        return np.full(array.shape, spec["constant"]).astype(array.dtype)
    if spec.get("below") is not None:
        random = np.random.default_rng(SEED)
        return random.integers(0, spec["below"], array.shape).astype(array.dtype)
    return array


def run_model(job: Job) -> Answer:
    """Run a model fresh and reloaded from its context: differences, placement, seconds."""
    began = perf_counter()
    with session_of(job, job["model"]) as session:
        loaded = perf_counter()
        feed = load_feed(Path(job["feed"]), session.get_inputs())
        outputs = run_named(session, feed)
        answer: Answer = {
            "placement": dict(session.explain().node_counts()),
            "load_s": loaded - began,
            "first_run_s": perf_counter() - loaded,
        }
    expected = load_arrays(Path(job["expected"]))
    answer["fresh"] = differences(outputs, expected, job["tolerance"])
    if not job["keeps_contexts"]:
        return answer
    built = build_context(job)
    answer["context_bytes"] = built["bytes"]
    reloaded = load_context({**job, "context": built["context"]})
    answer["reload_s"] = reloaded["load_s"]
    answer["reloaded"] = reloaded["differences"]
    return answer


def build_context(job: Job) -> Answer:
    """Write a model's context into `folder`."""
    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    context = folder / f"{job['name']}_ctx.onnx"
    for old in folder.glob(f"{job['name']}_ctx*"):
        old.unlink()
    session_of(job, job["model"], context_entries(context)).close()
    files = sorted(folder.glob(f"{job['name']}_ctx*"))
    if not context.is_file():
        raise EPFail(f"{job['ep']} runs no node of {job['name']}, so it writes no context")
    return {"context": str(context), "bytes": sum(path.stat().st_size for path in files)}


def load_context(job: Job) -> Answer:
    """Load a context with the row's EP and run it: the verdict before, and the differences.

    Raises:
        OrtLiteError: The session refuses it.
    """
    context = Path(job["context"])
    verdicts = check_compatibility(context, None, [(job["ep"], job["options"])])
    worst = max((v.verdict for v in verdicts), default=CompiledModelCompatibility(0))
    began = perf_counter()
    with session_of(job, context) as session:
        seconds = perf_counter() - began
        outputs = run_named(session, load_feed(Path(job["feed"]), session.get_inputs()))
    expected = load_arrays(Path(job["expected"]))
    return {
        "verdict": worst.name,
        "verdict_message": "; ".join(v.message for v in verdicts if v.message),
        "load_s": seconds,
        "differences": differences(outputs, expected, job["tolerance"]),
    }


def differences(
    outputs: Mapping[str, Any], expected: Mapping[str, Any], tolerance: Mapping[str, float]
) -> Sequence[Answer]:
    """Distance of each output from the oracle, and whether it is within the tolerance."""
    return [
        {
            "output": d.output,
            "absolute": d.absolute if isfinite(d.absolute) else FAR,
            "relative": d.relative if isfinite(d.relative) else FAR,
            "problem": d.problem,
            "within": _is_within(d.absolute, d.relative, tolerance) and not d.problem,
        }
        for d in compare_outputs(outputs, expected)
    ]


def _is_within(absolute: float, relative: float, tolerance: Mapping[str, float]) -> bool:
    if absolute == 0:
        return True
    if not isfinite(absolute):
        return False
    largest = absolute / relative if isfinite(relative) and relative > 0 else 0.0
    return absolute <= tolerance["share"] * largest + tolerance["floor"]


LOADS = 3
WARM_UP = 3
REST_S = 0.1
"""Before each call: the engine before it may leave threads that spin on for a while."""


def bench(job: Mapping[str, Any]) -> dict[str, Any]:
    """Medians in seconds, and the ratios `run`, `reload` and `payload`."""
    model = Path(job["model"])
    metrics: dict[str, Any] = {}
    loads = [lambda: session_of(job, model).close()]
    if job["keeps_contexts"]:
        built = build_context(job)
        loads.append(lambda: session_of(job, built["context"]).close())
        metrics["payload"] = built["bytes"] / model.stat().st_size
    times = _time_in_turns(loads, LOADS)
    metrics["load_s"] = times[0]
    if job["keeps_contexts"]:
        metrics |= {"reload_s": times[1], "reload": times[1] / times[0]}
    with session_of(job, model) as session:
        feed = load_feed(Path(job["feed"]), session.get_inputs())
        peer = open_peer(job["against"], model)
        calls = [lambda: session.run(None, feed), lambda: peer.run(None, dict(feed))]
        _time_in_turns(calls, WARM_UP)
        ours, theirs = _time_in_turns(calls, job["runs"])
        placement = dict(session.explain().node_counts())
    metrics |= {"run_s": ours, "peer_run_s": theirs, "run": ours / theirs}
    return {"metrics": metrics, "placement": placement}


def _time_in_turns(calls: Sequence[Callable[[], object]], count: int) -> list[float]:
    """The median time of each call, in turns of changing order: a busy machine slows them all."""
    times: list[list[float]] = [[] for _ in calls]
    pairs = list(zip(times, calls, strict=True))
    for turn in range(count):
        for seconds, call in pairs if turn % 2 == 0 else reversed(pairs):
            sleep(REST_S)
            began = perf_counter()
            call()
            seconds.append(perf_counter() - began)
    return [median(seconds) for seconds in times]
