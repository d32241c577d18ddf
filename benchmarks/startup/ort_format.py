"""A session from the ORT format, from ONNX, and onnxruntime: `ort_format.py [MODEL]`.

New processes in turns, on the CPU EP. onnxruntime saves the file, fully optimized but without
layouts of its own; each process opens one form and says how long that took and how much memory it
peaked at. The model is a path, or a name of the model set.
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
    from collections.abc import Mapping

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
ort = import_module(package)
options = ort.SessionOptions()
options.intra_op_num_threads = 2
for key in keys:
    options.add_session_config_entry(key, "1")
began, cpu = perf_counter(), process_time()
session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
took = perf_counter() - began, process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([took[0] * 1e3, took[1] * 1e3, peak / 1024]))
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
    sys.stdout.write(f"{'form':38}{'ms':>9}{'CPU ms':>9}{'peak MiB':>10}{'ratio':>8}\n")
    for form in FORMS:
        wall, cpu, peak = (median(turn[form][i] for turn in turns) for i in range(3))
        ratio = median(turn[form][1] / turn["ort_lite, ONNX"][1] for turn in turns)
        sys.stdout.write(f"{form:38}{wall:9.1f}{cpu:9.1f}{peak:10.1f}{ratio:8.3f}\n")
    sys.stdout.write("ratio: of processor time, to ort_lite from ONNX in the same turn\n")


def _measure_turn(paths: Mapping[str, str]) -> dict[str, list[float]]:
    """Milliseconds, processor milliseconds and peak MiB of each form."""
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
