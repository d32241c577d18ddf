"""Sizes as formulas over names: whole numbers, + - * / % and parentheses, as in C."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LENGTH = 200
"""Characters of a formula."""
_OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod)


class ShapeMismatch(ValueError):  # noqa: N818 - a signal: the node goes to another EP
    """A node's shapes are not as its operator declares them; the text says how."""


def names_of(formula: str) -> set[str]:
    """The names in a formula.

    Raises:
        ValueError: It is not one.
    """
    if len(formula) > MAX_LENGTH:
        raise ValueError(f"a formula of {len(formula)} characters, at most {MAX_LENGTH}")
    try:
        tree = _parse(formula)
    except (SyntaxError, RecursionError, MemoryError) as exc:
        raise ValueError(str(exc)) from exc
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def compute_size(formula: str, sizes: Mapping[str, int]) -> int:
    """The value of a checked formula; `/` rounds down.

    Raises:
        ShapeMismatch: It is negative, or divides by zero.
    """
    result = _value(_parse(formula), formula, sizes)
    if result < 0:
        raise ShapeMismatch(f"'{formula}' is {result}, and a size is 0 or more")
    return result


def _parse(formula: str) -> ast.expr:
    tree = ast.parse(formula.strip(), mode="eval").body
    strange = next(filter(None, map(_problem_of, ast.walk(tree))), "")
    if strange:
        raise SyntaxError(f"{strange} in a formula")
    return tree


def _problem_of(node: ast.AST) -> str:
    """What a formula does not have; "" for its parts."""
    if isinstance(node, ast.BinOp):
        return "" if isinstance(node.op, _OPERATIONS) else type(node.op).__name__
    if isinstance(node, ast.Constant):
        return "" if type(node.value) is int else repr(node.value)
    return "" if isinstance(node, ast.Name | ast.Load | ast.operator) else type(node).__name__


def _value(node: ast.expr, formula: str, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int), "the formula was checked"
        return node.value
    assert isinstance(node, ast.BinOp), "the formula was checked"
    left, right = _value(node.left, formula, sizes), _value(node.right, formula, sizes)
    if isinstance(node.op, ast.Div | ast.Mod) and right <= 0:
        raise ShapeMismatch(f"'{formula}' divides by {right}")
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    return left // right if isinstance(node.op, ast.Div) else left % right
