"""Kernels that move elements: gather by index, fill around, sample along axes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, Kernel, offset_of
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, TileUnits
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.expression import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.ir import Fill, Gather, GatherND
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target


def gather_kernel(op: Gather, step: PlacedOp, target: Target) -> Kernel:
    """Each index once for a row of what it picks; one out of range is reported, not read."""
    data, indices = step.inputs
    y = step.output
    before, after = data.shape[: op.axis], data.shape[op.axis + 1 :]
    sizes = (*before, *indices.shape, *after)
    rank = len(indices.shape)
    code = Code()
    rows = (*before, *indices.shape)
    units = TileUnits(code, sizes, len(after), y.strides, prod(sizes) // SMALLEST_TASK, target)
    names = units.outer
    picks = names[len(before) :]
    at = offset_of(zip(picks, indices.strides, strict=True), indices.offset)
    n = data.shape[op.axis]
    code.add(f"long pick = p1[{at}];", f"pick += pick < 0 ? {n} : 0;")
    code.add(f"if (pick < 0 || pick >= {n}) {{ *wrong = 1; pick = 0; }}")
    x_terms = list(zip(names, data.strides[: op.axis], strict=False))
    x_at = offset_of([*x_terms, ("(int)pick", data.strides[op.axis])], data.offset)
    y_at = offset_of(zip(names, y.strides[: len(before) + rank], strict=True), y.offset)
    code.add(f"const int x0 = {x_at}, y0 = {y_at};")
    _copy_slice(code, units, data.strides[op.axis + 1 :], y.strides[len(rows) :])
    operands = (data.buffer, indices.buffer, y.buffer)
    return Kernel(code.text(), operands, *units.spread, checks=True)


def gather_nd_kernel(op: GatherND, step: PlacedOp, target: Target) -> Kernel:
    """Each tuple of indices once for the slice that it picks."""
    data, indices = step.inputs
    y = step.output
    outer = indices.shape[:-1]
    depth = indices.shape[-1]
    picked = range(op.batch, op.batch + depth)
    code = Code()
    inner = len(y.shape) - len(outer)
    units = TileUnits(code, y.shape, inner, y.strides, y.size // SMALLEST_TASK, target)
    names = units.outer
    at = offset_of(zip(names, indices.strides[:-1], strict=True), indices.offset)
    terms = list(zip(names[: op.batch], data.strides[: op.batch], strict=True))
    for i, axis in enumerate(picked):
        n = data.shape[axis]
        code.add(f"long g{i} = p1[{at} + {i * indices.strides[-1]}];")
        code.add(f"g{i} += g{i} < 0 ? {n} : 0;")
        code.add(f"if (g{i} < 0 || g{i} >= {n}) {{ *wrong = 1; g{i} = 0; }}")
        terms.append((f"(int)g{i}", data.strides[axis]))
    y_at = offset_of(zip(names, y.strides[: len(outer)], strict=True), y.offset)
    code.add(f"const int x0 = {offset_of(terms, data.offset)}, y0 = {y_at};")
    _copy_slice(code, units, data.strides[op.batch + depth :], y.strides[len(outer) :])
    operands = (data.buffer, indices.buffer, y.buffer)
    return Kernel(code.text(), operands, *units.spread, checks=True)


def _copy_slice(
    code: Code, units: TileUnits, x_strides: Sequence[int], y_strides: Sequence[int]
) -> None:
    """Copy the inner indices of `units` from `p0 + x0` to `p2 + y0`, and end its loops."""
    names = units.open_inner()
    x = offset_of([("x0", 1), *zip(names, x_strides, strict=True)])
    y = offset_of([("y0", 1), *zip(names, y_strides, strict=True)])
    code.add(f"p2[{y}] = p0[{x}];")
    units.close()


def fill_kernel(op: Fill, step: PlacedOp, target: Target) -> Kernel:
    """Every output element: the input's where it has one, else the value."""
    x, y = step.inputs[0], step.output
    code = Code()
    units = TileUnits(code, y.shape, 1, y.strides, y.size // SMALLEST_TASK, target)
    names = [*units.outer, *units.open_inner()]
    inside, terms = [], []
    for a, name in enumerate(names):
        start, n = op.starts[a], x.shape[a]
        if y.shape[a] != n:
            inside.append(f"{name} >= {start} && {name} < {start + n}")
        terms.append((f"({name} - {start})" if start else name, x.strides[a]))
    source = f"p0[{offset_of(terms, x.offset)}]"
    value = literal(op.value, y.buffer.dtype)
    text = f"({' && '.join(inside)}) ? {source} : ({C_TYPES[y.buffer.dtype]})({value})"
    code.add(f"p1[{offset_of(zip(names, y.strides, strict=True), y.offset)}] = {text};")
    units.close()
    return Kernel(code.text(), (x.buffer, y.buffer), *units.spread)
