"""Kernels that move elements: gather by index, fill around, sample along axes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.codegen.kernel import Code, Kernel, decode, offset_of, share
from eps.opencl.expression import C_TYPES, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.device import Target
    from eps.opencl.ir import Fill, Gather, GatherND
    from eps.opencl.layout import Step

SMALLEST_TASK = 8192


def _begin(code: Code, sizes: tuple[int, ...], target: Target) -> tuple[list[str], int]:
    units = prod(sizes[:-1]) if sizes else 1
    size = prod(sizes)
    tasks, each = share(units, min(target.tasks, max(1, size // SMALLEST_TASK)))
    code.add("const int id = get_global_id(0);")
    code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {units}); ++u)")
    return decode(code, "u", sizes[:-1], "d"), tasks


def gather_kernel(op: Gather, step: Step, target: Target) -> Kernel:
    """Each index once for a row of what it picks; one out of range is reported, not read."""
    data, indices = step.inputs
    y = step.output
    before, after = data.shape[: op.axis], data.shape[op.axis + 1 :]
    sizes = (*before, *indices.shape, *after)
    rank = len(indices.shape)
    code = Code()
    rows = (*before, *indices.shape)
    units = prod(rows)
    tasks, each = share(units, min(target.tasks, max(1, prod(sizes) // SMALLEST_TASK)))
    code.add("const int id = get_global_id(0);")
    code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {units}); ++u)")
    names = decode(code, "u", rows, "d")
    picks = names[len(before) :]
    at = offset_of(zip(picks, indices.strides, strict=True), indices.offset)
    n = data.shape[op.axis]
    code.add(f"long pick = p1[{at}];", f"pick += pick < 0 ? {n} : 0;")
    code.add(f"if (pick < 0 || pick >= {n}) {{ *wrong = 1; pick = 0; }}")
    x_terms = list(zip(names, data.strides[: op.axis], strict=False))
    x_at = offset_of([*x_terms, ("(int)pick", data.strides[op.axis])], data.offset)
    y_at = offset_of(zip(names, y.strides[: len(before) + rank], strict=True), y.offset)
    code.add(f"const int x0 = {x_at}, y0 = {y_at};")
    rest = op.axis + 1
    _copy_slice(code, after, data.strides[rest:], y.strides[len(rows) :])
    code.close()
    return Kernel(code.text(), (data.buffer, indices.buffer, y.buffer), tasks, checks=True)


def gather_nd_kernel(op: GatherND, step: Step, target: Target) -> Kernel:
    """Each tuple of indices once for the slice that it picks."""
    data, indices = step.inputs
    y = step.output
    outer = indices.shape[:-1]
    depth = indices.shape[-1]
    picked = range(op.batch, op.batch + depth)
    units = prod(outer)
    tasks, each = share(units, min(target.tasks, max(1, y.size // SMALLEST_TASK)))
    code = Code()
    code.add("const int id = get_global_id(0);")
    code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {units}); ++u)")
    names = decode(code, "u", outer, "d")
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
    rest = op.batch + depth
    _copy_slice(code, data.shape[rest:], data.strides[rest:], y.strides[len(outer) :])
    code.close()
    return Kernel(code.text(), (data.buffer, indices.buffer, y.buffer), tasks, checks=True)


def _copy_slice(
    code: Code, sizes: Sequence[int], x_strides: Sequence[int], y_strides: Sequence[int]
) -> None:
    """Copy from `p0 + x0` to `p2 + y0`."""
    x_text, y_text = "x0", "y0"
    for i, (n, x, y) in enumerate(zip(sizes, x_strides, y_strides, strict=True)):
        code.open(f"for (int i{i} = 0; i{i} < {n}; ++i{i})")
        x_text += f" + i{i} * {x}"
        y_text += f" + i{i} * {y}"
    code.add(f"p2[{y_text}] = p0[{x_text}];")
    code.close(len(sizes))


def fill_kernel(op: Fill, step: Step, target: Target) -> Kernel:
    """Every output element: the input's where it has one, else the value."""
    x, y = step.inputs[0], step.output
    code = Code()
    names, tasks = _begin(code, y.shape, target)
    code.open(f"for (int i = 0; i < {y.shape[-1]}; ++i)")
    names = [*names, "i"]
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
    code.close(2)
    return Kernel(code.text(), (x.buffer, y.buffer), tasks)
