"""Chains of products and convolutions of 8-bit integers, as onnxruntime's quantiser writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

ZERO = np.array(128, np.uint8)
SCALE = np.array(0.02, np.float32)


def quantise_chain(
    kind: str, weights: Sequence[Array], pads: Sequence[int]
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Nodes from x0 on, each between DequantizeLinear and QuantizeLinear, and their constants.

    Activations are uint8, weights int8 with a scale for each output channel, the first axis of
    a convolution's weights and the last of a product's.
    """
    axis = 0 if kind == "Conv" else 1
    constants = [numpy_helper.from_array(SCALE, "scale"), numpy_helper.from_array(ZERO, "zero")]
    nodes = _to_integers("x0", "x0")
    for i, weight in enumerate(weights):
        others = tuple(a for a in range(weight.ndim) if a != axis)
        scale = np.abs(weight).max(axis=others, keepdims=True) / np.float32(127)
        held = np.rint(weight / scale).astype(np.int8)
        names = [f"w{i}", f"w{i}.scale", f"w{i}.zero"]
        values = held, scale.reshape(-1), np.zeros(scale.size, np.int8)
        constants += [numpy_helper.from_array(v, n) for v, n in zip(values, names, strict=True)]
        nodes += [
            helper.make_node("DequantizeLinear", names, [f"{names[0]}.float"], axis=axis),
            helper.make_node(kind, [f"x{i}.float", f"{names[0]}.float"], [f"y{i}"]),
            *_to_integers(f"y{i}", f"x{i + 1}"),
        ]
    for node in nodes if pads else ():
        if node.op_type == kind:
            node.attribute.append(helper.make_attribute("pads", pads))
    return nodes, constants


def _to_integers(value: str, name: str) -> list[onnx.NodeProto]:
    """Quantised, and what that stands for as `name`.float."""
    steps = ["scale", "zero"]
    return [
        helper.make_node("QuantizeLinear", [value, *steps], [f"{name}.integers"]),
        helper.make_node("DequantizeLinear", [f"{name}.integers", *steps], [f"{name}.float"]),
    ]
