"""Einsum of one or two operands as transpositions, sums and one matrix product."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.compile.ir import IrTensor, Unsupported
from eps.opencl.compile.lower.dense import product, transpose
from eps.opencl.compile.lower.pooling import reduce_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.lower.node import NodeView

_ELLIPSIS = "ABCDEFGHIJ"
"""Letters that stand for the axes of "..."; an equation that has them itself is refused."""


def _einsum(node: NodeView) -> IrTensor:
    operands = node.present_inputs()
    if not 1 <= len(operands) <= 2:
        raise Unsupported(f"Einsum of {len(operands)} operands")
    for x in operands:
        if x.dtype != "float32":
            raise Unsupported(f"Einsum of {x.dtype}")
    terms, result = _terms(str(node.attr("equation")), [len(x.shape) for x in operands])
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(letter, n) != n:
                raise Unsupported(f"axis '{letter}' is {sizes[letter]} and {n}")
    if not set(result) <= sizes.keys():
        raise Unsupported(f"the result '{result}' has an axis that no operand has")
    if len(operands) == 1:
        kept, letters = _sum_axes(node, operands[0], terms[0], set(result))
        return transpose(node, kept, [letters.index(c) for c in result])
    return _pair(node, operands, terms, result, sizes)


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result, "..." written out."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks) or any(c in left for c in _ELLIPSIS):
        raise Unsupported(f"Einsum of '{equation}'")
    wide = max((r - len(t) + 3 for t, r in zip(terms, ranks, strict=True) if "..." in t), default=0)
    if not 0 <= wide <= len(_ELLIPSIS):
        raise Unsupported(f"Einsum of '{equation}'")
    if not arrow:
        flat = left.replace(",", "").replace(".", "")
        once = sorted(c for c in set(flat) if flat.count(c) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    written = []
    for term, rank in zip(terms, ranks, strict=True):
        own = rank - len(term) + 3
        letters = _ELLIPSIS[wide - own : wide] if "..." in term else ""
        written.append(term.replace("...", letters))
    for term, rank in zip(written, ranks, strict=True):
        if len(term) != rank or len(set(term)) != rank or not all(c.isalpha() for c in term):
            raise Unsupported(f"Einsum of '{equation}' with ranks {list(ranks)}")
    return written, right.replace("...", _ELLIPSIS[:wide])


def _sum_axes(node: NodeView, x: IrTensor, term: str, kept: set[str]) -> tuple[IrTensor, str]:
    """The operand without the axes that only it has."""
    axes = [i for i, c in enumerate(term) if c not in kept]
    if not axes:
        return x, term
    total = reduce_axes(node, x, "sum", axes)
    shape = [n for i, n in enumerate(x.shape) if i not in axes]
    return node.reshape(total, shape), "".join(c for c in term if c in kept)


def _pair(
    node: NodeView,
    operands: Sequence[IrTensor],
    terms: Sequence[str],
    result: str,
    sizes: Mapping[str, int],
) -> IrTensor:
    """Axes of both and the result are a batch, of both only are summed over."""
    a, first = _sum_axes(node, operands[0], terms[0], set(result) | set(terms[1]))
    b, second = _sum_axes(node, operands[1], terms[1], set(result) | set(terms[0]))
    both = [c for c in first if c in second]
    batch = [c for c in both if c in result]
    inner = [c for c in both if c not in result]
    rows = [c for c in first if c not in second]
    columns = [c for c in second if c not in first]

    def fold_axes(x: IrTensor, term: str, groups: Sequence[Sequence[str]]) -> IrTensor:
        order = [term.index(c) for group in groups for c in group]
        shape = [*(sizes[c] for c in groups[0]), *(_size(g, sizes) for g in groups[1:])]
        return node.reshape(transpose(node, x, order), shape)

    left = fold_axes(a, first, (batch, rows, inner))
    right = fold_axes(b, second, (batch, inner, columns))
    made = product(node, left, right)
    letters = [*batch, *rows, *columns]
    apart = node.reshape(made, [sizes[c] for c in letters])
    return transpose(node, apart, [letters.index(c) for c in result])


def _size(letters: Sequence[str], sizes: Mapping[str, int]) -> int:
    return prod(sizes[c] for c in letters)


LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {"Einsum": _einsum}
