"""Elementwise kernels: what has vectors along memory, everything else one by one."""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.fold import row_vector
from eps.opencl.compile.codegen.kernel import (
    Code,
    Kernel,
    decode,
    load,
    offset_of,
    scale_term,
    share,
    store,
)
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.expression import (
    Expr,
    ExpressionWriter,
    calls,
    is_vectorisable,
    vector_type,
)
from eps.opencl.compile.expression import size as expression_size
from eps.opencl.compile.views import Loop, View, common_loops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.expression import Expr
    from eps.opencl.target import Target

CHUNK = 4096
"""Elements of a row that one step of a task takes."""
LONG_CHAINS = frozenset({"exp", "sigmoid", "tanh", "erf"})
"""Functions whose operations wait for each other."""
SMALL = 16
"""Calls of an expression that is computed in two registers side by side."""


def pointwise_kernel(expr: Expr, inputs: Sequence[View], output: View, target: Target) -> Kernel:
    """output = expr(inputs), inputs broadcast; parameters are the inputs, then the output."""
    views = (output, *(view.broadcast(output.shape) for view in inputs))
    loops = common_loops(views)
    if target.groups is not None:
        return spread_pointwise(expr, views, loops, target)
    *outer, inner = loops or (Loop(1, (0,) * len(views)),)
    chunks = -(-inner.size // CHUNK)
    units = prod(loop.size for loop in outer) * chunks
    tasks, each = share(units, min(target.tasks, max(1, output.size // SMALLEST_TASK)))
    code = Code()
    code.add("const int id = get_global_id(0);")
    if each > 1:
        code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {units}); ++u)")
    else:
        code.add("const int u = id;")
    names = decode(code, "u", [*(loop.size for loop in outer), chunks], "d")
    for number, view in enumerate(views):
        terms = zip(names, (loop.strides[number] for loop in outer), strict=False)
        code.add(f"const int o{number} = {offset_of(terms, view.offset)};")
    last = names[-1]
    if chunks == 1:
        code.add(f"const int end = {inner.size};")
    else:
        code.add(f"const int end = min({last} * {CHUNK} + {CHUNK}, {inner.size});")
    code.add(f"int i = {scale_term(last, CHUNK)};")
    vectors = is_vectorisable(expr) and inner.size >= target.vector
    vector = _vector(expr, inner.size, target)
    if vectors:
        _write_vectors(code, expr, inner, views, vector)
    if not vectors or inner.size % vector:
        code.open("for (; i < end; ++i)")
        _write_element(code, expr, inner, views)
        code.close()
    if each > 1:
        code.close()
    operands = tuple(v.buffer for v in (*inputs, output))
    return Kernel(code.text(), operands, tasks, in_place=same_places(inputs, output))


def same_places(inputs: Sequence[View], output: View) -> frozenset[tuple[int, int]]:
    """Operands whose element for each element of the output lies where the output's does."""
    place = output.shape, output.strides, output.offset
    return frozenset(
        (number, len(inputs))
        for number, view in enumerate(inputs)
        if (view.shape, view.strides, view.offset) == place
    )


def _vector(expr: Expr, size: int, target: Target) -> int:
    """Two registers side by side where one would wait for itself, and all stays in registers."""
    waits = calls(expr, LONG_CHAINS) and expression_size(expr) <= SMALL
    return row_vector(size, target) if waits else target.vector


def _write_vectors(code: Code, expr: Expr, inner: Loop, views: Sequence[View], vector: int) -> None:
    code.open(f"for (; i + {vector} <= end; i += {vector})")
    names = {}
    for number, stride in enumerate(inner.strides[1:]):
        at = offset_of([(f"o{number + 1}", 1), ("i", stride)])
        kind = views[number + 1].buffer.dtype
        text = load(f"p{number}", at, stride, vector, kind)
        code.add(f"const {vector_type(kind, vector)} v{number} = {text};")
        names[number] = f"v{number}"
    writer = ExpressionWriter(names, vector=vector)
    value = writer.write(expr)
    code.add(*writer.lines)
    at = offset_of([("o0", 1), ("i", inner.strides[0])])
    code.add(*store(f"p{len(names)}", at, inner.strides[0], vector, value))
    code.close()


def _write_element(code: Code, expr: Expr, inner: Loop, views: Sequence[View]) -> None:
    names = {}
    for number, view in enumerate(views[1:]):
        stride = inner.strides[number + 1]
        kind = C_TYPES[view.buffer.dtype]
        at = offset_of([(f"o{number + 1}", 1), ("i", stride)])
        code.add(f"const {kind} v{number} = p{number}[{at}];")
        names[number] = f"v{number}"
    writer = ExpressionWriter(names)
    value = writer.write(expr)
    code.add(*writer.lines)
    at = offset_of([("o0", 1), ("i", inner.strides[0])])
    code.add(f"p{len(names)}[{at}] = {value};")


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
    writer = ExpressionWriter(loaded, vector=vector)
    value = writer.write(expr)
    code.add(*writer.lines)
    code.add(*_store_results(views, outer, vector, value))
    code.close()
    operands = (*views[1:], views[0])
    in_place = same_places(views[1:], views[0])
    return Kernel(code.text(), tuple(v.buffer for v in operands), *spread, in_place=in_place)


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
