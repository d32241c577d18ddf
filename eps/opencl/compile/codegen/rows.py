"""Kernels along rows: softmax, its logarithm, and layer normalisation, in passes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.fold import fold_row, larger, row_vector
from eps.opencl.compile.codegen.kernel import Code, Kernel, decode, floats, load, offset_of, store
from eps.opencl.compile.codegen.prefetch import fetch_row
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units

if TYPE_CHECKING:
    from eps.opencl.compile.ir import LayerNorm, Softmax
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target


def softmax_kernel(op: Softmax, step: PlacedOp, target: Target) -> Kernel:
    """Three passes over each row, a vector along it or a vector of rows at a time."""
    x, y = step.inputs[0], step.output
    axis, vector = op.axis, target.vector
    n = x.shape[axis]
    others = [a for a in range(len(x.shape)) if a != axis]
    unit = next(
        (a for a in others if x.strides[a] == y.strides[a] == 1 and x.shape[a] >= vector), None
    )
    along = x.strides[axis] == y.strides[axis] == 1 and n >= vector
    lanes = None if along else unit
    outer = [a for a in others if a != lanes]
    sizes = [x.shape[a] for a in outer]
    sizes += [-(-x.shape[lanes] // vector)] if lanes is not None else []
    code = Code()
    spread = open_units(code, prod(sizes), x.size // SMALLEST_TASK, target)
    names = decode(code, "u", sizes, "d")
    terms = list(zip(names, outer, strict=False))
    if lanes is not None:
        code.add(f"const int n0 = min({names[-1]} * {vector}, {x.shape[lanes] - vector});")
        terms.append(("n0", lanes))
    for name, view in (("x0", x), ("y0", y)):
        at = offset_of(((t, view.strides[a]) for t, a in terms), view.offset)
        code.add(f"const int {name} = {at};")
    strides = (x.strides[axis], y.strides[axis])
    if along:
        follows = x.is_plain and y.is_plain
        _softmax_along(code, n, target, follows=follows, log=op.log)
    else:
        _softmax_across(code, n, strides, vector if lanes is not None else 1, log=op.log)
    code.close()
    return Kernel(code.text(), (x.buffer, y.buffer), *spread)


def _softmax_across(
    code: Code, n: int, strides: tuple[int, int], vector: int, *, log: bool
) -> None:
    """Each lane is a row of its own."""
    kind = floats(vector)
    x, y = (f"{name}0 + i * {s}" for name, s in zip("xy", strides, strict=True))
    code.add(f"{kind} top = -INFINITY, sum = 0.0f;")
    code.open(f"for (int i = 0; i < {n}; ++i)")
    code.add(f"const {kind} v = {load('p0', x, 1, vector)};", f"top = {larger('top', 'v')};")
    code.close()
    code.open(f"for (int i = 0; i < {n}; ++i)")
    code.add(f"const {kind} e = ol_exp_normal({load('p0', x, 1, vector)} - top);", "sum += e;")
    code.add(*([] if log else store("p1", y, 1, vector, "e")))
    code.close()
    code.add(f"const {kind} scale = {'top + log(sum)' if log else '1.0f / sum'};")
    code.open(f"for (int i = 0; i < {n}; ++i)")
    value = f"{load('p0', x, 1, vector)} - scale" if log else f"{load('p1', y, 1, vector)} * scale"
    code.add(f"const {kind} r = {value};", *store("p1", y, 1, vector, "r"))
    code.close()


def _softmax_along(code: Code, n: int, target: Target, *, follows: bool, log: bool) -> None:
    """`follows`: the next row does, in memory."""
    vector = row_vector(n, target)

    def value(at: str, width: int) -> tuple[list[str], str]:
        return [f"const {floats(width)} v = {load('x', at, 1, width)};"], "v"

    def exponential(at: str, width: int) -> tuple[list[str], str]:
        text = f"ol_exp_normal({load('x', at, 1, width)} - top)"
        kept = [] if log else store("y", at, 1, width, "e")
        ahead = fetch_row(target, f"{at} + {n}") if follows and width > 1 else []
        return [*ahead, f"const {floats(width)} e = {text};", *kept], "e"

    code.add("__global const float* x = p0 + x0;", "__global float* y = p1 + y0;")
    fold_row(code, n, vector, target, "top", value, larger)
    fold_row(code, n, vector, target, "sum", exponential)
    code.add(f"const float scale = {'top + log(sum)' if log else '1.0f / sum'};")
    source, sign = ("x", "-") if log else ("y", "*")
    for width, start, end in ((vector, 0, n - n % vector), (1, n - n % vector, n)):
        if start < end:
            code.open(f"for (int i = {start}; i < {end}; i += {width})")
            code.add(f"const {floats(width)} r = {load(source, 'i', 1, width)} {sign} scale;")
            code.add(*store("y", "i", 1, width, "r"))
            code.close()


def layer_norm_kernel(op: LayerNorm, step: PlacedOp, target: Target) -> Kernel:
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
