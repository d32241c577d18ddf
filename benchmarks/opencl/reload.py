"""The OpenCL EP from a context against compiling: `reload.py [MODEL ...]`.

Whole processes from their start to the first answer, and in the same process session and first run
once more. Free dimensions are fixed to the sizes of the inputs first. PoCL's cache of kernels is
off, so that compiling is compiling in every turn.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.harness.conditions import conditions
from benchmarks.harness.contexts import prepare
from benchmarks.harness.engines import OURS_OPENCL, PEER_CPU
from benchmarks.harness.process_turns import LOAD, measure_starts, start_variant
from benchmarks.harness.report import (
    absences,
    mebibytes,
    milliseconds,
    over,
    over_peak,
    text_table,
    write_json,
)
from benchmarks.harness.samples import ask, make_sample
from benchmarks.opencl.models import fix_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.harness.measure import Measurement

TURNS = 3
MODELS = ("squeezenet_rw", "resnet50_rw", "minilm_l6_w8", "magika", "ppocrv4_det")
CACHE_OFF = {"POCL_KERNEL_CACHE": "0"}
RELOAD, COMPILE, PEER = f"{OURS_OPENCL} external", f"{OURS_OPENCL} plain", f"{PEER_CPU} plain"
COLUMNS = (
    *("model", "reload", "compile", "faster", "vs CPU", "payload", "RSS", "vs CPU"),
    *("reload again", "compile again", "faster", "vs CPU"),
)
LEGEND = """
Milliseconds from before a process is started to its first answer, medians; again: session and first
run once more in the same process. faster: compiling over reloading, medians over turns.
vs CPU: over onnxruntime's CPU EP on the plain model. payload: its size in MiB. RSS: peak of the
reload in MiB, with what it has mapped: the payload, and the drivers' libraries.
"""


def main() -> int:
    """Measure and print."""
    arguments = ask(__doc__, TURNS, default=MODELS)
    results, payloads = {}, {}
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            sample = fix_shapes(make_sample(name, Path(folder)), Path(folder))
            made = prepare(OURS_OPENCL, sample, kinds=("external",))["external"]
            payloads[name] = sum(path.stat().st_size for path in Path(folder).glob("*.bin"))
            variants = [
                start_variant(OURS_OPENCL, "external", sample, made),
                start_variant(OURS_OPENCL, "plain", sample, sample.path),
                start_variant(PEER_CPU, "plain", sample, sample.path),
            ]
            results[name] = measure_starts(variants, arguments.turns, name, CACHE_OFF)
        if arguments.json is not None:
            write_json(arguments.json, results)
    rows = [(name, *cells(measured, payloads[name])) for name, measured in results.items()]
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + absences(results))
    return 0


def cells(measured: Mapping[str, Measurement], payload: int) -> tuple[str, ...]:
    """One row of the table, but for the model's name; `payload` is in bytes."""
    whole = _comparison_cells(measured, RELOAD, COMPILE, PEER)
    again = _comparison_cells(measured, *(f"{name} {LOAD}" for name in (RELOAD, COMPILE, PEER)))
    memory = (
        f"{payload / 2**20:.0f}",
        mebibytes(measured, RELOAD),
        over_peak(measured, RELOAD, PEER),
    )
    return (*whole, *memory, *again)


def _comparison_cells(
    measured: Mapping[str, Measurement], reload: str, compiled: str, peer: str
) -> tuple[str, ...]:
    return (
        *(milliseconds(measured, reload), milliseconds(measured, compiled)),
        *(over(measured, compiled, reload), over(measured, reload, peer)),
    )


if __name__ == "__main__":
    sys.exit(main())
