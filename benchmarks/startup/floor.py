"""How little a start can take, against what was asked of ours: `floor.py [MODEL ...]`.

Whole processes, as first_answer.py starts them. The floor is a program that imports the same blob
through OpenVINO's C API and nothing else, with and without numpy, with and without a digest of
the blob; it has no sessions, no model and no checks. Where it lies above a ratio that was asked,
no program can reach that in Python.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.harness.conditions import conditions
from benchmarks.harness.contexts import prepare
from benchmarks.harness.engines import OURS, PEER, RAW
from benchmarks.harness.process_turns import (
    OPENED_FIRST,
    SESSION,
    Start,
    measure_starts,
    module_variant,
    start_variant,
    write_inputs,
)
from benchmarks.harness.report import NOTHING, absences, over, text_table, write_json
from benchmarks.harness.samples import Sample, ask, make_sample

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.harness.measure import Measurement, Variant

TURNS = 5
MODELS = (
    *("magika", "squeezenet_rw", "nudenet_yolov8n", "minilm_l6_w8"),
    *("ppocrv4_rec", "resnet50_rw"),
)
CACHE, EXTERNAL, EMBEDDED = f"{RAW} cache", f"{PEER} external", f"{PEER} embedded"
ASKED = {CACHE: 0.65, EXTERNAL: 0.8, EMBEDDED: 0.4}
"""By peer the most that ort_lite's start is to take of the peer's."""

BARE, FLOOR = "C API, no numpy", "C API, numpy first"
CHECKED, MEANWHILE = f"{FLOOR}, digest", "C API, digest, numpy meanwhile"
FLOORS = {
    BARE: ("-", "never"),
    FLOOR: ("-", "first"),
    CHECKED: ("digest", "first"),
    MEANWHILE: ("digest", "meanwhile"),
}
"""Arguments of floor_process.py in addition to the blob and the inputs."""

PROGRAMS = {
    **{name: name for name in FLOORS},
    f"{OURS} external": f"{OURS} external, numpy first",
    f"{OURS} {OPENED_FIRST}": f"{OURS} external, numpy meanwhile",
    f"{OURS} embedded": f"{OURS} embedded, numpy first",
    CACHE: f"{RAW} with cache_dir",
    EXTERNAL: f"{PEER} external context",
    EMBEDDED: f"{PEER} embedded context",
}
"""The rows: by variant what it is called."""

COLUMNS = ("program", "answer", "fastest", "vs OVc", "vs EP", "vs EP emb.")
LEGEND = """
Milliseconds from before a process is started to its first answer, median and fastest of all turns,
which other work on the machine touches least. vs OVc: median over turns of the ratio to openvino
with its cache_dir; vs EP, vs EP emb.: to onnxruntime with onnxruntime-ep-openvino from its external
and its embedded context. >: more than was asked.
C API: OpenVINO's C API in bare Python, inputs set, outputs left where they are. digest: of the
blob, before OpenVINO sees it, while a thread loads OpenVINO. numpy first: imported before anything
else; meanwhile: while OpenVINO imports the blob.
"""


def main() -> int:
    """Measure and print."""
    arguments = ask(__doc__, TURNS, default=MODELS)
    results = {}
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            sample = make_sample(name, Path(folder))
            results[name] = measure_starts(variants(sample), arguments.turns, name)
        if arguments.json is not None:
            write_json(arguments.json, results)
    sys.stdout.write(conditions() + table(results))
    return 0


def variants(sample: Sample) -> list[Variant]:
    """Every program, with contexts that its engine wrote."""
    ours, theirs = prepare(OURS, sample), prepare(PEER, sample)
    blob = prepare(RAW, sample)["external"]
    inputs = write_inputs(sample)
    once, first = Start(loads=1), Start(loads=1, first=SESSION)
    cached = Start(loads=1, cache=sample.feed.parent / "openvino_cache")
    external = ours["external"]
    return [
        *(
            module_variant(name, "startup.floor_process", str(blob), *arguments, *inputs)
            for name, arguments in FLOORS.items()
        ),
        *(start_variant(OURS, kind, sample, made, once) for kind, made in ours.items()),
        start_variant(OURS, OPENED_FIRST, sample, external, first),
        start_variant(RAW, "cache", sample, sample.path, cached),
        *(start_variant(PEER, kind, sample, made, once) for kind, made in theirs.items()),
    ]


def table(results: Mapping[str, Mapping[str, Measurement]]) -> str:
    """For each model what was asked, then a row for each program."""
    rows = [("asked", "", "", *(f"{most:.2f}x" for most in ASKED.values()))]
    for model, measured in results.items():
        rows.append((f"{model}:", *("",) * (len(COLUMNS) - 1)))
        rows += [
            (f"  {name}", *_times(measured[variant]), *_ratios(measured, variant))
            for variant, name in PROGRAMS.items()
        ]
    return text_table(COLUMNS, rows) + LEGEND + absences(results)


def _times(measured: Measurement) -> tuple[str, str]:
    if measured.absent:
        return NOTHING, NOTHING
    return f"{measured.seconds * 1000:.0f}", f"{min(measured.turns) * 1000:.0f}"


def _ratios(measured: Mapping[str, Measurement], variant: str) -> tuple[str, ...]:
    """To each peer; a peer itself was asked for nothing."""
    is_peer = variant in ASKED
    return tuple(
        over(measured, variant, peer, None if is_peer else most) for peer, most in ASKED.items()
    )


if __name__ == "__main__":
    sys.exit(main())
