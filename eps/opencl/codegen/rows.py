"""Reductions, softmax and layer normalisation: along rows, or across them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.codegen.kernel import (
    Code,
    Kernel,
    decode,
    load,
    loop_nest,
    offset_of,
    share,
    store,
)
from eps.opencl.expression import C_TYPES
from eps.opencl.views import Loop, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.device import Target
    from eps.opencl.ir import LayerNorm, Reduce, Softmax
    from eps.opencl.layout import Step

SMALLEST_TASK = 8192
_STARTS = {"sum": "0", "mean": "0", "prod": "1"}


def _combine(kind: str, a: str, b: str) -> str:
    """Text of the combination; a maximum keeps NaN as ONNX does."""
    if kind in ("max", "min"):
        sign = ">" if kind == "max" else "<"
        return f"select({b}, {a}, ({a} {sign} {b}) | isnan({a}))"
    return f"{a} * {b}" if kind == "prod" else f"{a} + {b}"


def _lanes(name: str, vector: int) -> list[str]:
    return [f"{name}.s{lane}" for lane in "0123456789ABCDEF"[:vector]]


def _horizontal(kind: str, name: str, vector: int) -> str:
    """One number of a vector's, pairwise."""
    items = _lanes(name, vector)
    while len(items) > 1:
        half = len(items) // 2
        pairs = zip(items[:half], items[half:], strict=True)
        items = [_pair(kind, a, b) for a, b in pairs]
    return items[0]


def _pair(kind: str, a: str, b: str) -> str:
    if kind in ("max", "min"):
        return f"f{kind}({a}, {b})"
    return f"({a} * {b})" if kind == "prod" else f"({a} + {b})"


def reduce_kernel(op: Reduce, step: Step, target: Target) -> Kernel:
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
    units = prod(sizes)
    tasks, each = share(units, min(target.tasks, max(1, x.size // SMALLEST_TASK)))
    code = Code()
    code.add("const int id = get_global_id(0);")
    code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {units}); ++u)")
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
        _across(
            code, op.kind, loops, y.strides[lanes], target.vector, prod(x.shape[a] for a in reduced)
        )
    else:
        _along(code, op.kind, loops, x.buffer.dtype, target.vector)
    code.close()
    return Kernel(code.text(), (x.buffer, y.buffer), tasks)


def _loops(x: View, axes: Sequence[int]) -> list[Loop]:
    """Reduced axes, the one with the smallest stride innermost."""
    return sorted(
        (Loop(x.shape[a], (x.strides[a],)) for a in axes), key=lambda v: -abs(v.strides[0])
    )


def _start(kind: str, dtype: str) -> str:
    if kind in _STARTS:
        return _STARTS[kind]
    if dtype == "float32":
        return "-INFINITY" if kind == "max" else "INFINITY"
    return ""


def _across(
    code: Code, kind: str, loops: Sequence[Loop], y_stride: int, vector: int, count: int
) -> None:
    code.add(f"float{vector} a = (float{vector})({_start(kind, 'float32')});")
    names = loop_nest(code, loops, "r")
    at = offset_of([("x0", 1), *((n, v.strides[0]) for n, v in zip(names, loops, strict=True))])
    code.add(f"const float{vector} v = vload{vector}(0, p0 + {at});")
    code.add(f"a = {_combine(kind, 'a', 'v')};")
    code.close(len(loops))
    value = f"a * {1.0 / count!r}f" if kind == "mean" else "a"
    code.add(f"const float{vector} result = {value};")
    code.add(*store("p1", "y0", y_stride, vector, "result"))


def _along(code: Code, kind: str, loops: Sequence[Loop], dtype: str, vector: int) -> None:
    """Vectors along the innermost loop where it is contiguous float32, then their sum."""
    c = C_TYPES[dtype]
    count = prod(loop.size for loop in loops)
    inner = loops[-1] if loops else Loop(1, (0,))
    vectors = dtype == "float32" and inner.strides[0] == 1 and inner.size >= vector
    first = "p0[x0]" if not _start(kind, dtype) else _start(kind, dtype)
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
        code.add(f"av = {_combine(kind, 'av', 'v')};")
        code.close()
    code.open(f"for (; i < {inner.size}; ++i)")
    code.add(f"const {c} v = p0[b + i * {inner.strides[0]}];")
    if kind in ("max", "min") and dtype != "float32":
        code.add(f"a = a {'>' if kind == 'max' else '<'} v ? a : v;")
    else:
        code.add(f"a = {_combine(kind, 'a', 'v')};")
    code.close(1 + len(loops[:-1]) if loops else 1)
    if vectors:
        lanes = _lanes("av", vector)
        if kind in ("max", "min"):
            code.add(*(f"a = {_combine(kind, 'a', lane)};" for lane in lanes))
        else:
            code.add(f"a = {_combine(kind, 'a', _horizontal(kind, 'av', vector))};")
    code.add(f"p1[y0] = {f'a * {1.0 / count!r}f' if kind == 'mean' else 'a'};")


def softmax_kernel(op: Softmax, step: Step, target: Target) -> Kernel:
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
    tasks, each = share(prod(sizes), min(target.tasks, max(1, x.size // SMALLEST_TASK)))
    code = Code()
    code.add("const int id = get_global_id(0);")
    code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {prod(sizes)}); ++u)")
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
        _softmax_along(code, n, vector, log=op.log)
    else:
        _softmax_across(code, n, strides, vector if lanes is not None else 1, log=op.log)
    code.close()
    return Kernel(code.text(), (x.buffer, y.buffer), tasks)


def _softmax_across(
    code: Code, n: int, strides: tuple[int, int], vector: int, *, log: bool
) -> None:
    """Each lane is a row of its own."""
    kind = f"float{vector}" if vector > 1 else "float"
    x, y = (f"{name}0 + i * {s}" for name, s in zip("xy", strides, strict=True))
    code.add(f"{kind} top = -INFINITY, sum = 0.0f;")
    code.open(f"for (int i = 0; i < {n}; ++i)")
    code.add(f"const {kind} v = {load('p0', x, 1, vector)};", "top = fmax(top, v);")
    code.close()
    code.open(f"for (int i = 0; i < {n}; ++i)")
    code.add(f"const {kind} e = ol_exp({load('p0', x, 1, vector)} - top);", "sum += e;")
    code.add(*([] if log else store("p1", y, 1, vector, "e")))
    code.close()
    code.add(f"const {kind} scale = {'top + log(sum)' if log else '1.0f / sum'};")
    code.open(f"for (int i = 0; i < {n}; ++i)")
    value = f"{load('p0', x, 1, vector)} - scale" if log else f"{load('p1', y, 1, vector)} * scale"
    code.add(f"const {kind} r = {value};", *store("p1", y, 1, vector, "r"))
    code.close()


def _softmax_along(code: Code, n: int, vector: int, *, log: bool) -> None:
    kind, whole = f"float{vector}", n - n % vector
    code.add("__global const float* x = p0 + x0;", "__global float* y = p1 + y0;")
    code.add(f"{kind} tops = vload{vector}(0, x), sums = 0.0f;", "int i = 0;")
    code.add(f"for (; i < {whole}; i += {vector}) tops = fmax(tops, vload{vector}(0, x + i));")
    code.add(f"float top = {_horizontal('max', 'tops', vector)}, sum = 0.0f;")
    code.add(f"for (; i < {n}; ++i) top = fmax(top, x[i]);")
    code.open(f"for (i = 0; i < {whole}; i += {vector})")
    code.add(f"const {kind} e = ol_exp(vload{vector}(0, x + i) - top);", "sums += e;")
    code.add(*([] if log else [f"vstore{vector}(e, 0, y + i);"]))
    code.close()
    code.open(f"for (; i < {n}; ++i)")
    code.add("const float e = ol_exp(x[i] - top);", "sum += e;")
    code.add(*([] if log else ["y[i] = e;"]))
    code.close()
    code.add(f"sum += {_horizontal('sum', 'sums', vector)};")
    code.add(f"const float scale = {'top + log(sum)' if log else '1.0f / sum'};")
    source, sign = ("x", "-") if log else ("y", "*")
    code.open(f"for (i = 0; i < {whole}; i += {vector})")
    code.add(f"vstore{vector}(vload{vector}(0, {source} + i) {sign} scale, 0, y + i);")
    code.close()
    code.add(f"for (; i < {n}; ++i) y[i] = {source}[i] {sign} scale;")


def layer_norm_kernel(op: LayerNorm, step: Step, target: Target) -> Kernel:
    """Mean, then variance of what is left, then the result: the two-pass form."""
    x, y = step.inputs[0], step.output
    n, vector = op.count, target.vector
    while vector > n:
        vector //= 2
    rows = x.size // n
    tasks, each = share(rows, min(target.tasks, max(1, x.size // SMALLEST_TASK)))
    code = Code()
    kind = f"float{vector}" if vector > 1 else "float"
    code.add("const int id = get_global_id(0);")
    code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {rows}); ++u)")
    last = len(step.inputs)
    code.add(f"__global const float* x = p0 + {x.offset} + u * {n};")
    code.add(f"__global float* y = p{last} + {y.offset} + u * {n};")
    code.add("float mean = 0.0f;")
    if not op.root_mean_square:
        _sum_row(code, n, vector, "s", "v", "mean")
        code.add(f"mean *= {1.0 / n!r}f;")
    code.add("float square = 0.0f;")
    _sum_row(code, n, vector, "q", "(v - mean) * (v - mean)", "square")
    code.add(f"const float scale = 1.0f / sqrt(square * {1.0 / n!r}f + {op.epsilon!r}f);")
    for width, begin, end in ((vector, 0, n - n % vector), (1, n - n % vector, n)):
        if begin == end:
            continue
        kind = f"float{width}" if width > 1 else "float"
        code.open(f"for (int i = {begin}; i < {end}; i += {width})")
        code.add(f"const {kind} v = ({load('x', 'i', 1, width)} - mean) * scale;")
        value = f"v * {load('p1', 'i', 1, width)}"
        value += f" + {load('p2', 'i', 1, width)}" if last > 2 else ""
        code.add(f"const {kind} r = {value};", *store("y", "i", 1, width, "r"))
        code.close()
    code.close()
    return Kernel(code.text(), (*(v.buffer for v in step.inputs), y.buffer), tasks)


CHAINS = 4
"""Sums that a row is added up in side by side: one addition does not wait for the one before."""


def _sum_row(code: Code, n: int, vector: int, name: str, term: str, into: str) -> None:
    """Add `term` of every `v` of the row to `into`."""
    whole = n - n % vector
    kind = f"float{vector}" if vector > 1 else "float"
    chains = max(1, min(CHAINS, n // vector))
    side = whole - whole % (vector * chains)
    names = [f"{name}{c}" for c in range(chains)]
    code.add(f"{kind} {', '.join(f'{one} = 0.0f' for one in names)};")
    code.open(f"for (int i = 0; i < {side}; i += {vector * chains})")
    for c, one in enumerate(names):
        at = f"i + {c * vector}" if c else "i"
        code.add(f"{{ const {kind} v = {load('x', at, 1, vector)}; {one} += {term}; }}")
    code.close()
    for start, end, width, target in ((side, whole, vector, names[0]), (whole, n, 1, into)):
        if start < end:
            code.open(f"for (int i = {start}; i < {end}; i += {width})")
            one = f"float{width}" if width > 1 else "float"
            code.add(f"const {one} v = {load('x', 'i', 1, width)};", f"{target} += {term};")
            code.close()
    code.add(f"{names[0]} = {' + '.join(names)};")
    code.add(f"{into} += {_horizontal('sum', names[0], vector) if vector > 1 else names[0]};")
