"""Is the CPU EP as fast as it is to be? Against onnxruntime's CPU EP, and onnx.reference.

`python -m benchmarks.latency.cpu [MODEL ...] [--turns N] [--json FILE]`. Ends with 1 if a model
misses a limit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING

from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import OURS_CPU, PEER_CPU, REFERENCE
from benchmarks.harness.measure import interleave, ratio
from benchmarks.harness.report import absences, milliseconds, over, text_table, write_json
from benchmarks.harness.samples import ONE_NODE, Sample, ask, make_sample
from benchmarks.latency.latency import variant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.harness.measure import Measurement

TURNS = 15
REFERENCE_TURNS = 3
"""onnx.reference takes seconds for a run."""

RECURRENT, TRANSFORMER, CONVOLUTIONAL = "recurrent", "transformer", "convolutional"
MOST: Mapping[str, float] = MappingProxyType({RECURRENT: 6, TRANSFORMER: 2.5, CONVOLUTIONAL: 6})
"""A run over onnxruntime's, by the kind of model."""
MOST_OF_OTHERS = 10
LEAST_OF_CONVOLUTIONS = 10
"""onnx.reference's run over ours, for models of convolutions."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "minilm_l6_w8": TRANSFORMER,
        **dict.fromkeys(("silero_vad_if", "silero_vad_static", "rawi_lstm_int8"), RECURRENT),
        **dict.fromkeys(
            (
                *("ppocrv4_det", "ppocrv4_rec", "ppocr_cls", "nudenet_yolov8n", "ddddocr_det"),
                *("resnet50_rw", "squeezenet_rw", "densenet121_rw"),
            ),
            CONVOLUTIONAL,
        ),
    }
)
COLUMNS = ("model", "kind", "run", "CPU", "vs CPU", "most", "ref", "ref vs", "least", "limits")
LEGEND = f"""
Milliseconds, medians.
run: ort_lite's run with [CPU].
CPU, vs CPU, most: onnxruntime's CPU execution provider, ort_lite's run over it, the limit.
ref, ref vs, least: onnx.reference, its run over ort_lite's in {REFERENCE_TURNS} turns, the limit.
"""


def main() -> int:
    """Measure and print; 1 if a limit is missed."""
    arguments = ask(__doc__, TURNS, (ONE_NODE,))
    results = {}
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            results[name] = measure_model(make_sample(name, Path(folder)), arguments.turns)
        sys.stderr.write(f"{name} done\n")
    rows = [(name, *cells(name, measured)) for name, measured in results.items()]
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + absences(results))
    if arguments.json is not None:
        write_json(arguments.json, results)
    missed = [name for name, measured in results.items() if misses(name, measured)]
    if missed:
        sys.stdout.write(f"limits missed: {', '.join(missed)}\n")
    return 1 if missed else 0


def measure_model(sample: Sample, turns: int) -> dict[str, Measurement]:
    """Ours with each peer in turn; our times are those measured in turns with onnxruntime."""
    ours, peer, reference = (variant(e, sample) for e in (OURS_CPU, PEER_CPU, REFERENCE))
    with_reference = interleave((ours, reference), min(turns, REFERENCE_TURNS))
    return {
        REFERENCE: with_reference[REFERENCE],
        BESIDE_REFERENCE: with_reference[OURS_CPU],
        **interleave((ours, peer), turns),
    }


BESIDE_REFERENCE = f"{OURS_CPU} beside {REFERENCE}"


def misses(name: str, measured: dict[str, Measurement]) -> list[str]:
    """The columns whose limit the model misses."""
    most, least = limits(name)
    slower = ratio(measured, OURS_CPU, PEER_CPU)
    faster = ratio(measured, REFERENCE, BESIDE_REFERENCE)
    missed = ["vs CPU"] if slower is not None and slower > most else []
    return missed + (["ref vs"] if faster is not None and faster < least else [])


def limits(name: str) -> tuple[float, float]:
    """The most that a run may take of onnxruntime's, and the least part of onnx.reference's."""
    kind = KINDS.get(name, "")
    return MOST.get(kind, MOST_OF_OTHERS), LEAST_OF_CONVOLUTIONS if kind == CONVOLUTIONAL else 0


def cells(name: str, measured: dict[str, Measurement]) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    most, least = limits(name)
    missed = misses(name, measured)
    return (
        KINDS.get(name, "other"),
        *(milliseconds(measured, OURS_CPU), milliseconds(measured, PEER_CPU)),
        *(over(measured, OURS_CPU, PEER_CPU), f"{most:g}x", milliseconds(measured, REFERENCE)),
        *(over(measured, REFERENCE, BESIDE_REFERENCE), f"{least:g}x" if least else ""),
        f"misses {', '.join(missed)}" if missed else "met",
    )


if __name__ == "__main__":
    sys.exit(main())
