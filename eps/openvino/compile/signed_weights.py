"""Stores weights of 4 bits with signs where their zero point is 8.

OpenVINO's front end converts the weights of a MatMulNBits without zero points to u4, less 8. As i4
without a zero point they are the same numbers, and the CPU plug-in's products take 3 to 13 % less
time (2026.4.1, AVX2; docs/adr/measurements/0052.md). A table of an embedding stays as it is: the
plug-in gathers rows of u4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.openvino.sdk.binding import ov

if TYPE_CHECKING:
    import openvino

    from ort_lite.ep import Graph

PRODUCTS = ("MatMulNBits", "QMoE")
MIDDLE = 8
"""The zero point whose subtraction makes a number with a sign of a nibble."""
SIGNS = 0x88
"""The highest bits of both nibbles of a byte, which subtracting 8 changes."""


def has_products(graph: Graph) -> bool:
    """Whether a partition multiplies with weights of few bits."""
    return any(node.op_type in PRODUCTS for node in graph.nodes)


def sign_weights(model: openvino.Model) -> None:
    """Replace, in place, weights of products from which 8 is subtracted."""
    for node in model.get_ops():
        if node.get_type_name() != "Subtract":
            continue
        weights, zero = (_find_nibbles(node.input_value(i)) for i in (0, 1))
        if weights is None or zero is None or not _is_middle(zero):
            continue
        readers = list(node.output(0).get_target_inputs())
        if all(_is_for_product(reader) for reader in readers):
            signed = _make_signed(weights, node.get_element_type())
            for reader in readers:
                reader.replace_source_output(signed)


def _find_nibbles(value: openvino.Output) -> openvino.Constant | None:
    """The constant of u4 that this is converted from; None if it is not."""
    node = value.get_node()
    if node.get_type_name() != "Convert":
        return None
    constant = node.input_value(0).get_node()
    is_constant = constant.get_type_name() == "Constant"
    return constant if is_constant and constant.get_element_type() == ov.Type.u4 else None


def _is_middle(zero: openvino.Constant) -> bool:
    return list(zero.get_vector()) == [MIDDLE]


def _is_for_product(scaling: openvino.Input) -> bool:
    """Whether the input is of a multiplication with scales for the weights of matrix products."""
    scaled = scaling.get_node()
    if scaled.get_type_name() != "Multiply":
        return False
    shaped = [reader.get_node() for reader in scaled.output(0).get_target_inputs()]
    return bool(shaped) and all(
        one.get_type_name() == "Reshape"
        and {reader.get_node().get_type_name() for reader in one.output(0).get_target_inputs()}
        == {"MatMul"}
        for one in shaped
    )


def _make_signed(weights: openvino.Constant, kind: openvino.Type) -> openvino.Output:
    """The weights less 8, as i4 converted to `kind`."""
    from openvino import opset13 as opset  # noqa: PLC0415 - lazy: rare

    tensor = ov.Tensor(ov.Type.i4, ov.Shape(list(weights.shape)))
    nibbles = weights.data.reshape(-1).view(np.uint8)
    np.bitwise_xor(nibbles, np.uint8(SIGNS), out=tensor.data.reshape(-1).view(np.uint8))
    constant = ov.op.Constant(tensor)
    constant.set_friendly_name(weights.get_friendly_name())
    converted: openvino.Output = opset.convert(constant.output(0), kind.to_string()).output(0)
    return converted
