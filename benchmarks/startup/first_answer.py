"""From the start of a process to its first answer, of each engine: `first_answer.py [MODEL ...]`.

A process opens the model, runs it once and says when it had the answer, counted from before it was
started; then it does both again, with all imports done, and tells its peak memory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.harness.conditions import conditions
from benchmarks.harness.contexts import prepare
from benchmarks.harness.engines import EP, OURS, PEER, PEER_CPU, RAW
from benchmarks.harness.gigabyte_model import GIGABYTE, make_gigabyte
from benchmarks.harness.process_turns import (
    OPENED_FIRST,
    SESSION,
    Start,
    measure_starts,
    start_variant,
)
from benchmarks.harness.report import write_json
from benchmarks.harness.samples import Sample, ask, make_sample
from benchmarks.startup.first_answer_table import tables
from ctx_formats.container_reader import read_container
from ctx_formats.mapped_file import MappedFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.harness.measure import Measurement

    Contexts = Mapping[str, Path | str]
    """By kind a context's path, or why there is none."""

TURNS = 7
TURNS_OF_GIGABYTE = 3
COMPILED_ONCE = f"{GIGABYTE} is compiled as seldom as can be"
MODELS = (
    *("magika", "squeezenet_rw", "ppocrv4_det", "ppocrv4_rec", "nudenet_yolov8n"),
    *("ddddocr_det", "minilm_l6_w8", "densenet121_rw", "resnet50_rw"),
)


def main() -> int:
    """Measure and print."""
    arguments = ask(__doc__, TURNS, (GIGABYTE,), default=MODELS)
    results = {}
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            if name == GIGABYTE:
                sample = make_gigabyte(name, Path(folder))
                turns = min(arguments.turns, TURNS_OF_GIGABYTE)
                made = contexts_by_one_compile(sample)
                results[name] = measure_model(sample, turns, made, COMPILED_ONCE)
            else:
                sample = make_sample(name, Path(folder))
                made = {engine: prepare(engine, sample) for engine in (OURS, PEER, RAW)}
                results[name] = measure_model(sample, arguments.turns, made, sample.path)
        if arguments.json is not None:
            write_json(arguments.json, results)  # each time: the largest model takes minutes
    sys.stdout.write(conditions() + tables(results))
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
