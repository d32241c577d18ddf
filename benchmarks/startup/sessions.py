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
    arguments = ask(__doc__, TURNS)
    results = {}
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            results[name] = measure_model(make_sample(name, Path(folder)), arguments.turns)
        sys.stderr.write(f"{name} done\n")
    rows = [(name, *cells(measured)) for name, measured in results.items()]
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + absences(results))
    if arguments.json is not None:
        write_json(arguments.json, results)
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


def cells(measured: dict[str, Measurement]) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    plain, external, embedded = (f"{OURS} {kind}" for kind in ("plain", "external", "embedded"))
    return (
        *(milliseconds(measured, plain), over(measured, plain, f"{PEER} plain")),
        *(over(measured, plain, f"{RAW} plain"), over(measured, plain, f"{PEER_CPU} plain")),
        *(milliseconds(measured, external), over(measured, external, f"{PEER} external")),
        over(measured, external, f"{RAW} external"),
        *(milliseconds(measured, embedded), over(measured, embedded, f"{PEER} embedded")),
        over(measured, embedded, external),
        first(measured, external),
        *(mebibytes(measured, external), mebibytes(measured, f"{RAW} external")),
    )


def first(measured: dict[str, Measurement], name: str) -> str:
    """A variant's first session in its process."""
    return NOTHING if measured[name].absent else f"{measured[name].first * 1000:.0f}"


if __name__ == "__main__":
    sys.exit(main())
