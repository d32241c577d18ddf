"""Products of a small constant matrix and a column of vectors, in few operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.kernel import Code

    Array = np.ndarray[Any, np.dtype[Any]]


def write_linear(
    code: Code, matrix: Array, names: Sequence[str], kind: str, prefix: str
) -> list[str]:
    """Declare matrix @ names, variables of type `kind`; their names, which begin with `prefix`.

    Neighbouring columns, or rows, that differ in signs alone share sums and differences.
    """
    matrix, names = _fold_columns(code, matrix, names, kind, prefix)
    sums: list[str] = []
    while len(sums) < len(matrix):
        at = len(sums)
        name, row = f"{prefix}{at}", matrix[at]
        if at + 1 < len(matrix) and _is_mirrored(row, matrix[at + 1]):
            same = row == matrix[at + 1]
            even, odd = _sum(np.where(same, row, 0), names), _sum(np.where(same, 0, row), names)
            code.add(f"const {kind} {name}e = {even}, {name}o = {odd};")
            code.add(f"const {kind} {name} = {name}e + {name}o;")
            code.add(f"const {kind} {prefix}{at + 1} = {name}e - {name}o;")
            sums += [name, f"{prefix}{at + 1}"]
        else:
            code.add(f"const {kind} {name} = {_sum(row, names)};")
            sums.append(name)
    return sums


def _is_mirrored(a: Array, b: Array) -> bool:
    """Whether they are equal in some places and opposite in others, and nothing else."""
    used = a != 0
    same = bool((a[used] == b[used]).any())
    return bool((abs(a) == abs(b)).all()) and same and bool((a[used] == -b[used]).any())


def _fold_columns(
    code: Code, matrix: Array, names: Sequence[str], kind: str, prefix: str
) -> tuple[Array, list[str]]:
    """The matrix with mirrored columns as those of the sum and of the difference of two names."""
    columns, folded, at = [], [], 0
    while at < len(names):
        column, name = matrix[:, at], names[at]
        if at + 1 < len(names) and _is_mirrored(column, matrix[:, at + 1]):
            same, other = column == matrix[:, at + 1], names[at + 1]
            folded += [f"{prefix}s{at}", f"{prefix}d{at}"]
            code.add(f"const {kind} {folded[-2]} = {name} + {other};")
            code.add(f"const {kind} {folded[-1]} = {name} - {other};")
            columns += [np.where(same, column, 0), np.where(same, 0, column)]
            at += 2
        else:
            folded.append(name)
            columns.append(column)
            at += 1
    return np.stack(columns, axis=1), folded


def _sum(row: Array, names: Sequence[str]) -> str:
    """The sum of names times what is not zero in `row`, those with factor 1 first."""
    terms = [(float(f), name) for f, name in zip(row, names, strict=True) if f]
    text = ""
    for factor, name in sorted(terms, key=lambda term: (abs(term[0]) != 1, term[0] < 0)):
        product = name if abs(factor) == 1 else f"{name} * {_number_text(abs(factor))}"
        text += (
            f" {'-' if factor < 0 else '+'} {product}" if text else _write_signed(factor, product)
        )
    return text or "0.0f"


def _write_signed(factor: float, product: str) -> str:
    return f"-{product}" if factor < 0 else product


def _number_text(value: float) -> str:
    return f"{np.float32(value)!s}f"
