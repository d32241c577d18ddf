"""Types of com.microsoft operators' outputs, which onnx's shape inference does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Node, ValueType

_AS_FIRST = frozenset(
    [
        "BiasAdd",
        "BiasGelu",
        "FastGelu",
        "Gelu",
        "QLinearLeakyRelu",
        "QLinearSigmoid",
        "QLinearSoftmax",
        "QuickGelu",
        "RotaryEmbedding",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
        "Trilu",
    ]
)
_FLOAT_MATRIX = frozenset(["MatMulNBits", "FusedMatMul", "DynamicQuantizeMatMul"])


def infer_contrib_types(
    node: Node, input_types: Sequence[ValueType | None]
) -> tuple[ValueType | None, ...]:
    """Types of the outputs of a com.microsoft node; None for what is not known.

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    first = input_types[0] if input_types else None
    rest = (None,) * (len(node.outputs) - 1)
    if not isinstance(first, TensorType):
        return (None, *rest)
    if node.op_type in _AS_FIRST:
        return (first, *rest)
    if node.op_type in _FLOAT_MATRIX:
        return (TensorType(first.elem_type), *rest)
    if node.op_type == "DynamicQuantizeLSTM":
        return _lstm(node, first)
    return (None, *rest)


def _lstm(node: Node, x: TensorType) -> tuple[ValueType | None, ...]:
    """Y [seq, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]."""
    hidden = node.attributes.get("hidden_size")
    direction = node.attributes.get("direction")
    both = direction is not None and direction.value == b"bidirectional"
    size = hidden.value if hidden is not None and isinstance(hidden.value, int) else None
    seq, batch = x.shape[:2] if x.shape and len(x.shape) == 3 else (None, None)
    state = TensorType(DataType.FLOAT, (1 + both, batch, size))
    whole = TensorType(DataType.FLOAT, (seq, 1 + both, batch, size))
    return tuple((whole, state, state)[: len(node.outputs)])
