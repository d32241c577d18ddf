"""x / 2 * (1 + erf(x / sqrt 2)), as exporters write it in five nodes: one com.microsoft Gelu."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, Node
from ort_lite.options import GraphOptimizationLevel
from ort_lite.transforms.patterns import is_near, made_by, number, other_input, read_by
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ort_lite.transforms.draft import Draft
    from ort_lite.transforms.patterns import Found

DOMAIN = "com.microsoft"


def _gelu(draft: Draft, index: int) -> bool:
    """Fuse around an Erf; nobody else may read what lies between.

    The same operations in another order: within 4 eps of the result, relative.
    """
    erf = draft.node(index)
    scaled = made_by(draft, erf.inputs[0], "Div", "Mul")
    added = read_by(draft, erf.outputs[0], "Add")
    if scaled is None or added is None or draft.users(erf.inputs[0]) != [index]:
        return False
    x = _scaled_by_root(draft, scaled[1])
    one = number(draft, other_input(added[1], erf.outputs[0]))
    if x is None or one != 1 or draft.pinned(erf.inputs[0]):
        return False
    if draft.element_type(x) != DataType.FLOAT or not draft.shape(x):
        return False
    found = _product(draft, x, added[1].outputs[0])
    if found is None:
        return False
    *between, (last, final) = found
    gelu = Node("Gelu", (x,), final.outputs, name=final.name, domain=DOMAIN)
    draft.replace(last, gelu)
    for at, _ in sorted([scaled, (index, erf), added, *between], key=_number, reverse=True):
        draft.remove(at)
    return True


def _number(found: Found) -> int:
    return found[0]


def _scaled_by_root(draft: Draft, node: Node) -> str | None:
    """x of x / sqrt 2 or x * sqrt 0.5."""
    left, right = (*node.inputs, "", "")[:2]
    if node.op_type == "Div":
        return left if is_near(number(draft, right), math.sqrt(2)) else None
    for x, factor in ((left, right), (right, left)):
        if is_near(number(draft, factor), math.sqrt(0.5)):
            return x
    return None


def _product(draft: Draft, x: str, bracket: str) -> list[Found] | None:
    """The nodes that multiply the bracket with x and a half, in any order; the last one last."""
    first = read_by(draft, bracket, "Mul")
    if first is None:
        return None
    factor = other_input(first[1], bracket)
    if factor is None:
        return None
    half = made_by(draft, factor, "Mul")
    if half is not None and draft.users(factor) == [first[0]] and not draft.pinned(factor):
        other = other_input(half[1], x)
        return [half, first] if number(draft, other) == 0.5 else None
    last = read_by(draft, first[1].outputs[0], "Mul")
    if last is None:
        return None
    rest = other_input(last[1], first[1].outputs[0])
    halves = (factor == x and number(draft, rest) == 0.5) or (
        rest == x and number(draft, factor) == 0.5
    )
    return [first, last] if halves else None


GELU = RewriteRule(
    name="GeluFusion",
    operators=frozenset(("Erf",)),
    rewrite=_gelu,
    level=GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
)
