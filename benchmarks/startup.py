"""From the start of a process to its first answer, of each engine: `startup.py [MODEL ...]`.

Every turn starts one process of each variant, one after the other. A process opens the model, runs
it once and says when it had the answer, counted from before it was started; then it does both
again, with all imports done, and tells its peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from contexts import prepare
from engines import OURS, PEER, PEER_CPU, RAW
from measure import Measurement, Variant
from report import absences, mebibytes, milliseconds, over, text_table, write_json
from samples import HERE, Sample, ask, make_sample
from synthetic import GIGABYTE, make_gigabyte

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TURNS = 7
MODELS = (
    *("magika", "squeezenet_rw", "ppocrv4_det", "ppocrv4_rec", "nudenet_yolov8n"),
    *("ddddocr_det", "minilm_l6_w8", "densenet121_rw", "resnet50_rw"),
)
CACHED = f"{OURS} cache"
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Not for these processes: pip compiles what it installs, but not a checkout, which would then be
compiled anew in every process (100 ms)."""
COLUMNS = (
    *("model", "external", "vs EP", "vs OVc", "vs OV", "vs CPU"),
    *("embedded", "vs EP", "cache", "vs ext"),
    *("load", "vs OV", "RSS", "OV RSS"),
)
LEGEND = """
Milliseconds from before a process is started to its first answer, medians; ratios are medians over
turns. external, embedded: ort_lite from its context of that kind. cache: ort_lite from the plain
model, its compiled form in the model cache.
vs EP: over onnxruntime with onnxruntime-ep-openvino, from a context of the same kind of its own.
vs OVc: over openvino alone with its cache_dir; vs OV: over its import_model of a map. vs CPU: over
onnxruntime's CPU EP, plain model.
load: session and first run from the external context once more in the same process; vs OV: as
before, in the same process.
RSS, OV RSS: peak of those two processes in MiB.
"""


def main() -> int:
    """Measure and print."""
    asked = ask(__doc__, TURNS, (GIGABYTE,), default=MODELS)
    results = {}
    for name in asked.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            make = make_gigabyte if name == GIGABYTE else make_sample
            results[name] = measure_model(make(name, Path(folder)), asked.turns)
        sys.stderr.write(f"{name} done\n")
        if asked.json is not None:
            write_json(asked.json, results)  # each time: the largest model takes minutes
    sys.stdout.write(table(results))
    return 0


def table(results: Mapping[str, Mapping[str, Measurement]]) -> str:
    """A row for each model, and what the columns are."""
    rows = [(name, *cells(found)) for name, found in results.items()]
    return text_table(COLUMNS, rows) + LEGEND + absences(results)


def measure_model(sample: Sample, turns: int) -> dict[str, Measurement]:
    """All variants by "engine kind", and what their processes took without imports."""
    made = {engine: prepare(engine, sample) for engine in (OURS, PEER, RAW)}
    folder = sample.feed.parent
    variants = [
        *(_variant(OURS, kind, sample, made[OURS][kind]) for kind in made[OURS]),
        _variant(OURS, "cache", sample, sample.path, folder / "ort_lite_cache"),
        *(_variant(PEER, kind, sample, made[PEER][kind]) for kind in made[PEER]),
        _variant(PEER, "plain", sample, sample.path),
        _variant(RAW, "external", sample, made[RAW]["external"]),
        _variant(RAW, "plain", sample, sample.path),
        _variant(RAW, "cache", sample, sample.path, folder / "openvino_cache"),
        _variant(PEER_CPU, "plain", sample, sample.path),
    ]
    for variant in variants:
        if not variant.absent:
            _start(variant)  # fills the caches, and the system's
    answers: dict[str, list[dict[str, Any]]] = {variant.name: [] for variant in variants}
    for _ in range(turns):
        for variant in variants:
            if not variant.absent:
                answers[variant.name].append(_start(variant))
    found = {}
    for variant in variants:
        told = answers[variant.name]
        reason = variant.absent or next((a["absent"] for a in told if a["absent"]), "")
        found[variant.name] = _measurement(told, "answered", reason)
        found[f"{variant.name} load"] = _measurement(told, "load", reason)
    return found


def _measurement(told: Sequence[dict[str, Any]], what: str, absent: str) -> Measurement:
    if absent:
        return Measurement(absent=absent)
    peaks = sorted(answer["peak_rss"] for answer in told)
    return Measurement(
        turns=tuple(answer[what] for answer in told), peak_rss=peaks[len(peaks) // 2]
    )


def _variant(
    engine: str, kind: str, sample: Sample, made: Path | str, cache: Path | None = None
) -> Variant:
    name = f"{engine} {kind}"
    if isinstance(made, str):
        return Variant(name, (), absent=made)
    program = (sys.executable, str(HERE / "one_start.py"), engine, str(made), str(sample.feed))
    return Variant(name, (*program, str(cache)) if cache is not None else program)


def _start(variant: Variant) -> dict[str, Any]:
    """One process's answer; when it had it, counted from here."""
    environment = {name: text for name, text in os.environ.items() if name != NO_BYTECODE}
    began = perf_counter()
    done = subprocess.run(
        variant.command, stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    answer["answered"] = answer["at"] - began
    return answer


def cells(found: Mapping[str, Measurement]) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    external, embedded = f"{OURS} external", f"{OURS} embedded"
    raw = f"{RAW} external"
    return (
        *(milliseconds(found, external), over(found, external, f"{PEER} external")),
        *(over(found, external, f"{RAW} cache"), over(found, external, raw)),
        over(found, external, f"{PEER_CPU} plain"),
        *(milliseconds(found, embedded), over(found, embedded, f"{PEER} embedded")),
        *(milliseconds(found, CACHED), over(found, CACHED, external)),
        milliseconds(found, f"{external} load"),
        over(found, f"{external} load", f"{raw} load"),
        *(mebibytes(found, external), mebibytes(found, raw)),
    )


if __name__ == "__main__":
    sys.exit(main())
