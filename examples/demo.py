"""From ONNX to a cached context and back: compile a real model, keep it, reload it, compare.

`make demo` runs this. It compiles a YOLOv8 detector for the best device that OpenVINO finds,
writes the EPContext model, reloads it, and runs the compiled model, the reloaded one and
onnxruntime on the same input. It ends with 1 if the reloaded model does not give the compiled
one's numbers bit for bit, or if either is too far from onnxruntime.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

import ort_lite as ort
from ort_lite.providers.catalog import probe_all

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, np.dtype[Any]]

ROOT = Path(__file__).resolve().parents[1]
MODEL = "nudenet_yolov8n"
INPUT = "images"
SIZES = {"batch": 1, "height": 320, "width": 320}
"""The model leaves these dimensions open; an NPU needs them fixed."""
EP = "OpenVINOExecutionProvider"
TOLERANCES = {"CPU": 1e-4, "GPU": 2e-2, "NPU": 2e-2}
"""Relative to the largest output; GPU and NPU compute in half precision by default."""
RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One way to run the model.

    Attributes:
        ready: Seconds until the session was there.
        run: Seconds that one run takes, median.
        ran_on: How many nodes ran where.
    """

    what: str
    ready: float
    run: float
    output: Array
    ran_on: str


def main() -> int:
    """Run the demonstration; 0 if the numbers agree."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    model = fetch_model(MODEL)
    kind, device, description = best_device()
    context = fresh_folder(ROOT / ".demo") / f"{MODEL}_ctx.onnx"
    compiled = run_ort_lite("compiled, context written", model, device, context)
    reloaded = run_ort_lite("reloaded from context", context, device)
    reference = run_onnxruntime(model)

    print(f"\n{MODEL} on {EP} {device} ({description})\n")
    print_times([compiled, reloaded, reference])
    print("\nfile sizes")
    for path in (model, *sorted(context.parent.iterdir())):
        print(f"  {path.stat().st_size:>12,} bytes  {path.relative_to(ROOT)}")
    return judge(compiled.output, reloaded.output, reference.output, TOLERANCES[kind])


def fetch_model(name: str) -> Path:
    """Path of a model of the set; it is downloaded the first time."""
    tool = ROOT / "tests" / "model_set" / "fetch.py"
    command = [sys.executable, str(tool), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


def best_device() -> tuple[str, str, str]:
    """Kind, name and description of the device to use: an NPU, else a GPU, else the CPU."""
    devices = probe_all()[EP].devices
    best = max(devices, key=lambda device: ("CPU", "GPU", "NPU").index(device.kind))
    return best.kind, best.name, best.description


def fresh_folder(folder: Path) -> Path:
    """An empty folder: a context that is there already is never overwritten."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def run_ort_lite(what: str, model: Path, device: str, context: Path | None = None) -> Outcome:
    """Open `model` with ort_lite and run it; writes the context model if `context` is given."""
    options = ort.SessionOptions()
    for name, size in SIZES.items():
        options.add_free_dimension_override_by_name(name, size)
    if context is not None:
        options.add_session_config_entry("ep.context_enable", "1")
        options.add_session_config_entry("ep.context_file_path", str(context))
    began = perf_counter()
    session = ort.InferenceSession(model, options, [(EP, {"device_type": device})])
    ready = perf_counter() - began
    with session:
        seconds, output = time_runs(lambda feed: session.run(None, feed))
        counts = session.explain().node_counts().items()
    ran_on = ", ".join(f"{n} on {ep}" for ep, n in counts)
    return Outcome(what=what, ready=ready, run=seconds, output=output, ran_on=ran_on)


def run_onnxruntime(model: Path) -> Outcome:
    """The same with onnxruntime's CPU execution provider."""
    began = perf_counter()
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    ready = perf_counter() - began
    seconds, output = time_runs(lambda feed: session.run(None, feed))
    return Outcome(
        what=f"onnxruntime {onnxruntime.__version__}",
        ready=ready,
        run=seconds,
        output=output,
        ran_on="all on its CPU provider",
    )


def time_runs(call: Callable[[dict[str, Array]], list[Any]]) -> tuple[float, Array]:
    """Median seconds of a run on one random image, and its output."""
    shape = (SIZES["batch"], 3, SIZES["height"], SIZES["width"])
    feed = {INPUT: np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    seconds = []
    for _ in range(RUNS):
        began = perf_counter()
        (output,) = call(feed)
        seconds.append(perf_counter() - began)
    return median(seconds), output


def print_times(outcomes: list[Outcome]) -> None:
    """The table of times and places."""
    print(f"{'':<28}{'session ready':>15}{'one run':>12}   nodes")
    for outcome in outcomes:
        ready, run = f"{outcome.ready * 1000:.0f} ms", f"{outcome.run * 1000:.2f} ms"
        print(f"{outcome.what:<28}{ready:>15}{run:>12}   {outcome.ran_on}")


def judge(compiled: Array, reloaded: Array, reference: Array, tolerance: float) -> int:
    """Compare the outputs; 1 if they do not agree as they must."""
    largest = float(np.abs(reference).max())
    apart = float(np.abs(compiled.astype(np.float64) - reference).max()) / largest
    same_bits = compiled.tobytes() == reloaded.tobytes()
    print("\ndifferences")
    print(f"  compiled to onnxruntime   {apart:.2e} of the largest output (allowed {tolerance:g})")
    print(f"  reloaded to compiled      {'none, bit for bit' if same_bits else 'NOT the same'}")
    return 0 if same_bits and apart <= tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
