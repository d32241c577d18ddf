"""Reductions: along rows, or across them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.fold import fold_lanes
from eps.opencl.compile.codegen.kernel import (
    Code,
    Kernel,
    decode,
    loop_nest,
    offset_of,
    scale_term,
    store,
)
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.views import Loop, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.fold import Combine
    from eps.opencl.compile.ir import Reduce
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

_STARTS = {"sum": "0", "mean": "0", "prod": "1"}


def combination(kind: str, dtype: str) -> Combine:
    """How two values become one; a maximum of floats keeps NaN as ONNX does."""
    if kind not in ("max", "min"):
        return lambda a, b: f"{a} * {b}" if kind == "prod" else f"{a} + {b}"
    sign = ">" if kind == "max" else "<"
    if dtype != "float32":
        return lambda a, b: f"{a} {sign} {b} ? {a} : {b}"
    return lambda a, b: f"select({b}, {a}, ({a} {sign} {b}) | isnan({a}))"


def reduce_kernel(op: Reduce, step: PlacedOp, target: Target) -> Kernel:
    """Along memory where the innermost axis is reduced, else a vector of results at a time."""
    x, y = step.inputs[0], step.output
    kept = [a for a in range(len(x.shape)) if a not in op.axes and x.shape[a] > 1]
    reduced = [a for a in op.axes if x.shape[a] > 1]
    unit = next((a for a in range(len(x.shape)) if x.strides[a] == 1 and x.shape[a] > 1), None)
    floating = x.buffer.dtype == "float32"
    across = floating and unit in kept and x.shape[unit or 0] >= target.vector
    lanes = unit if across else None
    outer = [a for a in kept if a != lanes]
    sizes = [x.shape[a] for a in outer]
    if lanes is not None:
        sizes.append(-(-x.shape[lanes] // target.vector))
    code = Code()
    spread = open_units(code, prod(sizes), x.size // SMALLEST_TASK, target)
    names = decode(code, "u", sizes, "d")
    if lanes is not None:
        last = f"min({names.pop()} * {target.vector}, {x.shape[lanes] - target.vector})"
        code.add(f"const int n0 = {last};")
    terms = [(name, a) for name, a in zip(names, outer, strict=True)]
    terms += [("n0", lanes)] if lanes is not None else []
    for name, view in (("x0", x), ("y0", y)):
        at = offset_of(((n, view.strides[a]) for n, a in terms), view.offset)
        code.add(f"const int {name} = {at};")
    loops = _loops(x, reduced)
    if across and lanes is not None:
        _reduce_across_vectors(
            code, op.kind, loops, y.strides[lanes], target.vector, prod(x.shape[a] for a in reduced)
        )
    else:
        _reduce_along_vectors(code, op.kind, loops, x.buffer.dtype, target.vector)
    code.close()
    return Kernel(code.text(), (x.buffer, y.buffer), *spread)


def _loops(x: View, axes: Sequence[int]) -> list[Loop]:
    """Reduced axes, the one with the smallest stride innermost."""
    return sorted(
        (Loop(x.shape[a], (x.strides[a],)) for a in axes), key=lambda v: -abs(v.strides[0])
    )


def start_of(kind: str, dtype: str) -> str:
    """A value that changes nothing; "" where that is one of the values themselves."""
    if kind in _STARTS:
        return _STARTS[kind]
    if dtype == "float32":
        return "-INFINITY" if kind == "max" else "INFINITY"
    return ""


def _reduce_across_vectors(
    code: Code, kind: str, loops: Sequence[Loop], y_stride: int, vector: int, count: int
) -> None:
    code.add(f"float{vector} a = (float{vector})({start_of(kind, 'float32')});")
    names = loop_nest(code, loops, "r")
    at = offset_of([("x0", 1), *((n, v.strides[0]) for n, v in zip(names, loops, strict=True))])
    code.add(f"const float{vector} v = vload{vector}(0, p0 + {at});")
    code.add(f"a = {combination(kind, 'float32')('a', 'v')};")
    code.close(len(loops))
    value = f"a * {1.0 / count!r}f" if kind == "mean" else "a"
    code.add(f"const float{vector} result = {value};")
    code.add(*store("p1", "y0", y_stride, vector, "result"))


def _reduce_along_vectors(
    code: Code, kind: str, loops: Sequence[Loop], dtype: str, vector: int
) -> None:
    """Vectors along the innermost loop where it is contiguous float32, then their sum."""
    c = C_TYPES[dtype]
    count = prod(loop.size for loop in loops)
    inner = loops[-1] if loops else Loop(1, (0,))
    vectors = dtype == "float32" and inner.strides[0] == 1 and inner.size >= vector
    first = start_of(kind, dtype) or "p0[x0]"
    combine = combination(kind, dtype)
    code.add(f"{c} a = {first};")
    if vectors:
        code.add(f"float{vector} av = (float{vector})({first});")
    names = loop_nest(code, loops[:-1], "r")
    outer = zip(names, loops[:-1], strict=True)
    code.add(f"const int b = {offset_of([('x0', 1), *((n, v.strides[0]) for n, v in outer)])};")
    code.add("int i = 0;")
    if vectors:
        code.open(f"for (; i + {vector} <= {inner.size}; i += {vector})")
        code.add(f"const float{vector} v = vload{vector}(0, p0 + b + i);")
        code.add(f"av = {combine('av', 'v')};")
        code.close()
    code.open(f"for (; i < {inner.size}; ++i)")
    code.add(f"const {c} v = p0[b + {scale_term('i', inner.strides[0])}];")
    code.add(f"a = {combine('a', 'v')};")
    code.close(1 + len(loops[:-1]) if loops else 1)
    if vectors:
        lane_sum = fold_lanes(code, "av", vector, combine)
        code.add(f"a = {combine('a', lane_sum)};")
    code.add(f"p1[y0] = {f'a * {1.0 / count!r}f' if kind == 'mean' else 'a'};")
