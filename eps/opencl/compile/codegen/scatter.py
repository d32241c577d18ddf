"""Kernels that pick and place single elements and slices by index, in one order always."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, Kernel, decode, offset_of
from eps.opencl.compile.codegen.pointwise import pointwise_kernel
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, TileUnits, open_units
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.expression import Arg
from eps.opencl.compile.ir import GatherElements, ScatterElements, ScatterND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

_COMBINE = {"add": "{0} + {1}", "mul": "{0} * {1}", "max": "max({0}, {1})", "min": "min({0}, {1})"}


def read_checked_index(code: Code, name: str, text: str, size: int) -> None:
    """Read an index that may be negative; one out of range is reported, and 0 taken."""
    code.add(f"long {name} = {text};", f"{name} += {name} < 0 ? {size} : 0;")
    code.add(f"if ({name} < 0 || {name} >= {size}) {{ *wrong = 1; {name} = 0; }}")


def gather_elements_kernel(op: GatherElements, step: PlacedOp, target: Target) -> Kernel:
    """One index for each element."""
    (data, indices), y = step.inputs, step.output
    code = Code()
    units = TileUnits(code, y.shape, 0, y.strides, y.size // SMALLEST_TASK, target)
    names = units.outer
    at = offset_of(zip(names, indices.strides, strict=True), indices.offset)
    read_checked_index(code, "pick", f"p1[{at}]", data.shape[op.axis])
    place = offset_of(zip(names, y.strides, strict=True), y.offset)
    names[op.axis] = "(int)pick"
    source = offset_of(zip(names, data.strides, strict=True), data.offset)
    code.add(f"p2[{place}] = p0[{source}];")
    units.close()
    operands = (data.buffer, indices.buffer, y.buffer)
    return Kernel(code.text(), operands, *units.spread, checks=True)


def _combine_values(kind: str, dtype: str, place: str, value: str) -> str:
    if not kind:
        return f"p2[{place}] = {value};"
    text = _COMBINE[kind].format("held", "next")
    if "float" in dtype and kind in ("max", "min"):
        text = f"f{text}"
    c = C_TYPES[dtype]
    return f"{{ const {c} held = p2[{place}], next = {value}; p2[{place}] = {text}; }}"


def scatter_elements_kernels(op: ScatterElements, step: PlacedOp, target: Target) -> list[Kernel]:
    """A copy, then each line of updates from its start to its end: lines never meet."""
    (data, indices, updates), y = step.inputs, step.output
    sizes = [1 if a == op.axis else n for a, n in enumerate(indices.shape)]
    code = Code()
    spread = open_units(code, prod(sizes), indices.size // SMALLEST_TASK, target)
    names = decode(code, "u", sizes, "d")
    code.open(f"for (int i = 0; i < {indices.shape[op.axis]}; ++i)")
    names[op.axis] = "i"
    at = offset_of(zip(names, indices.strides, strict=True), indices.offset)
    read_checked_index(code, "pick", f"p0[{at}]", data.shape[op.axis])
    source = offset_of(zip(names, updates.strides, strict=True), updates.offset)
    names[op.axis] = "(int)pick"
    place = offset_of(zip(names, y.strides, strict=True), y.offset)
    code.add(_combine_values(op.kind, y.buffer.dtype, place, f"p1[{source}]"))
    code.close(2)
    operands = (indices.buffer, updates.buffer, y.buffer)
    copy = pointwise_kernel(Arg(0, y.buffer.dtype), [data], y, target)
    return [copy, Kernel(code.text(), operands, *spread, checks=True)]


def scatter_nd_kernels(op: ScatterND, step: PlacedOp, target: Target) -> list[Kernel]:
    """A copy, then all tuples in order for a part of the slices: the last of equal ones wins."""
    (data, indices, updates), y = step.inputs, step.output
    outer, depth = indices.shape[:-1], indices.shape[-1]
    inner = y.shape[depth:]
    size = prod(inner)
    code = Code()
    code.open(f"for (int u = 0; u < {prod(outer)}; ++u)")
    names = decode(code, "u", outer, "d")
    at = offset_of(zip(names, indices.strides[:-1], strict=True), indices.offset)
    terms = []
    for i in range(depth):
        read_checked_index(code, f"g{i}", f"p0[{at} + {i * indices.strides[-1]}]", y.shape[i])
        terms.append((f"(int)g{i}", y.strides[i]))
    code.add(f"const int y0 = {offset_of(terms, y.offset)};")
    places = zip(names, updates.strides[: len(outer)], strict=True)
    code.add(f"const int x0 = {offset_of(places, updates.offset)};")
    spread = open_units(code, size, updates.size // SMALLEST_TASK, target, "e")
    parts = decode(code, "e", inner, "e")
    source = offset_of([("x0", 1), *zip(parts, updates.strides[len(outer) :], strict=True)])
    place = offset_of([("y0", 1), *zip(parts, y.strides[depth:], strict=True)])
    code.add(_combine_values(op.kind, y.buffer.dtype, place, f"p1[{source}]"))
    code.close(2)
    operands = (indices.buffer, updates.buffer, y.buffer)
    copy = pointwise_kernel(Arg(0, y.buffer.dtype), [data], y, target)
    return [copy, Kernel(code.text(), operands, *spread, checks=True)]


GENERATORS: Mapping[type[Op], Callable[..., Kernel | list[Kernel]]] = {
    GatherElements: gather_elements_kernel,
    ScatterElements: scatter_elements_kernels,
    ScatterND: scatter_nd_kernels,
}
