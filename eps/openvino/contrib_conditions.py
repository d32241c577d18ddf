"""Where OpenVINO computes a com.microsoft operator wrong: as conditions.py, for that domain.

Found by running single operators beside onnxruntime 1.31.1 (OpenVINO 2026.4.1): QLinearMul,
QLinearLeakyRelu, QLinearAveragePool and QLinearWhere wrap instead of saturating,
DynamicQuantizeMatMul and DynamicQuantizeLSTM leave activations unquantised, RotaryEmbedding
and EmbedLayerNormalization lack attribute defaults; none of them is in the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.openvino.node_facts import NodeFacts


def _attention(node: NodeFacts) -> str:
    if node.has_input(3) or node.has_input(4) or node.has_input(5):
        return "a mask, past or bias input is not checked against onnxruntime"
    return ""


def _multi_head(node: NodeFacts) -> str:
    extra = any(node.has_input(i) for i in range(3, 10))
    return "bias, mask or past inputs are not checked against onnxruntime" if extra else ""


CONTRIB_CONDITIONS: Mapping[str, Callable[[NodeFacts], str]] = {
    "Attention": _attention,
    "MultiHeadAttention": _multi_head,
}
