"""Convolutions, pools, matrix products and normalisations agree with onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from parity.against_onnxruntime import agree
from parity.node_cases import NodeCase, normal


def conv(name: str, x: tuple[int, ...], w: tuple[int, ...], *, bias: bool = True, **attributes):
    inputs = [normal(*x), normal(*w, seed=1) / np.float32(np.sqrt(np.prod(w[1:])))]
    if bias:
        inputs.append(normal(w[0], seed=2))
    return NodeCase(
        name=name,
        op="Conv",
        inputs=inputs,
        attributes=attributes,
        constants=range(1, len(inputs)),
        rtol=3e-6,
    )


def with_infinities(case: NodeCase) -> NodeCase:
    x = case.inputs[0]
    assert x is not None
    x[..., 0, 5], x[..., -1, 9] = np.inf, np.nan
    return case


def pool(name: str, op: str, x: tuple[int, ...], outputs: int = 1, opset: int = 17, **attributes):
    return NodeCase(
        name=name, op=op, inputs=[normal(*x)], attributes=attributes, outputs=outputs, opset=opset
    )


CONVOLUTIONS = [
    conv("3x3", (1, 64, 56, 56), (64, 64, 3, 3), pads=[1, 1, 1, 1]),
    conv("batch", (3, 16, 33, 31), (24, 16, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2]),
    conv("stem", (1, 3, 224, 224), (32, 3, 7, 7), pads=[3, 3, 3, 3], strides=[2, 2]),
    conv("large columns", (1, 48, 150, 150), (16, 48, 3, 3)),
    conv("1x1", (1, 256, 28, 28), (64, 256, 1, 1)),
    conv("1x1 strided", (2, 32, 29, 29), (64, 32, 1, 1), strides=[2, 2]),
    conv("1x1 padded", (1, 8, 9, 9), (4, 8, 1, 1), pads=[1, 0, 2, 1], strides=[3, 2]),
    conv("no bias", (1, 16, 20, 20), (16, 16, 3, 3), bias=False),
    conv("depthwise", (1, 96, 56, 56), (96, 1, 3, 3), pads=[1, 1, 1, 1], group=96),
    conv("depthwise small", (1, 192, 14, 14), (192, 1, 3, 3), pads=[1] * 4, group=192),
    conv("depthwise 5x5", (2, 40, 28, 28), (40, 1, 5, 5), pads=[2] * 4, group=40, strides=[2, 2]),
    conv("depthwise uneven", (1, 8, 13, 11), (8, 1, 3, 5), pads=[0, 1, 2, 3], group=8),
    conv("depthwise few rows", (2, 24, 3, 96), (24, 1, 5, 5), pads=[2] * 4, group=24),
    conv("depthwise one row", (1, 24, 1, 40), (24, 1, 3, 3), pads=[1] * 4, group=24),
    conv(
        "depthwise few rows strided",
        (1, 24, 6, 33),
        (24, 1, 5, 3),
        pads=[2, 0, 1, 2],
        group=24,
        strides=[2, 3],
    ),
    conv(
        "depthwise few rows dilated",
        (1, 8, 6, 50),
        (8, 1, 3, 3),
        pads=[2, 1, 2, 4],
        group=8,
        dilations=[2, 3],
    ),
    conv("depthwise few rows even", (1, 8, 7, 21), (8, 1, 2, 4), auto_pad="SAME_LOWER", group=8),
    with_infinities(
        conv("depthwise infinite rows", (1, 8, 4, 40), (8, 1, 3, 3), pads=[1] * 4, group=8)
    ),
    conv("depthwise multiplied", (1, 16, 14, 14), (32, 1, 3, 3), pads=[1] * 4, group=16),
    conv("grouped", (2, 64, 14, 14), (64, 2, 3, 3), pads=[1] * 4, group=32),
    conv("dilated", (1, 32, 28, 28), (32, 32, 3, 3), pads=[2] * 4, dilations=[2, 2]),
    conv("same upper", (1, 8, 15, 15), (8, 8, 4, 4), auto_pad="SAME_UPPER", strides=[2, 2]),
    conv("same lower", (1, 8, 15, 15), (8, 8, 4, 4), auto_pad="SAME_LOWER", strides=[2, 2]),
    conv("valid", (1, 8, 15, 15), (8, 8, 4, 4), auto_pad="VALID"),
    conv("1d", (1, 80, 300), (96, 80, 3), pads=[1, 1]),
    conv("1d strided", (2, 16, 101), (16, 4, 5), pads=[2, 2], strides=[2], group=4),
    conv("3d", (1, 8, 9, 20, 20), (8, 8, 3, 3, 3), pads=[1] * 6),
    conv("3d strided", (1, 4, 8, 16, 16), (8, 4, 2, 3, 3), strides=[2, 2, 1]),
]


def transposed(name: str, x: tuple[int, ...], w: tuple[int, ...], **attributes):
    filters = w[1] * attributes.get("group", 1)
    return NodeCase(
        name=name,
        op="ConvTranspose",
        inputs=[normal(*x), normal(*w, seed=1) / np.float32(8), normal(filters, seed=2)],
        attributes=attributes,
        rtol=3e-6,
    )


TRANSPOSED = [
    transposed("2x2 s2", (1, 64, 28, 28), (64, 32, 2, 2), strides=[2, 2]),
    transposed("4x4 s2", (2, 32, 14, 14), (32, 16, 4, 4), strides=[2, 2], pads=[1] * 4),
    transposed(
        "output padding",
        (1, 16, 9, 9),
        (16, 8, 3, 3),
        strides=[2, 2],
        pads=[1] * 4,
        output_padding=[1, 1],
    ),
    transposed("grouped", (1, 16, 9, 9), (16, 4, 3, 3), group=4),
    transposed("dilated", (1, 8, 9, 9), (8, 4, 3, 3), dilations=[2, 3]),
    transposed("same upper", (1, 8, 9, 9), (8, 4, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
    transposed("same lower", (1, 8, 9, 9), (8, 4, 3, 3), strides=[2, 2], auto_pad="SAME_LOWER"),
    transposed("output shape", (1, 8, 9, 9), (8, 4, 3, 3), strides=[3, 3], output_shape=[27, 25]),
    transposed("1d", (1, 16, 50), (16, 8, 4), strides=[2], pads=[1, 1]),
    transposed("3d", (1, 4, 5, 6, 7), (4, 2, 2, 3, 2), strides=[2, 1, 2]),
]

POOLS = [
    pool(
        "max 3x3 s2",
        "MaxPool",
        (1, 64, 112, 112),
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1] * 4,
    ),
    pool("max ceil", "MaxPool", (1, 16, 55, 55), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    pool("max dilated", "MaxPool", (1, 8, 32, 32), kernel_shape=[3, 3], dilations=[2, 2]),
    pool(
        "max indices",
        "MaxPool",
        (2, 8, 20, 20),
        outputs=2,
        kernel_shape=[2, 3],
        strides=[2, 2],
        pads=[0, 1, 1, 1],
    ),
    pool(
        "max column major",
        "MaxPool",
        (2, 3, 12, 10),
        outputs=2,
        kernel_shape=[2, 2],
        strides=[2, 2],
        storage_order=1,
    ),
    pool(
        "max same",
        "MaxPool",
        (1, 8, 15, 15),
        kernel_shape=[2, 2],
        strides=[2, 2],
        auto_pad="SAME_UPPER",
    ),
    pool("max 1d", "MaxPool", (2, 8, 101), kernel_shape=[4], strides=[3], pads=[1, 2]),
    pool("max 3d", "MaxPool", (1, 4, 9, 10, 11), kernel_shape=[2, 3, 2], strides=[2, 1, 2]),
    pool("average", "AveragePool", (1, 64, 56, 56), kernel_shape=[3, 3], pads=[1] * 4),
    pool(
        "average with padding",
        "AveragePool",
        (1, 8, 20, 20),
        kernel_shape=[3, 3],
        pads=[1] * 4,
        strides=[2, 2],
        count_include_pad=1,
    ),
    pool(
        "average same lower",
        "AveragePool",
        (1, 8, 15, 15),
        kernel_shape=[4, 4],
        strides=[2, 2],
        auto_pad="SAME_LOWER",
    ),
    pool(
        "average ceil",
        "AveragePool",
        (1, 8, 14, 14),
        opset=19,
        kernel_shape=[3, 3],
        strides=[2, 2],
        ceil_mode=1,
    ),
    pool("average 3d", "AveragePool", (1, 4, 8, 9, 10), kernel_shape=[2, 2, 3]),
    pool("lp", "LpPool", (1, 8, 20, 20), kernel_shape=[3, 3], p=3, strides=[2, 2]),
    pool("lp2", "LpPool", (1, 8, 20, 20), kernel_shape=[2, 2], p=2),
    pool("global average", "GlobalAveragePool", (2, 256, 7, 7)),
    pool("global max", "GlobalMaxPool", (2, 64, 9, 7)),
    pool("global lp", "GlobalLpPool", (2, 64, 9, 7), p=2),
]


def node(name: str, op: str, *inputs, **options):
    return NodeCase(name=name, op=op, inputs=inputs, **options)


PRODUCTS = [
    node("2d", "MatMul", normal(128, 384), normal(384, 512, seed=1), constants=[1], rtol=1e-5),
    node("batch by matrix", "MatMul", normal(4, 33, 96), normal(96, 40, seed=1), rtol=1e-5),
    node("batches", "MatMul", normal(2, 12, 64, 32), normal(2, 12, 32, 64, seed=1), rtol=1e-5),
    node("broadcast", "MatMul", normal(3, 1, 8, 16), normal(5, 16, 4, seed=1), rtol=1e-5),
    node("vector", "MatMul", normal(5, 7), normal(7, seed=1)),
    node("vectors", "MatMul", normal(7), normal(7, seed=1)),
    node("vector batch", "MatMul", normal(7), normal(3, 7, 4, seed=1)),
    node("double", "MatMul", normal(20, 30, dtype=np.float64), normal(30, 9, dtype=np.float64)),
    node(
        "half",
        "MatMul",
        normal(64, 64, dtype=np.float16),
        normal(64, 32, dtype=np.float16),
        rtol=2e-3,
    ),
    node(
        "int32",
        "MatMul",
        np.arange(12, dtype=np.int32).reshape(3, 4),
        np.arange(20, dtype=np.int32).reshape(4, 5),
    ),
    node("empty depth", "MatMul", np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32)),
    node(
        "gemm",
        "Gemm",
        normal(16, 2048),
        normal(100, 2048, seed=1),
        normal(100, seed=2),
        attributes={"transB": 1},
        rtol=1e-5,
    ),
    node(
        "gemm scaled",
        "Gemm",
        normal(20, 16),
        normal(20, 30, seed=1),
        normal(16, 1, seed=2),
        attributes={"transA": 1, "alpha": 0.5, "beta": 2.0},
        rtol=1e-5,
    ),
    node("gemm no c", "Gemm", normal(4, 5), normal(5, 6, seed=1)),
    node("gemm scalar c", "Gemm", normal(4, 5), normal(5, 6, seed=1), np.array(3, np.float32)),
    node(
        "einsum attention",
        "Einsum",
        normal(2, 4, 16, 8),
        normal(2, 4, 24, 8, seed=1),
        attributes={"equation": "bhid,bhjd->bhij"},
        rtol=1e-5,
    ),
    node(
        "einsum implicit",
        "Einsum",
        normal(5, 6),
        normal(6, 7, seed=1),
        attributes={"equation": "ij,jk"},
        rtol=1e-5,
    ),
    node(
        "einsum ellipsis",
        "Einsum",
        normal(3, 4, 5),
        normal(5, 2, seed=1),
        attributes={"equation": "...i,ij->...j"},
        rtol=1e-5,
    ),
    node("einsum diagonal", "Einsum", normal(6, 6), attributes={"equation": "ii->i"}),
    node(
        "einsum three",
        "Einsum",
        normal(3, 4),
        normal(4, 5, seed=1),
        normal(5, 6, seed=2),
        attributes={"equation": "ab,bc,cd->ad"},
        rtol=1e-5,
    ),
    node("det", "Det", normal(5, 4, 4), rtol=1e-5),
]

POSITIVE = np.abs(normal(64, seed=4)) + np.float32(0.5)
NORMALISATIONS = [
    node(
        "layer",
        "LayerNormalization",
        normal(2, 128, 384),
        normal(384, seed=1),
        normal(384, seed=2),
        rtol=1e-5,
    ),
    node(
        "layer axis 1",
        "LayerNormalization",
        normal(3, 5, 7),
        normal(5, 7, seed=1),
        attributes={"axis": 1, "epsilon": 1e-3},
        outputs=3,
        rtol=1e-5,
    ),
    node(
        "layer half",
        "LayerNormalization",
        normal(8, 64, dtype=np.float16),
        normal(64, dtype=np.float16),
        normal(64, dtype=np.float16, seed=2),
        rtol=2e-3,
    ),
    node(
        "batch",
        "BatchNormalization",
        normal(2, 64, 20, 20),
        normal(64, seed=1),
        normal(64, seed=2),
        normal(64, seed=3),
        POSITIVE,
        rtol=1e-5,
    ),
    node(
        "batch constant",
        "BatchNormalization",
        normal(2, 64, 20, 20),
        normal(64, seed=1),
        normal(64, seed=2),
        normal(64, seed=3),
        POSITIVE,
        constants=[1, 2, 3, 4],
        rtol=1e-5,
    ),
    node(
        "batch in training with constant statistics",
        "BatchNormalization",
        normal(4, 8, 5, 5),
        normal(8, seed=1),
        normal(8, seed=2),
        normal(8, seed=3),
        POSITIVE[:8],
        constants=[1, 2, 3, 4],
        outputs=3,
        attributes={"training_mode": 1},
        rtol=1e-5,
    ),
    node(
        "batch 2d",
        "BatchNormalization",
        normal(30, 64),
        normal(64, seed=1),
        normal(64, seed=2),
        normal(64, seed=3),
        POSITIVE,
        rtol=1e-5,
    ),
    node(
        "instance",
        "InstanceNormalization",
        normal(2, 64, 28, 28),
        normal(64, seed=1),
        normal(64, seed=2),
        rtol=1e-5,
    ),
    node(
        "instance 1d",
        "InstanceNormalization",
        normal(2, 64, 50),
        normal(64, seed=1),
        normal(64, seed=2),
        rtol=1e-5,
    ),
    node(
        "group",
        "GroupNormalization",
        normal(2, 64, 9, 9),
        normal(64, seed=1),
        normal(64, seed=2),
        attributes={"num_groups": 8},
        opset=21,
        rtol=1e-5,
    ),
    node("lrn", "LRN", normal(1, 64, 27, 27), attributes={"size": 5, "alpha": 1e-2}, rtol=1e-5),
    node("lp 2", "LpNormalization", normal(4, 5, 6), attributes={"axis": 1, "p": 2}),
    node("lp 1", "LpNormalization", normal(4, 5, 6), attributes={"axis": -1, "p": 1}),
    node("mean variance", "MeanVarianceNormalization", normal(2, 5, 8, 8), rtol=1e-5),
    node("softmax", "Softmax", normal(12, 128, 128), rtol=1e-5),
    node("softmax axis 1", "Softmax", normal(2, 21, 16, 16), attributes={"axis": 1}, rtol=1e-5),
    node(
        "softmax infinite",
        "Softmax",
        np.array([[-np.inf, 0, 1], [5, -np.inf, -np.inf]], np.float32),
    ),
    node("softmax empty", "Softmax", np.zeros((0, 4), np.float32)),
    node("log softmax", "LogSoftmax", normal(40, 1000) * np.float32(20), rtol=1e-5),
    node("hardmax", "Hardmax", normal(6, 9), attributes={"axis": 0}, rtol=0),
]


@pytest.mark.parametrize(
    "case",
    [*CONVOLUTIONS, *TRANSPOSED, *POOLS, *PRODUCTS, *NORMALISATIONS],
    ids=lambda c: f"{c.op} {c.name}",
)
def test_a_node_agrees_with_onnxruntime(case: NodeCase) -> None:
    agree(case)
