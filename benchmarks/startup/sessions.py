"""How long a session takes to be there: plain, and from external and embedded contexts.

`python -m benchmarks.startup.sessions [MODEL ...] [--turns N] [--json FILE]`. Each engine opens
contexts that it made itself; openvino alone imports its bare payload from a map of the file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness.conditions import conditions
from benchmarks.harness.contexts import prepare
from benchmarks.harness.engines import OURS, PEER, PEER_CPU, RAW
from benchmarks.harness.measure import Measurement, Variant, interleave
from benchmarks.harness.report import (
    NOTHING,
    absences,
    mebibytes,
    milliseconds,
    over,
    text_table,
    write_json,
)
from benchmarks.harness.samples import Sample, ask, make_sample

TURNS = 7
COLUMNS = (
    *("model", "plain", "vs EP", "vs OV", "vs CPU"),
    *("external", "vs EP", "vs OV", "embedded", "vs EP", "vs ext"),
    *("first", "RSS", "OV RSS"),
)
LEGEND = """
Milliseconds, medians; a first session in each process is not among them.
plain, external, embedded: ort_lite's session from the model, or from a context of that kind.
vs EP: over onnxruntime with onnxruntime-ep-openvino, from a context of the same kind of its own.
vs OV: over openvino alone: compile_model, or import_model of a map; and one request.
vs CPU: over onnxruntime's CPU execution provider.
vs ext: ort_lite's embedded over its external.
first: ort_lite's first session of a process from the external context, imports included.
RSS, OV RSS: peak of a process that only opens the external context, in MiB; openvino's likewise.
"""


def main() -> int:
    """Measure and print."""
    asked = ask(__doc__, TURNS)
    results = {}
    for name in asked.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            results[name] = measure_model(make_sample(name, Path(folder)), asked.turns)
        sys.stderr.write(f"{name} done\n")
    rows = [(name, *cells(found)) for name, found in results.items()]
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + absences(results))
    if asked.json is not None:
        write_json(asked.json, results)
    return 0


def measure_model(sample: Sample, turns: int) -> dict[str, Measurement]:
    """All engines' sessions by "engine kind"; plain ones and contexts in separate rounds."""
    plain = [variant(e, "plain", sample, sample.path) for e in (OURS, PEER, RAW, PEER_CPU)]
    made = {engine: prepare(engine, sample) for engine in (OURS, PEER, RAW)}
    contexts = [
        variant(engine, kind, sample, made[engine][kind])
        for engine in made
        for kind in made[engine]
    ]
    return interleave(plain, turns) | interleave(contexts, turns)


def variant(engine: str, kind: str, sample: Sample, made: Path | str) -> Variant:
    """`engine` opening what it made, or the reason why it made nothing."""
    name = f"{engine} {kind}"
    if isinstance(made, str):
        return Variant(name, (), absent=made)
    program = (sys.executable, "-m", "benchmarks.harness.measured_process")
    return Variant(name, (*program, engine, "session", str(made), str(sample.feed)))


def cells(found: dict[str, Measurement]) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    plain, external, embedded = (f"{OURS} {kind}" for kind in ("plain", "external", "embedded"))
    return (
        *(milliseconds(found, plain), over(found, plain, f"{PEER} plain")),
        *(over(found, plain, f"{RAW} plain"), over(found, plain, f"{PEER_CPU} plain")),
        *(milliseconds(found, external), over(found, external, f"{PEER} external")),
        over(found, external, f"{RAW} external"),
        *(milliseconds(found, embedded), over(found, embedded, f"{PEER} embedded")),
        over(found, embedded, external),
        first(found, external),
        *(mebibytes(found, external), mebibytes(found, f"{RAW} external")),
    )


def first(found: dict[str, Measurement], name: str) -> str:
    """A variant's first session in its process."""
    return NOTHING if found[name].absent else f"{found[name].first * 1000:.0f}"


if __name__ == "__main__":
    sys.exit(main())
