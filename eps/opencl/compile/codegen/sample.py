"""Weighted sums of neighbours: tables say where each output index reads, and how much."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.kernel import Code, Kernel, decode, load, offset_of, store
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.views import Storage

if TYPE_CHECKING:
    from eps.opencl.compile.ir import Sample
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class _Axis:
    """A sampled axis: `taps` entries for every output index, from `start` in the tables."""

    axis: int
    start: int
    taps: int


def sample_kernel(op: Sample, step: PlacedOp, target: Target) -> Kernel:
    """A vector along the innermost axis if that is not sampled, else one element at a time.

    Parameters: input, offsets of the taps in elements, their weights, output. Lists that are
    shorter than the longest of their axis are filled with weight zero.
    """
    x, y = step.inputs[0], step.output
    axes, offsets, weights = _tables(op, step)
    sampled = {a.axis for a in axes}
    order = sorted(range(len(y.shape)), key=lambda a: -y.strides[a])
    inner = order[-1] if order else 0
    along = bool(order) and inner not in sampled and x.strides[inner] == y.strides[inner] == 1
    vector = target.vector if along and y.shape[inner] >= target.vector else 1
    sizes = [-(-y.shape[a] // vector) if a == inner else y.shape[a] for a in order]
    code = Code()
    spread = open_units(code, prod(sizes), y.size // SMALLEST_TASK, target)
    names = dict(zip(order, decode(code, "u", sizes, "d"), strict=True))
    if vector > 1:
        code.add(f"const int n0 = min({names[inner]} * {vector}, {y.shape[inner] - vector});")
        names[inner] = "n0"
    kept = [(names[a], x.strides[a]) for a in order if a not in sampled]
    kind = f"float{vector}" if vector > 1 else "float"
    code.add(f"{kind} a = 0.0f;", f"const int base = {offset_of(kept, x.offset)};")
    at, weight = "base", "1.0f"
    for number, axis in enumerate(axes):
        code.open(f"for (int s{number} = 0; s{number} < {axis.taps}; ++s{number})")
        code.add(
            f"const int t{number} = {axis.start} + {names[axis.axis]} * {axis.taps} + s{number};"
        )
        at += f" + p1[t{number}]"
        weight = f"p2[t{number}]" if weight == "1.0f" else f"{weight} * p2[t{number}]"
    code.add(f"a = mad({load('p0', f'({at})', 1, vector)}, ({kind})({weight}), a);")
    code.close(len(axes))
    place = offset_of(((names[a], y.strides[a]) for a in order), y.offset)
    code.add(*store("p3", place, 1, vector, "a"))
    code.close()
    tables = Storage(offsets.size, "int32", offsets), Storage(weights.size, "float32", weights)
    return Kernel(code.text(), (x.buffer, *tables, y.buffer), *spread)


def _tables(op: Sample, step: PlacedOp) -> tuple[list[_Axis], Array, Array]:
    axes: list[_Axis] = []
    offsets: list[int] = [0]  # a buffer is never empty
    weights: list[float] = [0.0]
    for axis, sources in enumerate(op.sources):
        if sources == tuple((i,) for i in range(step.inputs[0].shape[axis])):
            continue
        taps = max(len(s) for s in sources)
        axes.append(_Axis(axis, len(offsets), taps))
        stride = step.inputs[0].strides[axis]
        for source, weight in zip(sources, op.weights[axis], strict=True):
            missing = taps - len(source)
            offsets += [i * stride for i in source] + [source[-1] * stride] * missing
            weights += [*weight, *(0.0,) * missing]
    return axes, np.array(offsets, np.int32), np.array(weights, np.float32)
