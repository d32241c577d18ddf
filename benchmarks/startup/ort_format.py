"""A session from the ORT format, from ONNX, and onnxruntime: `ort_format.py [MODEL]`.

New processes in turns, on the CPU EP. onnxruntime saves the file, fully optimized but without
layouts of its own. Each process imports numpy, then the package, opens one form twice, and says how
long each step took and how much memory the first peaked at. ort_lite imports most of itself with
its first session, onnxruntime with the package. The model is a path, or a name of the model set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
MAP = "session.use_memory_mapped_ort_model"
DIRECTLY = "session.use_ort_model_bytes_directly"
IN_PLACE = "session.use_ort_model_bytes_for_initializers"
FORMS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "ort_lite, ONNX": ("ort_lite", "onnx", ()),
    "ort_lite, .ort": ("ort_lite", "ort", ()),
    "ort_lite, .ort mapped": ("ort_lite", "ort", (MAP,)),
    "onnxruntime, ONNX": ("onnxruntime", "onnx", ()),
    "onnxruntime, .ort": ("onnxruntime", "ort", ()),
    "onnxruntime, .ort mapped": ("onnxruntime", "ort", (MAP,)),
    "onnxruntime, .ort mapped, in place": ("onnxruntime", "ort", (MAP, DIRECTLY, IN_PLACE)),
}
OPEN = """
import json, resource, sys
from importlib import import_module
from time import perf_counter, process_time
import numpy
package, path, *keys = sys.argv[1:]
began, cpu = perf_counter(), process_time()
ort = import_module(package)
imported = process_time()
options = ort.SessionOptions()
options.intra_op_num_threads = 2
for key in keys:
    options.add_session_config_entry(key, "1")
first = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
opened, wall = process_time(), perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
second = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
steps = (imported - cpu, opened - imported, process_time() - opened)
print(json.dumps([wall * 1e3, *(step * 1e3 for step in steps), peak / 1024]))
"""
SAVE = """
import sys
import onnxruntime as ort
options = ort.SessionOptions()
options.optimized_model_filepath = sys.argv[2]
options.log_severity_level = 3
ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"],
                     disabled_optimizers=["NchwcTransformer"])
"""


def main() -> None:
    """Print a line for each form: medians, and the median ratio to ort_lite's ONNX in its turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="resnet50_rw")
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    path = Path(arguments.model)
    model = path if path.is_file() else ROOT / ".models" / f"{path}.onnx"
    with TemporaryDirectory() as folder:
        saved = Path(folder) / "model.ort"
        _run(SAVE, str(model), str(saved))
        paths = {"onnx": str(model), "ort": str(saved)}
        turns = [_measure_turn(paths) for _ in range(arguments.turns + 1)][1:]  # first: page cache
    columns = ("elapsed", "import", "session", "second", "peak MiB", "ratio")
    sys.stdout.write(f"{'form':36}" + "".join(f"{name:>9}" for name in columns) + "\n")
    for form in FORMS:
        medians = [median(turn[form][i] for turn in turns) for i in range(5)]
        ratio = median(_opening(turn[form]) / _opening(turn["ort_lite, ONNX"]) for turn in turns)
        sys.stdout.write(f"{form:36}" + "".join(f"{m:9.1f}" for m in medians) + f"{ratio:9.3f}\n")
    sys.stdout.write(
        "elapsed: ms of import and first session; then ms of processor time: import of the\n"
        "package after numpy, first session, second session of the process; ratio: of import and\n"
        "first session, to ort_lite from ONNX in the same turn\n"
    )


def _opening(steps: Sequence[float]) -> float:
    """Processor time of the import and the first session."""
    return steps[1] + steps[2]


def _measure_turn(paths: Mapping[str, str]) -> dict[str, list[float]]:
    """What the process of each form prints."""
    results = {}
    for form, (package, model_format, keys) in FORMS.items():
        results[form] = json.loads(_run(OPEN, package, paths[model_format], *keys))
    return results


def _run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    # With it, each process would compile the modules that it imports.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment
    )
    return done.stdout


if __name__ == "__main__":
    main()
