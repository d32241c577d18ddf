"""In which order the axes of each tensor lie in memory."""

from __future__ import annotations

from collections import defaultdict

from eps.opencl.compile.ir import (
    EIGHT_BITS,
    Alias,
    Concat,
    Convolution,
    KernelGraph,
    MatMul,
    Op,
    Permute,
    Pointwise,
    Pool,
    Slice,
    Tensor,
    TransposedConvolution,
)

CHANNELS_LAST = (0, 2, 3, 1)


def assign_orders(graph: KernelGraph) -> None:
    """Set `order` of every tensor: images channels last, others as what they are made of."""
    users: dict[int, list[Op]] = defaultdict(list)
    for op in graph.ops:
        for tensor in dict.fromkeys(op.inputs):
            users[id(tensor)].append(op)
    results = {id(t) for t in graph.outputs}
    for op in graph.ops:
        op.output.order = _order(op, users[id(op.output)], is_result=id(op.output) in results)


def _order(op: Op, users: list[Op], *, is_result: bool) -> tuple[int, ...]:
    if isinstance(op, Convolution | TransposedConvolution | Pool):
        return CHANNELS_LAST
    if isinstance(op, Alias):
        return _alias_order(op)
    if is_result and isinstance(op, Pointwise | Concat):
        return ()
    if _is_quantised_image(op, users):
        return CHANNELS_LAST
    if isinstance(op, MatMul):
        return _product_order(users)
    rank = len(op.output.shape)
    same = [t for t in op.inputs if len(t.shape) == rank and t.order and t.constant is None]
    return max(same, key=lambda t: t.size).order if same else ()


def _is_quantised_image(op: Op, users: list[Op]) -> bool:
    """Whether it is made for convolutions of integers, which read several channels at once."""
    made = isinstance(op, Pointwise) and op.output.dtype in EIGHT_BITS
    return made and bool(users) and all(isinstance(user, Convolution) for user in users)


def _alias_order(op: Alias) -> tuple[int, ...]:
    source: Tensor = op.inputs[0]
    if isinstance(op.how, Slice):
        return source.order
    if isinstance(op.how, Permute):
        axes = op.how.axes
        order = source.order or tuple(range(len(axes)))
        found = tuple(axes.index(a) for a in order)
        return () if found == tuple(range(len(axes))) else found
    return ()


def _product_order(users: list[Op]) -> tuple[int, ...]:
    """As its only user will see it, so that a transposition afterwards moves nothing."""
    if len(users) == 1 and isinstance(users[0], Alias) and isinstance(users[0].how, Permute):
        axes = users[0].how.axes
        if axes[-1] == len(axes) - 1:
            return axes
    return ()
