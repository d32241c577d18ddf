"""Shapes that are computed, and whether they may contain a zero."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, Tensor, TensorType
from ort_lite.model.size_trace import SizeTrace
from ort_lite.model.tensor_values import to_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, Node
    from ort_lite.model.graph import Graph

_MOST_READ = 64
"""Elements of a constant that are looked at; shapes have few."""
_DEEPEST = 64
"""Nodes between a shape and what it is computed from."""


class _Sign(IntEnum):
    """Known of every element of a value; a higher one implies the lower ones."""

    UNKNOWN = 0
    NOT_ZERO = 1
    POSITIVE = 2


def may_contain_zero(graph: Graph, name: str) -> bool:
    """Whether an element of a value of integers may be zero, as far as the graph tells.

    Sizes of values are not: execution providers that this concerns get no values without elements.
    """
    return _find_sign(graph, name, 0, {}) is _Sign.UNKNOWN


def _find_sign(graph: Graph, name: str, depth: int, known: dict[str, _Sign]) -> _Sign:
    """As `_compute_sign`, for each value once: a product with itself would double the work."""
    if name not in known:
        known[name] = _compute_sign(graph, name, depth, known)
    return known[name]


def _compute_sign(graph: Graph, name: str, depth: int, known: dict[str, _Sign]) -> _Sign:
    constant = graph.constant(name)
    if constant is not None:
        return _sign_of(constant)
    index = graph.producer(name)
    if index is None or depth == _DEEPEST:
        return _Sign.UNKNOWN
    node = graph.nodes[index]
    if node.domain:
        return _Sign.UNKNOWN
    if node.op_type in ("Shape", "Size"):
        return _Sign.POSITIVE  # partitions do not get values without elements
    if node.op_type == "ConstantOfShape":
        attribute = node.attributes.get("value")
        value = attribute.value if attribute is not None else None
        return _sign_of(value) if isinstance(value, Tensor) else _Sign.UNKNOWN
    if node.op_type == "Div":
        return _Sign.POSITIVE if _is_positive_quotient(graph, node) else _Sign.UNKNOWN
    places = _OPERANDS.get(node.op_type)
    if places is None or (node.op_type == "Cast" and not _is_integer(graph, node.inputs[0])):
        return _Sign.UNKNOWN
    signs = [_find_sign(graph, each, depth + 1, known) for each in node.inputs[places] if each]
    if node.op_type == "Max" and _Sign.POSITIVE in signs:
        return _Sign.POSITIVE
    least = min(signs, default=_Sign.UNKNOWN)
    if node.op_type in ("Add", "Max", "Min", "Sum") and least is not _Sign.POSITIVE:
        return _Sign.UNKNOWN
    return least


def _is_positive_quotient(graph: Graph, node: Node) -> bool:
    """Whether a Div gives 1 or more: of a size that is never below a constant, by the constant.

    Of the first size of attention heads by their number, which is the size of the batch.
    """
    divisor = graph.constant(node.inputs[1])
    if divisor is None or _sign_of(divisor) is not _Sign.POSITIVE:
        return False

    def maker(name: str) -> Node | None:
        index = graph.producer(name)
        return None if index is None else graph.nodes[index]

    def shape(name: str) -> Sequence[Dim] | None:
        value_type = graph.type_of(name)
        dims = value_type.shape if isinstance(value_type, TensorType) else None
        return None if dims is None else [dim if isinstance(dim, int) else None for dim in dims]

    least = SizeTrace(maker, graph.constant, shape).least(node.inputs[0])
    return least >= int(to_numpy(divisor).max())


_FIRST, _ALL = slice(0, 1), slice(None)
_OPERANDS = {
    **dict.fromkeys(
        (
            *("Cast", "Expand", "Flatten", "Gather", "Identity", "ReduceMax", "ReduceMin"),
            *("ReduceProd", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
        ),
        _FIRST,
    ),
    **dict.fromkeys(("Add", "Concat", "Max", "Min", "Mul", "Sum"), _ALL),
    "Where": slice(1, 3),
}
"""The inputs whose elements an operator passes on, or combines."""


def _sign_of(constant: Tensor) -> _Sign:
    if constant.data_type not in (DataType.INT64, DataType.INT32):
        return _Sign.UNKNOWN
    values = to_numpy(constant)
    if values.size > _MOST_READ or not values.all():
        return _Sign.UNKNOWN
    return _Sign.POSITIVE if (values > 0).all() else _Sign.NOT_ZERO


def _is_integer(graph: Graph, name: str) -> bool:
    value_type = graph.type_of(name)
    integers = (DataType.INT64, DataType.INT32)
    return isinstance(value_type, TensorType) and value_type.elem_type in integers
