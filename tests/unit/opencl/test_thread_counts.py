"""Numbers are the same with one core, with more threads than cores, and from many threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opencl_devices import device_names

ROOT = Path(__file__).parents[3]

PROGRAM = """
import json, os, sys
from concurrent.futures import ThreadPoolExecutor
device, core, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
if core:
    os.sched_setaffinity(0, {int(core)})
import numpy as np
import onnx.parser
import ort_lite as ort

text = '''<ir_version: 8, opset_import: ["" : 17]>
g (float[96,64] x, float[64,96] w) => (float[96,96] y)
{ a = MatMul(x, w) b = Exp(a) s = Softmax(b) y = MatMul(s, a) }'''
model = onnx.parser.parse_model(text).SerializeToString()
options = ort.SessionOptions()
options.intra_op_num_threads = threads
draw = np.random.default_rng(7)
feed = {"x": draw.random((96, 64), np.float32), "w": draw.random((64, 96), np.float32) / 32}
ep = ("OpenCLExecutionProvider", {"device": device})
with ort.InferenceSession(model, options, providers=[ep]) as s:
    assert {p.ep for p in s.explain().partitions} == {"OpenCLExecutionProvider"}
    first = s.run(None, feed)[0]
    with ThreadPoolExecutor(max(1, threads)) as pool:
        runs = list(pool.map(lambda _: s.run(None, feed)[0], range(2 * threads)))
    same = all(np.array_equal(first, one) for one in runs)
x, w = feed["x"].astype(np.float64), feed["w"].astype(np.float64)
a = x @ w
e = np.exp(np.exp(a) - np.exp(a).max(axis=1, keepdims=True))
right = e / e.sum(axis=1, keepdims=True) @ a
print(json.dumps([same, float(np.abs(first / right - 1).max())]))
"""


def told(device: str, core: str, threads: int, environ: dict[str, str]) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, device, core, str(threads)],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="cores are chosen as Linux does")
@pytest.mark.parametrize("device", device_names())
@pytest.mark.parametrize(
    ("one_core", "threads", "environ"),
    [
        (True, 1, {}),
        (True, 16, {}),
        (False, 2, {}),
        (False, 16, {}),
        (False, 4, {"POCL_MAX_PTHREAD_COUNT": "13", "DPCPP_CPU_NUM_CUS": "13"}),
        (False, 4, {"POCL_MAX_PTHREAD_COUNT": "1", "DPCPP_CPU_NUM_CUS": "1"}),
    ],
    ids=["one-core", "one-core-16-runs", "2-runs", "16-runs", "13-threads", "1-thread"],
)
def test_any_number_of_threads_gives_the_same_right_numbers(
    device: str, *, one_core: bool, threads: int, environ: dict[str, str]
) -> None:
    core = str(max(os.sched_getaffinity(0))) if one_core else ""
    same, error = told(device, core, threads, environ)
    assert same
    assert error < 64 * 2**-23 * 4  # rounding of sums of 64 and 96 products, and two exps
