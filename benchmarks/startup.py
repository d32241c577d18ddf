"""From the start of a process to its first answer, of each engine: `startup.py [MODEL ...]`.

A process opens the model, runs it once and says when it had the answer, counted from before it was
started; then it does both again, with all imports done, and tells its peak memory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from contexts import prepare
from engines import EP, OURS, PEER, PEER_CPU, RAW
from report import absences, mebibytes, milliseconds, over, over_peak, text_table, write_json
from samples import Sample, ask, make_sample
from starts import LOAD, SESSION, Start, measure_starts, start_variant
from synthetic import GIGABYTE, make_gigabyte

from ctx_formats.container_reader import read_container
from ctx_formats.mapped_file import MappedFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from measure import Measurement

    Contexts = Mapping[str, Path | str]
    """By kind a context's path, or why there is none."""

TURNS = 7
TURNS_OF_GIGABYTE = 3
COMPILED_ONCE = f"{GIGABYTE} is compiled as seldom as can be"
MODELS = (
    *("magika", "squeezenet_rw", "ppocrv4_det", "ppocrv4_rec", "nudenet_yolov8n"),
    *("ddddocr_det", "minilm_l6_w8", "densenet121_rw", "resnet50_rw"),
)
CACHED = f"{OURS} cache"
OPENED_FIRST = "external, opened first"
COLUMNS = (
    *("model", "external", "vs EP", "vs OVc", "vs OV", "vs CPU"),
    *("first", "vs EP", "vs OVc"),
    *("embedded", "vs EP", "cache", "vs ext", "plain", "vs OVp"),
    *("load", "vs OV", "RSS", "OV RSS", "vs OV"),
)
LEGEND = """
Milliseconds from before a process is started to its first answer, medians; ratios are medians over
turns. external, embedded: ort_lite from its context of that kind. cache: ort_lite from the plain
model, its compiled form in the model cache.
first: the external context, opened before the program imports numpy; the others bring numpy in
themselves, so it makes no difference to them.
vs EP: over onnxruntime with onnxruntime-ep-openvino, from a context of the same kind of its own.
vs OVc: over openvino alone with its cache_dir; vs OV: over its import_model of a map. vs CPU: over
onnxruntime's CPU EP, plain model. plain: ort_lite compiling the plain model; vs OVp: over openvino
doing that.
load: session and first run from the external context once more in the same process; vs OV: as
before, in the same process.
RSS, OV RSS: peak of those two processes in MiB, and the one over the other.
"""


def main() -> int:
    """Measure and print."""
    asked = ask(__doc__, TURNS, (GIGABYTE,), default=MODELS)
    results = {}
    for name in asked.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            if name == GIGABYTE:
                sample = make_gigabyte(name, Path(folder))
                turns = min(asked.turns, TURNS_OF_GIGABYTE)
                made = contexts_by_one_compile(sample)
                results[name] = measure_model(sample, turns, made, COMPILED_ONCE)
            else:
                sample = make_sample(name, Path(folder))
                made = {engine: prepare(engine, sample) for engine in (OURS, PEER, RAW)}
                results[name] = measure_model(sample, asked.turns, made, sample.path)
        if asked.json is not None:
            write_json(asked.json, results)  # each time: the largest model takes minutes
    sys.stdout.write(table(results))
    return 0


def table(results: Mapping[str, Mapping[str, Measurement]]) -> str:
    """A row for each model, and what the columns are."""
    rows = [(name, *cells(found)) for name, found in results.items()]
    return text_table(COLUMNS, rows) + LEGEND + absences(results)


def contexts_by_one_compile(sample: Sample) -> dict[str, Contexts]:
    """External contexts alone, openvino's the payload in ours: compiling takes a minute each."""
    made: dict[str, Contexts] = {}
    for engine in (OURS, PEER):
        sys.stderr.write(f"{sample.name}: {engine} compiles\n")
        made[engine] = {**prepare(engine, sample, ("external",)), "embedded": COMPILED_ONCE}
    context = made[OURS]["external"]
    assert isinstance(context, Path), f"ort_lite compiles {sample.name}"
    with MappedFile(context.with_name(f"{context.stem}_{EP}.bin")) as mapped:
        container = read_container(mapped.view)
        (name,) = container.entries
        bare = sample.feed.parent / f"{sample.name}.blob"
        bare.write_bytes(container.payload(name))
    return {**made, RAW: {"external": bare}}


def measure_model(
    sample: Sample, turns: int, made: Mapping[str, Contexts], plain: Path | str
) -> dict[str, Measurement]:
    """All variants by "engine kind", and what their processes took without imports.

    Args:
        sample: The model.
        turns: How many.
        made: Each engine's contexts by kind.
        plain: The model for processes that compile it; or why there are none.
    """
    folder = sample.feed.parent
    ours, raw = Start(cache=folder / "ort_lite_cache"), Start(cache=folder / "openvino_cache")
    context, blob = made[OURS]["external"], made[RAW]["external"]
    peer = made[PEER]["external"]
    variants = [
        *(start_variant(OURS, kind, sample, made[OURS][kind]) for kind in made[OURS]),
        start_variant(OURS, OPENED_FIRST, sample, context, Start(first=SESSION)),
        start_variant(OURS, "plain", sample, plain),
        start_variant(OURS, "cache", sample, sample.path, ours),
        *(start_variant(PEER, kind, sample, made[PEER][kind]) for kind in made[PEER]),
        # Where an engine keeps no context of a model, it does not take the model either.
        start_variant(PEER, "plain", sample, peer if isinstance(peer, str) else plain),
        start_variant(RAW, "external", sample, blob),
        start_variant(RAW, "plain", sample, blob if isinstance(blob, str) else plain),
        start_variant(RAW, "cache", sample, blob if isinstance(blob, str) else sample.path, raw),
        start_variant(PEER_CPU, "plain", sample, sample.path),
    ]
    return measure_starts(variants, turns, sample.name)


def cells(found: Mapping[str, Measurement]) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    external, embedded = f"{OURS} external", f"{OURS} embedded"
    raw, first = f"{RAW} external", f"{OURS} {OPENED_FIRST}"
    return (
        *(milliseconds(found, external), over(found, external, f"{PEER} external")),
        *(over(found, external, f"{RAW} cache"), over(found, external, raw)),
        over(found, external, f"{PEER_CPU} plain"),
        *(milliseconds(found, first), over(found, first, f"{PEER} external")),
        over(found, first, f"{RAW} cache"),
        *(milliseconds(found, embedded), over(found, embedded, f"{PEER} embedded")),
        *(milliseconds(found, CACHED), over(found, CACHED, external)),
        *(milliseconds(found, f"{OURS} plain"), over(found, f"{OURS} plain", f"{RAW} plain")),
        milliseconds(found, f"{external} {LOAD}"),
        over(found, f"{external} {LOAD}", f"{raw} {LOAD}"),
        *(mebibytes(found, external), mebibytes(found, raw), over_peak(found, external, raw)),
    )


if __name__ == "__main__":
    sys.exit(main())
