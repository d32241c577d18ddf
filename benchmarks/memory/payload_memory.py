"""Does loading a large payload take more memory than OpenVINO's own import of the same bytes?

A context model with `--megabytes` of weights is compiled once, its payload in a file. Then, turn by
turn and each in a fresh process, ort_lite opens a session on it, and openvino alone imports the
payload out of a map of the same file. Printed is what that added to the process's peak (VmHWM,
Linux only), imports and the start of OpenVINO not counted. Target: a ratio under 1.1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import openvino as ov
from onnx import TensorProto, helper, save

import ort_lite as ort
from benchmarks.harness.conditions import conditions
from benchmarks.harness.engine_programs import FLOAT32
from benchmarks.memory.large_context import write_large_context
from ctx_formats.container_reader import read_container
from ctx_formats.mapped_file import MappedFile

MODULE = "benchmarks.memory.payload_memory"

EP = "OpenVINOExecutionProvider"
TARGET = 1.1
ROWS = 8192


def main() -> int:
    """Measure and print; 1 if the ratio is over the target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="of weights (%(default)s)")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write every measurement there")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        what, folder = arguments.child
        print(json.dumps(answer(what, Path(folder), arguments.megabytes)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        size = _ask("compile", folder, arguments.megabytes)
        added_bytes: dict[str, list[int]] = {"ort_lite": [], "openvino": []}
        for _ in range(arguments.turns):
            for name, added in added_bytes.items():
                added.append(_ask(name, folder, arguments.megabytes))
    pairs = zip(added_bytes["ort_lite"], added_bytes["openvino"], strict=True)
    ratio = median(ours / theirs for ours, theirs in pairs)
    print(conditions(), end="")
    for name, added in added_bytes.items():
        print(f"{name:<10}{median(added) / 1e6:>10.0f} MB added to the peak")
    print(f"payload   {size / 1e6:>10.0f} MB; ratio {ratio:.3f}, target under {TARGET}")
    if arguments.json:
        report = {"payload_bytes": size, "added_bytes": added_bytes, "ratio": ratio}
        arguments.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    return int(ratio >= TARGET)


def _ask(what: str, folder: str, megabytes: int) -> int:
    command = [sys.executable, "-m", MODULE, "--megabytes", str(megabytes), "--child", what, folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    answer: int = json.loads(done.stdout.splitlines()[-1])
    return answer


def answer(what: str, folder: Path, megabytes: int) -> int:
    """What a child process is asked."""
    if what == "compile":
        return write_context(folder, megabytes)
    return open_session(folder) if what == "ort_lite" else import_payload(folder)


def write_context(folder: Path, megabytes: int) -> int:
    """Compile a context with weights of the wanted size; the payload's bytes."""
    write_large_context(folder, megabytes, ROWS)
    return (folder / f"c_{EP}.bin").stat().st_size


def open_session(folder: Path) -> int:
    """Bytes that an ort_lite session adds to the peak."""
    small = folder / "small.onnx"
    ort.InferenceSession(_write_start_model(small), providers=[EP]).close()
    before = peak()
    session = ort.InferenceSession(folder / "c.onnx", providers=[EP])
    added = peak() - before
    session.close()
    return added


def import_payload(folder: Path) -> int:
    """Bytes that openvino's own import of the mapped payload adds to the peak."""
    core = ov.Core()
    core.compile_model(core.read_model(_write_start_model(folder / "small.onnx")), "CPU", FLOAT32)
    mapped = MappedFile(folder / f"c_{EP}.bin")
    container = read_container(mapped.view)
    (name,) = container.entries
    before = peak()
    payload = np.frombuffer(container.payload(name), dtype=np.uint8)
    compiled = core.import_model(ov.Tensor(payload, shared_memory=True), "CPU", FLOAT32)
    compiled.create_infer_request()
    return peak() - before


def _write_start_model(path: Path) -> Path:
    """A model of one operator: OpenVINO's own start is in nobody's figure."""
    if not path.exists():
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
        opset = [helper.make_opsetid("", 17)]
        save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)
    return path


def peak() -> int:
    """High-water mark of this process's resident memory in bytes, from proc_pid_status(5)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
