"""Elementwise kernels of work-groups: each item one element, or the four that lie together."""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, Kernel, decode, load, offset_of, store
from eps.opencl.compile.codegen.spread import open_units
from eps.opencl.compile.expression import Expr, Writer, is_vectorisable, vector_type
from eps.opencl.compile.views import Loop, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.target import Target


def spread_pointwise(
    expr: Expr, views: Sequence[View], loops: Sequence[Loop], target: Target
) -> Kernel:
    """output = expr(inputs): adjacent items have adjacent elements of the output.

    Args:
        expr: Of the inputs.
        views: Of the output, then of the inputs, all of one shape.
        loops: Over the views.
        target: The device, with groups.
    """
    *outer, inner = loops or (Loop(1, (0,) * len(views)),)
    whole = is_vectorisable(expr) and inner.strides[0] == 1 and inner.size % target.vector == 0
    vector = target.vector if whole else 1
    sizes = [*(loop.size for loop in outer), inner.size // vector]
    code = Code()
    spread = open_units(code, prod(sizes), 1, target)
    *names, last = decode(code, "u", sizes, "d")
    loaded = {}
    for number, view in enumerate(views):
        terms = [(n, loop.strides[number]) for n, loop in zip(names, outer, strict=True)]
        at = offset_of([*terms, (last, inner.strides[number] * vector)], view.offset)
        code.add(f"const int o{number} = {at};")
        if number:
            kind = vector_type(view.buffer.dtype, vector)
            step = inner.strides[number]
            together = vector > 1 and step == 1 and _starts_even(view, number, outer, vector)
            text = (
                f"*(__global const {kind}*)(p{number - 1} + o{number})"
                if together
                else load(f"p{number - 1}", f"o{number}", step, vector, view.buffer.dtype)
            )
            code.add(f"const {kind} v{number - 1} = {text};")
            loaded[number - 1] = f"v{number - 1}"
    writer = Writer(loaded, vector=vector)
    value = writer.write(expr)
    code.add(*writer.lines)
    code.add(*_store_results(views, outer, vector, value))
    code.close()
    operands = (*views[1:], views[0])
    return Kernel(code.text(), tuple(v.buffer for v in operands), *spread)


def _store_results(
    views: Sequence[View], outer: Sequence[Loop], vector: int, value: str
) -> list[str]:
    pointer = f"p{len(views) - 1}"
    if vector > 1 and _starts_even(views[0], 0, outer, vector):
        kind = vector_type(views[0].buffer.dtype, vector)
        return [f"*(__global {kind}*)({pointer} + o0) = {value};"]
    return store(pointer, "o0", 1, vector, value)


def _starts_even(view: View, number: int, outer: Sequence[Loop], vector: int) -> bool:
    """Whether every vector begins at a multiple of its size, as one load asks; buffers do."""
    return gcd(view.offset, *(loop.strides[number] for loop in outer)) % vector == 0
