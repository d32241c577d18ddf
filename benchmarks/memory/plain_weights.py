"""What a session of a plain model takes: processor time of its start, memory at its peak and after.

For each size in `--megabytes` a chain of matrix products is written, its weights in the model or in
a data file. Turn by turn a fresh process imports numpy and ort_lite, opens a session on each EP and
runs it once. `--before FOLDER` measures a checkout of another version in the same turns. Linux.

CPU: seconds of processor time up to the first answer. peak: the process's most memory (VmHWM),
after: its memory then, pages of mapped files included; own: without them. Medians, in MB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.harness.conditions import conditions
from benchmarks.harness.report import text_table

HERE = Path(__file__).resolve()
MODULE = "benchmarks.memory.plain_weights"
WIDTH = 2048
LAYER = WIDTH * WIDTH * 4
EPS = {
    "cpu": "CPUExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "opencl": "OpenCLExecutionProvider",
}
COLUMNS = ("EP", "weights", "MB", "", "CPU s", "wall s", "peak", "after", "own")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--ep", choices=sorted(EPS), nargs="+", default=list(EPS))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--before", type=Path, help="a checkout of another version")
    parser.add_argument("--json", type=Path, help="write every measurement there")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return _start(*arguments.child)
    if arguments.write:
        return _write(Path(arguments.write[0]), int(arguments.write[1]))
    versions = {"now": HERE.parents[2]}
    if arguments.before:
        versions["before"] = arguments.before.resolve()
    measured: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        for size in arguments.megabytes:
            for kind in ("inside", "external"):
                path = Path(place) / f"{kind}{size}" / "m.onnx"
                subprocess.run(
                    [sys.executable, "-m", MODULE, "--write", path, str(size)], check=True
                )
                for _ in range(arguments.turns):
                    _turn(path, f"{kind} {size}", arguments.ep, versions, measured)
    rows = [_row(name, values) for name, values in sorted(measured.items())]
    sys.stdout.write(f"{conditions()}\n{text_table(COLUMNS, rows)}\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=1))
    return 0


def _turn(
    path: Path,
    kind: str,
    eps: list[str],
    versions: dict[str, Path],
    measured: dict[str, list[dict[str, float]]],
) -> None:
    cases = [(ep, version) for ep in eps for version in versions]
    random.shuffle(cases)
    for ep, version in cases:
        command = [sys.executable, "-m", MODULE, "--child", str(path), EPS[ep]]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{versions[version]}{os.pathsep}{HERE.parents[2]}",
        }
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, cwd=path.parent
        )
        measured.setdefault(f"{ep} {kind} {version}", []).append(json.loads(done.stdout))


def _row(name: str, values: list[dict[str, float]]) -> list[str]:
    ep, kind, size, version = name.split()
    cells = [median(value[key] for value in values) for key in ("cpu", "wall")]
    memory = [median(value[key] for value in values) for key in ("peak", "after", "own")]
    return [
        *(ep, kind, size, version),
        *(f"{cell:.2f}" for cell in cells),
        *(f"{cell:,.0f}" for cell in memory),
    ]


def _start(path: str, ep: str) -> int:
    began = time.perf_counter()
    import numpy as np  # noqa: PLC0415 - part of what is measured

    import ort_lite as ort  # noqa: PLC0415 - as above

    with ort.InferenceSession(path, providers=[ep]) as session:
        session.run(None, {"x": np.ones((1, WIDTH), np.float32)})
        times = os.times()
        status = {}
        for line in Path("/proc/self/status").read_text().splitlines():
            key, _, value = line.partition(":")
            if key in ("VmHWM", "VmRSS", "RssAnon"):
                status[key] = int(value.split()[0]) / 1024
    measurement = {
        "cpu": times.user + times.system,
        "wall": time.perf_counter() - began,
        "peak": status["VmHWM"],
        "after": status["VmRSS"],
        "own": status["RssAnon"],
    }
    sys.stdout.write(json.dumps(measurement))
    return 0


def _write(path: Path, megabytes: int) -> int:
    import numpy as np  # noqa: PLC0415 - not where memory is measured
    import onnx  # noqa: PLC0415 - as above
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - as above

    path.parent.mkdir(parents=True)
    drawn = np.random.default_rng(1)
    count = max(1, megabytes * 1_000_000 // LAYER)
    weights = []
    for i in range(count):
        values = drawn.standard_normal((WIDTH, WIDTH), np.float32) / np.float32(WIDTH**0.5)
        weights.append(numpy_helper.from_array(values, f"weights_{'x' * (i % 4)}{i}"))
    names = ["x", *(f"y{i}" for i in range(count))]
    nodes = [
        helper.make_node("MatMul", [names[i], weights[i].name], [names[i + 1]])
        for i in range(count)
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
        [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, [1, WIDTH])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    external = path.parent.name.startswith("external")
    onnx.save(model, path, save_as_external_data=external, location="w.bin")
    return 0


if __name__ == "__main__":
    sys.exit(main())
