"""Exponential, sigmoid, tanh and erf of our own against double precision, and rows made of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from device_models import NodeSet
from opencl_devices import all_devices

from eps.opencl.cl import objects as cl
from eps.opencl.cl.constants import CL_MEM_READ_ONLY, CL_MEM_READ_WRITE
from eps.opencl.compile.codegen.emit import emit_program
from eps.opencl.compile.codegen.kernel import Kernel
from eps.opencl.compile.compile_partition import BUILD_OPTIONS
from eps.opencl.compile.views import Storage
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.launch import Launch
from eps.opencl.runtime.program import build

if TYPE_CHECKING:
    from eps.opencl.runtime.device import ListedDevice

EDGES = np.array(
    [
        *(0.0, -0.0, 1e-45, -1e-45, 1e-38, -1e-38, np.inf, -np.inf, np.nan, 1e30, -1e30, 3e38),
        *(88.37, 88.72, 88.73, -87.3, -87.68, -88, -103.9, -104.5),
        *(9.01, -9.02, 3.92, -3.93, 1, -1),
    ],
    np.float32,
)
X = np.concatenate(
    [EDGES, np.linspace(-110, 110, 40001), np.linspace(-10, 10, 40001), np.logspace(-37, 1, 5000)]
).astype(np.float32)
X = X[: X.size // 16 * 16]
LARGEST, SMALLEST = 127.5 * math.log(2), -126.5 * math.log(2)
"""Of the arguments whose exponential `ol_exp_normal` gives; above is infinity, below is 0."""
SMALLEST_NORMAL = float(np.finfo(np.float32).smallest_normal)
DEVICES = all_devices()


def expected() -> dict[str, np.ndarray]:
    """In double precision, from numpy and the C library."""
    x = X.astype(np.float64)
    with np.errstate(over="ignore"):
        exp = np.exp(x)
        normal = np.where(x > LARGEST, np.inf, np.where(x < SMALLEST, 0, exp))
        return {
            "ol_exp": exp,
            "ol_exp_normal": np.where(np.isnan(x), np.nan, normal),
            "ol_sigmoid": 1 / (1 + np.exp(-x)),
            "ol_tanh": np.tanh(x),
            "ol_erf": np.array([math.erf(v) for v in x]),
        }


EXPECTED = expected()


@pytest.mark.parametrize("width", [1, 4, 8, 16])
@pytest.mark.parametrize("found", DEVICES, ids=[f.platform.name.split("(")[0] for f in DEVICES])
def test_functions_are_within_5e7_and_saturate(found: ListedDevice, width: int) -> None:
    """What is too small for a normal number may be 0; 0, 1 and infinity are exact."""
    for name, y in run(found, width).items():
        right = EXPECTED[name]
        with np.errstate(over="ignore"):
            single = right.astype(np.float32)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(X), name)
        edge = np.isinf(single) | (single == 0)
        np.testing.assert_array_equal(y[edge], single[edge], name)
        normal = np.isfinite(single) & (np.abs(right) >= SMALLEST_NORMAL)
        np.testing.assert_allclose(y[normal], right[normal], 5e-7, 0, err_msg=name)
        tiny = np.isfinite(single) & ~normal
        np.testing.assert_allclose(y[tiny], right[tiny], 0, SMALLEST_NORMAL, err_msg=name)
        if not name.startswith("ol_exp"):
            assert np.nanmax(np.abs(y)) == 1, name
        numbers = ~np.isnan(X)
        np.testing.assert_array_equal(np.signbit(y)[numbers], np.signbit(right)[numbers], name)


def run(found: ListedDevice, width: int) -> dict[str, np.ndarray]:
    """Every function of X, `width` elements at a time."""
    vector = f"float{width}" if width > 1 else "float"
    lines = []
    for i, name in enumerate(EXPECTED):
        at = i * X.size
        lines.append(
            f"vstore{width}({name}(({vector})(vload{width}(0, p0 + i))), 0, p1 + i + {at});"
            if width > 1
            else f"p1[i + {at}] = {name}(p0[i]);"
        )
    body = f"for (int i = 0; i < {X.size}; i += {width}) {{ {' '.join(lines)} }}"
    total = X.size * len(EXPECTED)
    kernel = Kernel(body, (Storage(X.size, "float32"), Storage(total, "float32")), 1)
    emitted = emit_program([kernel], describe_target(found))
    context = cl.Context(found.device)
    queue = cl.Queue(context)
    x = cl.Buffer.from_host(context, CL_MEM_READ_ONLY, X)
    y = cl.Buffer.of(context, CL_MEM_READ_WRITE, 4 * total)
    program = build(context, emitted.source, BUILD_OPTIONS)
    Launch(queue, program, emitted.names[0], [x, y], (1, 1)).enqueue()
    result = np.empty((len(EXPECTED), X.size), np.float32)
    queue.read(result, y)
    return dict(zip(EXPECTED, result, strict=True))


@pytest.mark.parametrize("platform", ["", "portable"])
def test_rows_of_every_remainder_agree_with_onnxruntime(platform: str) -> None:
    """Lengths with and without a rest of vectors, of pairs and of single elements."""
    nodes, random = NodeSet(), np.random.default_rng(3)
    for n in (1, 5, 8, 16, 24, 33, 72, 130, 257, 300, 1024):
        x = (4 * random.standard_normal((3, n))).astype(np.float32)
        nodes.add("Softmax", [x])
        nodes.add("LogSoftmax", [x])
        nodes.add("Softmax", [x.T.copy()], axis=0)
        scale, bias = random.standard_normal((2, n)).astype(np.float32)
        nodes.add("LayerNormalization", [x, scale, bias], (1, 2))
        nodes.add("Gelu", [x])
        nodes.add("Sigmoid", [x])
    nodes.check(platform=platform, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("platform", ["", "portable"])
def test_rows_keep_infinity_and_nan(platform: str) -> None:
    """Masked elements get exactly 0; a NaN, an infinity and a row of nothing give rows of NaN."""
    x = np.random.default_rng(4).standard_normal((6, 300)).astype(np.float32)
    x[0, 7:] = -np.inf
    x[1, 299] = np.nan
    x[2, 3] = np.inf
    x[3] = -np.inf
    x[4] *= 1000
    nodes = NodeSet()
    for axis in (0, 1):
        nodes.add("Softmax", [x], axis=axis)
        nodes.add("Softmax", [x.T.copy()], axis=axis)
    nodes.check(platform=platform, rtol=2e-5, atol=1e-30)
