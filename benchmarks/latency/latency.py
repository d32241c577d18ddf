"""How long a run takes: ort_lite, openvino alone, and onnxruntime with and without OpenVINO.

`python -m benchmarks.latency.latency [MODEL ...] [--turns N] [--json FILE]`. "one_node" is Y = X *
W of six floats, where there is nothing but overhead.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import EP, OURS, OURS_CPU, PEER, PEER_CPU, RAW
from benchmarks.harness.measure import Measurement, Variant, interleave
from benchmarks.harness.report import (
    absences,
    mebibytes,
    milliseconds,
    over,
    text_table,
    write_json,
)
from benchmarks.harness.samples import ONE_NODE, Sample, ask, make_sample

TURNS = 15
COLUMNS = (
    *("model", "nodes on OV", "run", "vs OV", "vs EP", "vs CPU"),
    *("CPU only", "vs CPU", "RSS", "OV RSS"),
)
LEGEND = """
Milliseconds, medians.
nodes on OV: how many of the nodes that ort_lite runs are on OpenVINO.
run: ort_lite's run with [OpenVINO, CPU].
vs OV: over openvino alone: infer() of one request, input tensors preset, outputs left in place.
vs EP: over onnxruntime with onnxruntime-ep-openvino.
vs CPU: over onnxruntime's CPU execution provider.
CPU only: ort_lite's run with [CPU].
RSS, OV RSS: peak of ort_lite's process in MiB, compiling included; openvino's likewise.
"""


def main() -> int:
    """Measure and print."""
    arguments = ask(__doc__, TURNS, (ONE_NODE,))
    results = {}
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            sample = make_sample(name, Path(folder))
            engines = (OURS, RAW, PEER, PEER_CPU, OURS_CPU)
            results[name] = interleave([variant(e, sample) for e in engines], arguments.turns)
        sys.stderr.write(f"{name} done\n")
    rows = [(name, *cells(measured)) for name, measured in results.items()]
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + absences(results))
    if arguments.json is not None:
        write_json(arguments.json, results)
    return 0


def variant(engine: str, sample: Sample) -> Variant:
    """`engine` running `sample`."""
    program = (sys.executable, "-m", "benchmarks.harness.measured_process")
    return Variant(engine, (*program, engine, "run", str(sample.path), str(sample.feed)))


def cells(measured: dict[str, Measurement]) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    nodes = measured[OURS].facts["nodes"]
    return (
        f"{nodes.get(EP, 0)}/{sum(nodes.values())}",
        *(milliseconds(measured, OURS), over(measured, OURS, RAW), over(measured, OURS, PEER)),
        over(measured, OURS, PEER_CPU),
        *(milliseconds(measured, OURS_CPU), over(measured, OURS_CPU, PEER_CPU)),
        *(mebibytes(measured, OURS), mebibytes(measured, RAW)),
    )


if __name__ == "__main__":
    sys.exit(main())
