"""Quantised operators agree with onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from parity.against_onnxruntime import agree
from parity.node_cases import NodeCase, normal, whole

U8, I8 = np.uint8, np.int8


def node(name: str, op: str, *inputs, **options):
    return NodeCase(name=name, op=op, inputs=inputs, **options)


def one(value: float, dtype: type = np.float32):
    return np.array(value, dtype)


NARROW = (-64, 64)
"""Signed weights: without VNNI onnxruntime adds two products in 16 bits, saturating."""

QUANTISED = [
    node(
        "tensor",
        "QuantizeLinear",
        normal(64, 300) * np.float32(40),
        one(0.31),
        one(120, U8),
        rtol=0,
    ),
    node(
        "halves",
        "QuantizeLinear",
        np.arange(-20, 20, dtype=np.float32) / 2,
        one(1),
        one(3, I8),
        rtol=0,
    ),
    node(
        "axis",
        "QuantizeLinear",
        normal(2, 8, 30) * np.float32(9),
        np.abs(normal(8)) + np.float32(0.05),
        whole(-9, 9, 8, dtype=I8),
        rtol=0,
    ),
    node("no zero", "QuantizeLinear", normal(50) * np.float32(99), one(0.5), rtol=0),
    node(
        "blocked",
        "QuantizeLinear",
        normal(4, 12) * np.float32(9),
        np.abs(normal(4, 3)) + np.float32(0.1),
        whole(0, 9, 4, 3, dtype=U8),
        attributes={"axis": 1, "block_size": 4},
        opset=21,
        rtol=0,
    ),
    node(
        "int16",
        "QuantizeLinear",
        normal(50) * np.float32(999),
        one(0.5),
        one(7, np.int16),
        opset=21,
        rtol=0,
    ),
    node(
        "tensor",
        "DequantizeLinear",
        whole(0, 255, 64, 300, dtype=U8),
        one(0.31),
        one(120, U8),
        rtol=0,
    ),
    node(
        "axis",
        "DequantizeLinear",
        whole(-128, 127, 8, 30, dtype=I8),
        np.abs(normal(8)),
        whole(-9, 9, 8, dtype=I8),
        attributes={"axis": 0},
        rtol=0,
    ),
    node("int32", "DequantizeLinear", whole(-99999, 99999, 50, dtype=np.int32), one(0.003), rtol=0),
    node(
        "blocked",
        "DequantizeLinear",
        whole(0, 255, 4, 12, dtype=U8),
        np.abs(normal(4, 3)),
        whole(0, 9, 4, 3, dtype=U8),
        attributes={"axis": 1, "block_size": 4},
        opset=21,
        rtol=0,
    ),
    node(
        "10",
        "DequantizeLinear",
        whole(0, 255, 50, dtype=U8),
        one(0.31),
        one(120, U8),
        opset=10,
        rtol=0,
    ),
    node("plain", "DynamicQuantizeLinear", normal(64, 100), outputs=3, rtol=0),
    node("positive", "DynamicQuantizeLinear", np.abs(normal(64, 100)), outputs=3, rtol=0),
    node("zeros", "DynamicQuantizeLinear", np.zeros((3, 4), np.float32), outputs=3, rtol=0),
    node(
        "u8 u8",
        "MatMulInteger",
        whole(0, 255, 64, 256, dtype=U8),
        whole(0, 255, 256, 96, dtype=U8),
        one(128, U8),
        one(3, U8),
        constants=[1, 3],
        rtol=0,
    ),
    node(
        "u8 i8",
        "MatMulInteger",
        whole(0, 255, 2, 8, 70, dtype=U8),
        whole(*NARROW, 70, 9, dtype=I8),
        one(128, U8),
        rtol=0,
    ),
    node(
        "columns",
        "MatMulInteger",
        whole(0, 255, 8, 70, dtype=U8),
        whole(*NARROW, 70, 9, dtype=I8),
        one(7, U8),
        whole(-9, 9, 9, dtype=I8),
        rtol=0,
    ),
    node(
        "deep",
        "MatMulInteger",
        whole(200, 255, 4, 4000, dtype=U8),
        whole(-64, -30, 4000, 5, dtype=I8),
        rtol=0,
    ),
    node(
        "u8",
        "QLinearMatMul",
        whole(0, 255, 64, 200, dtype=U8),
        one(0.02),
        one(120, U8),
        whole(0, 255, 200, 33, dtype=U8),
        one(0.01),
        one(127, U8),
        one(0.3),
        one(100, U8),
        rtol=0,
    ),
    node(
        "columns",
        "QLinearMatMul",
        whole(0, 255, 6, 20, dtype=U8),
        one(0.02),
        one(120, U8),
        whole(*NARROW, 20, 3, dtype=I8),
        np.array([0.01, 0.02, 0.03], np.float32),
        np.zeros(3, I8),
        one(0.3),
        one(100, U8),
        rtol=0,
    ),
    node(
        "u8",
        "ConvInteger",
        whole(0, 255, 1, 8, 14, 14, dtype=U8),
        whole(0, 255, 6, 8, 3, 3, dtype=U8),
        one(128, U8),
        one(120, U8),
        attributes={"pads": [1, 1, 1, 1]},
        rtol=0,
    ),
    node(
        "per channel",
        "QLinearConv",
        whole(0, 255, 1, 16, 28, 28, dtype=U8),
        one(0.02),
        one(110, U8),
        whole(*NARROW, 8, 16, 3, 3, dtype=I8),
        np.abs(normal(8)) * np.float32(0.01) + np.float32(1e-3),
        np.zeros(8, I8),
        one(0.4),
        one(128, U8),
        whole(-999, 999, 8, dtype=np.int32),
        attributes={"pads": [1, 1, 1, 1]},
        constants=[1, 2, 3, 4, 5, 6, 7, 8],
        rtol=0,
    ),
    node(
        "depthwise",
        "QLinearConv",
        whole(0, 255, 1, 16, 9, 9, dtype=U8),
        one(0.02),
        one(110, U8),
        whole(0, 255, 16, 1, 3, 3, dtype=U8),
        one(0.01),
        one(128, U8),
        one(0.1),
        one(128, U8),
        attributes={"group": 16, "strides": [2, 2]},
        rtol=0,
    ),
]


@pytest.mark.parametrize("case", QUANTISED, ids=lambda c: f"{c.op} {c.name}")
def test_a_node_agrees_with_onnxruntime(case: NodeCase) -> None:
    agree(case)
