"""The child process of a trial: builds a small program for one device, runs it, and ends.

    python -m eps.opencl.trials.child NAME FACTS

It says `BEGUN`, then one line of JSON: [problem, whether it would be so again]. Its exit code tells
the parent the rest.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.constants import CL_DEVICE_NOT_AVAILABLE, CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Buffer, Context, Queue
from eps.opencl.cl.program import Program
from eps.opencl.runtime.device import find_devices
from eps.opencl.runtime.launch import Launch
from eps.opencl.runtime.pocl_target import define_of
from eps.opencl.sdk_errors import sdk_text
from eps.opencl.trials.record import facts_of
from eps.opencl.trials.trial import BEGUN
from ort_lite.ep import EPFail

if TYPE_CHECKING:
    from eps.opencl.runtime.device import ListedDevice

SOURCE = """
__kernel void trial(__global float* y, const int n)
{
    const int i = get_global_id(0);
    if (16 * i >= n)
        return;
    const float16 x = vload16(i, y);
    vstore16(fma(exp(x), (float16)(0.5f), convert_float16(convert_int16(x * 4.0f))), i, y);
}
__kernel void count(__global float* y, const int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        y[i] += (float)i;
}
"""
"""Vectors, built-in functions and a loop, as in the kernels that models are made of."""
SIZE = 1024
EXP_ULPS = 3
"""Error of exp that OpenCL allows, in ulp (OpenCL 1.2, 7.4)."""


def main() -> None:
    """Try the device that the command line names."""
    sys.stdout.write(f"{BEGUN}\n")
    sys.stdout.flush()
    name, facts = sys.argv[1], json.loads(sys.argv[2])
    problem, final = "", False
    try:
        same = [f for f in find_devices() if f.name == name and facts_of(f, os.environ) == facts]
        if same:
            problem, final = _problem(same[0])
    except EPFail as exc:
        problem = exc.message
    sys.stdout.write(json.dumps([problem, final]) + "\n")
    sys.stdout.flush()


def _problem(device: ListedDevice) -> tuple[str, bool]:
    """Run the trial: the problem ("" for none), and whether it is final; a busy device is not."""
    try:
        return _explain_mismatch(*_run_kernel(device)), True
    except OpenCLError as exc:
        if exc.status == CL_DEVICE_NOT_AVAILABLE:
            return "", False
        return sdk_text(exc), True


def _run_kernel(listed: ListedDevice) -> tuple[np.ndarray[tuple[int], np.dtype[np.float32]], ...]:
    """Inputs, and what the device made of them."""
    context = Context(listed.device)
    program = Program.of_source(context, SOURCE)
    program.build("-cl-mad-enable" + define_of(listed.device))
    queue = Queue(context)
    x = np.linspace(-8, 8, SIZE, dtype=np.float32)
    buffer = Buffer.of(context, CL_MEM_READ_WRITE, x.nbytes)
    queue.write(buffer, x)
    for kernel, items in (("trial", SIZE // 16), ("count", 2)):
        Launch(queue, program, kernel, [buffer, SIZE], (items, 1)).enqueue()
    y = np.empty_like(x)
    queue.read(y, buffer)
    queue.finish()
    return x, y


def _explain_mismatch(
    x: np.ndarray[tuple[int], np.dtype[np.float32]],
    y: np.ndarray[tuple[int], np.dtype[np.float32]],
) -> str:
    """Describe the first wrong number; "" if all are right."""
    power = np.exp(x.astype(np.float64)) / 2
    right = power + np.trunc(x * 4) + np.arange(SIZE)
    # exp's error, and a rounding of each sum
    allowed = EXP_ULPS * np.spacing(power.astype(np.float32)) + 2 * np.spacing(np.float32(4096))
    bad = np.flatnonzero(~(np.abs(y - right) <= allowed))
    if not bad.size:
        return ""
    at = int(bad[0])
    return f"wrong numbers: {y[at]:.9g} instead of {right[at]:.9g} for {x[at]:.9g}"


if __name__ == "__main__":
    main()
