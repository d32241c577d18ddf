"""Layer normalisation along rows of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.fold import fold_row, row_vector
from eps.opencl.compile.codegen.kernel import Code, Kernel, floats, load, store
from eps.opencl.compile.codegen.prefetch import fetch_row
from eps.opencl.compile.codegen.spread import open_units

if TYPE_CHECKING:
    from eps.opencl.compile.ir import LayerNorm
    from eps.opencl.compile.layout import Step
    from eps.opencl.target import Target

SMALLEST_TASK = 8192


def layer_norm_kernel(op: LayerNorm, step: Step, target: Target) -> Kernel:
    """Mean, then variance of what is left, then the result: the two-pass form."""
    x, y = step.inputs[0], step.output
    n = op.count
    vector = row_vector(n, target)
    rows = x.size // n
    code = Code()
    spread = open_units(code, rows, x.size // SMALLEST_TASK, target)
    last = len(step.inputs)
    code.add(f"__global const float* x = p0 + {x.offset} + u * {n};")
    code.add(f"__global float* y = p{last} + {y.offset} + u * {n};")
    if op.root_mean_square:
        code.add("const float mean = 0.0f;")
    else:
        fold_row(code, n, vector, target, "total", _element)
        code.add(f"const float mean = total * {1.0 / n!r}f;")
    fold_row(code, n, vector, target, "square", _deviation)
    code.add(f"const float scale = 1.0f / sqrt(square * {1.0 / n!r}f + {op.epsilon!r}f);")
    for width, begin, end in ((vector, 0, n - n % vector), (1, n - n % vector, n)):
        if begin == end:
            continue
        code.open(f"for (int i = {begin}; i < {end}; i += {width})")
        code.add(*(fetch_row(target, f"i + {n}") if width > 1 else []))
        code.add(f"const {floats(width)} v = ({load('x', 'i', 1, width)} - mean) * scale;")
        value = f"v * {load('p1', 'i', 1, width)}"
        value += f" + {load('p2', 'i', 1, width)}" if last > 2 else ""
        code.add(f"const {floats(width)} r = {value};", *store("y", "i", 1, width, "r"))
        code.close()
    code.close()
    return Kernel(code.text(), (*(v.buffer for v in step.inputs), y.buffer), *spread)


def _element(at: str, width: int) -> tuple[list[str], str]:
    return [f"const {floats(width)} v = {load('x', at, 1, width)};"], "v"


def _deviation(at: str, width: int) -> tuple[list[str], str]:
    return [f"const {floats(width)} v = {load('x', at, 1, width)} - mean;"], "v * v"
