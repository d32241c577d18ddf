"""The functions that kernels for PoCL bring along do what OpenCL's of the same name do."""

from __future__ import annotations

import warnings

import numpy as np
import pyopencl as cl
import pytest
from opencl_devices import all_devices

from eps.opencl.compile.codegen.emit import read_inlined_builtins
from eps.opencl.runtime.device import POCL

X = np.array(
    [0.0, -0.0, 0.5, 1.5, -2.5, 1e9, np.nan, np.inf, -np.inf, -1e-40, 3.7, -3.2, 2, 7, -8, 1e-9],
    np.float32,
)
Y = np.array(
    [-0.0, 0.0, 1.0, -1.5, np.nan, 4.0, 1.0, -1.0, np.inf, 0.0, -5, -3, np.nan, 7, 8, -1],
    np.float32,
)
EXPECTED = {
    "fmax(a, b)": np.fmax(X, Y),
    "fabs(a)": np.abs(X),
    "rint(a)": np.rint(X),
    "copysign(a, b)": np.copysign(X, Y),
    "select(a, b, a < b)": np.where(X < Y, Y, X),
    "select(a, b, isnan(a))": np.where(np.isnan(X), Y, X),
    "min(a, b)": np.where(X < Y, X, Y),
    "max(a, b)": np.where(X > Y, X, Y),
    "mad(a, b, 0.5f)": X * Y + np.float32(0.5),
}


@pytest.mark.usefixtures("working_pocl")
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_functions_give_numpys_numbers(width: int) -> None:
    """Infinities, NaN, the sign of zero and denormals, too."""
    for (text, expected), found in zip(EXPECTED.items(), run(width), strict=True):
        np.testing.assert_array_equal(found, expected, text)
        either = (expected == 0) & text.startswith("fmax")  # OpenCL says nothing of fmax(0, -0)
        known = ~np.isnan(expected) & ~either
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known], text)


def run(width: int) -> np.ndarray:
    """Every text of X and Y, from `width` elements at a time."""
    kind = f"float{width}" if width > 1 else "float"
    loads = [f"vload{width}(i, {p})" if width > 1 else f"{p}[i]" for p in "xy"]
    store = "vstore{0}({1}, i, z + {2});" if width > 1 else "z[i + {2}] = {1};"
    stores = [store.format(width, text, i * X.size) for i, text in enumerate(EXPECTED)]
    source = f"""{read_inlined_builtins()}
    __kernel void k(__global const float* x, __global const float* y, __global float* z) {{
      for (int i = 0; i < {X.size // width}; ++i) {{
        const {kind} a = {loads[0]}, b = {loads[1]};
        {" ".join(stores)}
      }}
    }}"""
    pocl = next(f for f in all_devices() if f.platform.name == POCL)
    context = cl.Context([cl.Device.from_int_ptr(pocl.device.handle)])
    queue = cl.CommandQueue(context)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=data) for data in (X, Y)]
    result = np.empty((len(EXPECTED), X.size), np.float32)
    buffers.append(cl.Buffer(context, cl.mem_flags.WRITE_ONLY, result.nbytes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # PoCL writes of 64-byte vectors
        program = cl.Program(context, source).build("-cl-mad-enable", cache_dir=False)
    program.k(queue, (1,), (1,), *buffers)
    cl.enqueue_copy(queue, result, buffers[-1])
    return result
