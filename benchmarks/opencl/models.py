"""The OpenCL EP: compile, reload and run times over onnxruntime's CPU EP, and kernel rates.

`python -m benchmarks.opencl.models [MODEL ...] [--turns N] [--json FILE]`. Free dimensions are
fixed to the sizes of the inputs first. Below the table stand, for each model, its kernels that take
the most time, how far it is from the device's own limits, and the three kernels that lose most to
them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import onnx

from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import ENGINES, OURS_OPENCL, PEER_CPU
from benchmarks.harness.measure import Measurement, Variant, interleave
from benchmarks.harness.report import absences, milliseconds, over, text_table, write_json
from benchmarks.harness.samples import Sample, ask, make_sample
from benchmarks.opencl.device_limits import describe_distance, measure_limits
from benchmarks.opencl.kernel_times import kernel_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.opencl.kernel_times import KernelTiming

TURNS = 15
SHOWN = 4
MODELS = (
    *("squeezenet_rw", "resnet50_rw", "densenet121_rw", "nudenet_yolov8n", "ddddocr_det"),
    *("ppocrv4_det", "ppocrv4_rec", "minilm_l6_w8", "magika"),
)
COLUMNS = ("model", "nodes", "compile", "reload", "reload vs CPU", "run", "vs CPU")
LEGEND = """
Milliseconds, medians; compile is one compilation with export, the driver's start included.
nodes: on OpenCL, of all that the session runs.
reload vs CPU: session from the context over onnxruntime's session from the plain model.
vs CPU: run over onnxruntime's CPU execution provider.
"""


def main() -> int:
    """Measure and print."""
    arguments = ask(__doc__, TURNS)
    chosen = arguments.models if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else MODELS
    rows, kernels, results = [], [], {}
    limits = measure_limits()
    for name in chosen:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            sample = fix_shapes(make_sample(name, Path(folder)), Path(folder))
            context = Path(folder) / "context.onnx"
            seconds = compile_seconds(sample.path, context)
            runs = interleave([variant(e, "run", sample) for e in _BOTH], arguments.turns)
            reloaded = Sample(name=name, path=context, feed=sample.feed)
            sessions = interleave(
                [variant(OURS_OPENCL, "session", reloaded), variant(PEER_CPU, "session", sample)],
                arguments.turns,
            )
            calls = kernel_calls(sample)
            kernels += [
                f"{name}: {line}"
                for line in (*list_slowest_kernels(calls), *describe_distance(calls, limits))
            ]
        rows.append((name, *cells(seconds, sessions, runs)))
        results[f"{name} run"], results[f"{name} session"] = runs, sessions
        sys.stderr.write(f"{name} done\n")
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + absences(results))
    sys.stdout.write("\n" + "\n".join(kernels) + "\n")
    if arguments.json is not None:
        write_json(arguments.json, results)
    return 0


_BOTH = (OURS_OPENCL, PEER_CPU)


def fix_shapes(sample: Sample, folder: Path) -> Sample:
    """The model with every input of the shape that its feed has."""
    proto = onnx.load(sample.path)
    with np.load(sample.feed) as feed:
        for info in proto.graph.input:
            if info.name in feed.files:
                dims = info.type.tensor_type.shape.dim
                for dim, size in zip(dims, feed[info.name].shape, strict=True):
                    dim.dim_value = size
    del proto.graph.value_info[:]
    path = folder / "fixed.onnx"
    onnx.save(proto, path)
    return Sample(name=sample.name, path=path, feed=sample.feed)


def variant(engine: str, what: str, sample: Sample) -> Variant:
    """`engine` opening or running `sample`."""
    program = (sys.executable, "-m", "benchmarks.harness.measured_process")
    return Variant(engine, (*program, engine, what, str(sample.path), str(sample.feed)))


def compile_seconds(model: Path, context: Path) -> float:
    """How long it takes to compile `model` and write `context`, the driver's start included."""
    engine = ENGINES[OURS_OPENCL]()
    began = perf_counter()
    engine.write_context(model, context, embed=False)
    return perf_counter() - began


def cells(
    seconds: float, sessions: dict[str, Measurement], runs: dict[str, Measurement]
) -> tuple[str, ...]:
    """One row of the table, but for the model's name."""
    nodes = runs[OURS_OPENCL].facts["nodes"]
    return (
        f"{nodes.get('OpenCLExecutionProvider', 0)}/{sum(nodes.values())}",
        f"{seconds * 1000:.0f}",
        *(milliseconds(sessions, OURS_OPENCL), over(sessions, OURS_OPENCL, PEER_CPU)),
        *(milliseconds(runs, OURS_OPENCL), over(runs, OURS_OPENCL, PEER_CPU)),
    )


def list_slowest_kernels(passes: Sequence[Sequence[KernelTiming]]) -> list[str]:
    """The kernels that take the most time, by the fastest of each call; times in microseconds."""
    spent: dict[str, float] = defaultdict(float)
    work: dict[str, int] = defaultdict(int)
    count: dict[str, int] = defaultdict(int)
    for calls in zip(*passes, strict=True):
        name = calls[0].kernel
        spent[name] += min(call.microseconds for call in calls)
        work[name] += calls[0].work
        count[name] += 1
    whole = sum(spent.values())
    lines = [f"{len(passes[0])} calls of {len(spent)} kernels, {whole / 1000:.2f} ms on the device"]
    for name in sorted(spent, key=lambda n: -spent[n])[:SHOWN]:
        rate = f", {work[name] / spent[name] / 1e3:.0f} GFLOP/s" if work[name] else ""
        share = spent[name] / whole
        lines.append(f"{name} x{count[name]}: {spent[name]:.0f} us, {share:.0%}{rate}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
