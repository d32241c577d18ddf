"""Merges elementwise operations into each other and into what makes their input."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.decoder_op import BlockMatMul
from eps.opencl.compile.expression import (
    Arg,
    Expr,
    arguments,
    is_floating,
    is_vectorisable,
    size,
    substitute,
)
from eps.opencl.compile.ir import (
    Convolution,
    Epilogue,
    IrTensor,
    KernelGraph,
    MatMul,
    Op,
    Pointwise,
    TransposedConvolution,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_EXPRESSION = 60
"""Calls in one kernel: beyond, registers spill and compile time grows."""
MAX_OPERANDS = 12

Dense = Convolution | TransposedConvolution | MatMul | BlockMatMul


def fuse_pointwise(graph: KernelGraph) -> KernelGraph:
    """The same values in fewer operations; what only fused operations used is gone."""
    ops = _drop_dead(graph)
    ops = _merge_pointwise(
        ops, graph.outputs, lambda expr: (is_floating(expr), is_vectorisable(expr))
    )
    ops = _fuse_epilogues(ops, graph.outputs, _takes_floats)
    ops = _merge_pointwise(ops, graph.outputs, is_vectorisable)
    ops = _fuse_epilogues(ops, graph.outputs, _takes_integers)
    return KernelGraph(graph.inputs, graph.outputs, ops)


def _drop_dead(graph: KernelGraph) -> list[Op]:
    """Operations that an output depends on."""
    needed = {id(t) for t in graph.outputs}
    kept = []
    for op in reversed(graph.ops):
        if any(id(t) in needed for t in op.outputs):
            kept.append(op)
            needed.update(id(t) for t in op.inputs)
    return list(reversed(kept))


def _uses(ops: Sequence[Op], outputs: Sequence[IrTensor]) -> Counter[int]:
    """How many operations, and outputs, use each tensor."""
    uses = Counter(id(t) for op in ops for t in dict.fromkeys(op.inputs))
    uses.update(id(t) for t in outputs)
    return uses


def _takes_floats(maker: Dense, expr: Expr) -> bool:
    return maker.inputs[0].dtype == "float32" and is_floating(expr)


def _takes_integers(maker: Dense, expr: Expr) -> bool:
    return maker.inputs[0].dtype != "float32" and is_vectorisable(expr)


def _merge_pointwise(
    ops: Sequence[Op], outputs: Sequence[IrTensor], kind: Callable[[Expr], object]
) -> list[Op]:
    """Put a pointwise operation into its only user, if that has its shape and is of its kind."""
    uses = _uses(ops, outputs)
    makers: dict[int, Pointwise] = {}
    dropped: set[int] = set()
    for op in ops:
        if not isinstance(op, Pointwise):
            continue
        while maker := _mergeable(op, makers, uses):
            merged = _inline_maker(op, maker) if kind(op.expr) == kind(maker.expr) else None
            if merged is None:
                break
            for tensor in set(maker.inputs) & set(op.inputs):
                uses[id(tensor)] -= 1
            op.inputs, op.expr = merged
            dropped.add(id(maker))
        makers[id(op.output)] = op
    return [op for op in ops if id(op) not in dropped]


def _mergeable(op: Pointwise, makers: dict[int, Pointwise], uses: Counter[int]) -> Pointwise | None:
    for tensor in op.inputs:
        maker = makers.get(id(tensor))
        if maker and uses[id(tensor)] == 1 and tensor.shape == op.output.shape:
            return maker
    return None


def _inline_maker(op: Pointwise, maker: Pointwise) -> tuple[tuple[IrTensor, ...], Expr] | None:
    """Inputs and expression of `op` with those of `maker` written in; None if too large."""
    tensor = maker.output
    inputs = [t for t in op.inputs if t is not tensor]
    inputs += [t for t in maker.inputs if t not in inputs]
    if len(inputs) > MAX_OPERANDS or size(op.expr) + size(maker.expr) > MAX_EXPRESSION:
        return None
    inner = substitute(maker.expr, _renumber_operands(maker.inputs, inputs))
    mapping: dict[int, Expr] = _renumber_operands(op.inputs, inputs)
    mapping[op.inputs.index(tensor)] = inner
    return tuple(inputs), substitute(op.expr, mapping)


def _renumber_operands(old: Sequence[IrTensor], new: Sequence[IrTensor]) -> dict[int, Expr]:
    return {i: Arg(new.index(t), t.dtype) for i, t in enumerate(old) if t in new}


def _fuse_epilogues(
    ops: Sequence[Op], outputs: Sequence[IrTensor], takes: Callable[[Dense, Expr], bool]
) -> list[Op]:
    """Apply a pointwise operation to a product or convolution before that is stored.

    The fused operation runs where the pointwise one did: its other operands are made by then.
    """
    uses = _uses(ops, outputs)
    makers: dict[int, Dense] = {}
    moved: set[int] = set()
    result: list[Op] = []
    for op in ops:
        fused: Op = op
        if isinstance(op, Pointwise):
            producer = next((t for t in op.inputs if _fits(t, op, makers, uses)), None)
            maker = makers[id(producer)] if producer is not None else None
            if producer is not None and maker is not None and _takes(maker, op, takes):
                moved.add(id(maker))
                fused = _with_epilogue(maker, op, producer)
        if isinstance(fused, Dense) and fused.epilogue is None:
            makers[id(fused.output)] = fused
        result.append(fused)
    return [op for op in result if id(op) not in moved]


def _takes(maker: Dense, op: Pointwise, takes: Callable[[Dense, Expr], bool]) -> bool:
    """Products with weights of few bits read operands of their shape, and single rows."""
    rows = isinstance(maker, BlockMatMul)
    fits = all(
        t.shape == op.output.shape or t.size == max(t.shape[-1:], default=1) for t in op.inputs
    )
    return takes(maker, op.expr) and (fits or not rows)


def _fits(tensor: IrTensor, op: Pointwise, makers: dict[int, Dense], uses: Counter[int]) -> bool:
    made = id(tensor) in makers and uses[id(tensor)] == 1
    return made and tensor.shape == op.output.shape


def _with_epilogue(maker: Dense, op: Pointwise, result: IrTensor) -> Dense:
    extra = [t for t in op.inputs if t is not result]
    mapping: dict[int, Expr] = {
        i: Arg(0 if t is result else extra.index(t) + 1, t.dtype) for i, t in enumerate(op.inputs)
    }
    used = arguments(op.expr)
    assert op.inputs.index(result) in used, "lowering keeps no operand that it does not read"
    epilogue = Epilogue(substitute(op.expr, mapping), len(maker.inputs))
    inputs = (*maker.inputs, *extra)
    return replace(maker, inputs=inputs, output=op.output, epilogue=epilogue)
