"""Recorded cases: convolutions, pools, products and normalisations."""

from __future__ import annotations

import numpy as np
from parity.realistic.case import RecordedCase, node
from parity.realistic.drawn import ints, normal, one, uniform, whole


def _convolutions() -> list[RecordedCase]:
    cases = []
    for what, x, w, attributes in (
        ("3x3", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [1] * 4}),
        ("stem", (1, 3, 224, 224), (32, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
        ("1x1", (1, 256, 28, 28), (64, 256, 1, 1), {}),
        ("depthwise", (1, 96, 56, 56), (96, 1, 3, 3), {"pads": [1] * 4, "group": 96}),
        ("grouped", (2, 64, 14, 14), (64, 2, 3, 3), {"pads": [1] * 4, "group": 32}),
        ("dilated", (1, 32, 28, 28), (32, 32, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
        ("one axis", (1, 80, 300), (96, 80, 3), {"pads": [1, 1]}),
        ("three axes", (1, 8, 9, 20, 20), (8, 8, 3, 3, 3), {"pads": [1] * 6}),
        ("same", (1, 8, 31, 31), (8, 8, 4, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ):
        weights = normal(*w, scale=float(np.prod(w[1:])) ** -0.5)
        inputs = (normal(*x), weights, normal(w[0]))
        cases.append(node("Conv", *inputs, what=what, constants=(1, 2), rtol=4e-6, **attributes))
    return [*cases, *_other_convolutions()]


def _other_convolutions() -> list[RecordedCase]:
    u8, i8 = np.uint8, np.int8
    return [
        node(
            "ConvTranspose",
            normal(1, 64, 28, 28),
            normal(64, 32, 2, 2, scale=0.1),
            normal(32),
            strides=[2, 2],
            rtol=4e-6,
        ),
        node(
            "ConvTranspose",
            normal(1, 16, 20, 20),
            normal(16, 8, 4, 4, scale=0.1),
            what="padded",
            strides=[2, 2],
            pads=[1] * 4,
            output_padding=[1, 1],
            rtol=4e-6,
        ),
        node(
            "ConvTranspose",
            normal(1, 16, 20, 20),
            normal(16, 2, 3, 3, scale=0.1),
            what="grouped",
            group=4,
            dilations=[2, 2],
            rtol=4e-6,
        ),
        node(
            "DeformConv",
            normal(1, 8, 20, 20),
            normal(8, 8, 3, 3, scale=0.1),
            normal(1, 18, 18, 18),
            opset=22,
            rtol=1e-5,
        ),
        node(
            "ConvInteger",
            whole(0, 255, 1, 16, 28, 28, dtype=u8),
            whole(-64, 64, 24, 16, 3, 3, dtype=i8),
            one(128, u8),
            pads=[1] * 4,
        ),
        node("Col2Im", normal(1, 27, 676), ints(28, 28), ints(3, 3)),
    ]


def _pools() -> list[RecordedCase]:
    image = normal(1, 64, 56, 56)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    return [
        node("MaxPool", image, rtol=0, **window),
        node("MaxPool", image, what="places", outputs=2, rtol=0, **window),
        node(
            "MaxPool", image, what="ceil", rtol=0, ceil_mode=1, kernel_shape=[3, 3], strides=[2, 2]
        ),
        node("MaxPool", image, what="dilated", rtol=0, kernel_shape=[2, 2], dilations=[3, 3]),
        node(
            "MaxPool", whole(-99, 99, 1, 8, 30, 30, dtype=np.int8), what="int8", kernel_shape=[2, 2]
        ),
        node("AveragePool", image, **window),
        node("AveragePool", image, what="padding counts", count_include_pad=1, **window),
        node("AveragePool", normal(1, 8, 400), what="one axis", kernel_shape=[5], strides=[2]),
        node(
            "AveragePool",
            image,
            what="dilated ceil",
            kernel_shape=[3, 3],
            dilations=[2, 2],
            strides=[2, 2],
            ceil_mode=1,
        ),
        node("LpPool", image, p=2, kernel_shape=[3, 3], strides=[2, 2]),
        node("GlobalAveragePool", normal(1, 512, 14, 14)),
        node("GlobalMaxPool", normal(1, 512, 14, 14), rtol=0),
        node("GlobalLpPool", normal(1, 64, 14, 14)),
        node(
            "MaxUnpool",
            normal(1, 4, 14, 14),
            _unpool_places(),
            kernel_shape=[2, 2],
            strides=[2, 2],
            rtol=0,
        ),
        node(
            "MaxRoiPool",
            normal(1, 16, 28, 28),
            np.array([[0, 1, 1, 13, 20], [0, 4, 0, 27, 9]], np.float32),
            pooled_shape=[7, 7],
            rtol=0,
        ),
        node(
            "RoiAlign",
            normal(1, 16, 28, 28),
            np.array([[1, 1, 13, 20], [4, 0, 27, 9]], np.float32),
            ints(0, 0),
            opset=16,
            output_height=7,
            output_width=7,
            sampling_ratio=2,
        ),
        node(
            "RoiAlign",
            normal(1, 16, 28, 28),
            np.array([[1, 1, 13, 20], [4, 0, 27, 9]], np.float32),
            ints(0, 0),
            what="old max",
            opset=10,
            mode="max",
            output_height=5,
            output_width=5,
            spatial_scale=0.5,
        ),
    ]


def _unpool_places() -> np.ndarray:
    rows, columns = np.divmod(np.arange(14 * 14), 14)
    plane = (2 * rows) * 28 + 2 * columns + (rows + columns) % 2
    return (plane + np.arange(4)[:, None] * 28 * 28).reshape(1, 4, 14, 14).astype(np.int64)


def _products() -> list[RecordedCase]:
    u8, i8 = np.uint8, np.int8
    return [
        node("MatMul", normal(384, 384), normal(384, 384), rtol=4e-6),
        node("MatMul", normal(12, 128, 64), normal(12, 64, 128), what="batched", rtol=4e-6),
        node("MatMul", normal(4, 1, 16, 32), normal(3, 32, 8), what="broadcast", rtol=4e-6),
        node("MatMul", normal(384), normal(384, 50), what="vector", rtol=4e-6),
        node(
            "MatMul",
            normal(60, 60, dtype=np.float64),
            normal(60, 60, dtype=np.float64),
            what="float64",
            rtol=1e-13,
        ),
        node(
            "MatMul",
            whole(-99, 99, 40, 50, dtype=np.int32),
            whole(-99, 99, 50, 30, dtype=np.int32),
            what="int32",
        ),
        node(
            "Gemm",
            normal(1, 2048),
            normal(1000, 2048, scale=0.02),
            normal(1000),
            transB=1,
            rtol=4e-6,
        ),
        node(
            "Gemm",
            normal(64, 96),
            normal(64, 32),
            normal(96, 1),
            what="scaled",
            transA=1,
            alpha=0.5,
            beta=2.0,
            rtol=4e-6,
        ),
        node(
            "MatMulInteger",
            whole(0, 255, 128, 384, dtype=u8),
            whole(-64, 64, 384, 256, dtype=i8),
            one(121, u8),
        ),
        node(
            "MatMulInteger",
            whole(0, 255, 64, 96, dtype=u8),
            whole(0, 127, 96, 40, dtype=u8),
            one(121, u8),
            whole(0, 99, 40, dtype=u8),
            what="columns",
        ),
        node(
            "Einsum",
            normal(1, 12, 64, 32),
            normal(1, 12, 48, 32),
            equation="bhid,bhjd->bhij",
            rtol=4e-6,
        ),
        node("Einsum", normal(6, 7, 7), what="trace", equation="bii->b", rtol=4e-6),
        node("Det", normal(20, 6, 6), rtol=1e-5),
    ]


def _norms() -> list[RecordedCase]:
    image, hidden = normal(2, 32, 28, 28), normal(1, 128, 768)
    scale, bias = uniform(0.5, 2, 32), normal(32)
    row = (uniform(0.5, 2, 768), normal(768))
    statistics = (scale, bias, normal(32), uniform(0.2, 2, 32))
    return [
        node("BatchNormalization", image, *statistics, opset=15),
        node("BatchNormalization", image, *statistics, what="old", opset=9),
        node("InstanceNormalization", image, scale, bias, rtol=1e-5),
        node("GroupNormalization", image, scale, bias, num_groups=8, rtol=1e-5),
        node("LayerNormalization", hidden, *row, axis=-1, outputs=3, rtol=1e-5),
        node(
            "LayerNormalization",
            normal(4, 6, 50),
            uniform(0.5, 2, 6, 50),
            what="two axes",
            axis=1,
            rtol=1e-5,
        ),
        node("RMSNormalization", hidden, row[0], opset=23, rtol=1e-5),
        node(
            "SimplifiedLayerNormalization",
            hidden,
            row[0],
            axis=-1,
            epsilon=1e-5,
            rtol=1e-5,
            opset=17,
        ),
        node("LpNormalization", hidden, p=2, axis=-1, rtol=4e-6),
        node("LpNormalization", hidden, what="1", p=1, axis=1, rtol=4e-6),
        node("MeanVarianceNormalization", image, axes=[0, 2, 3], rtol=1e-5),
        node(
            "LRN",
            normal(1, 64, 28, 28, scale=9),
            size=5,
            alpha=1e-3,
            beta=0.75,
            bias=1.0,
            rtol=4e-6,
        ),
        *(node(op, normal(1, 12, 128, 128, scale=3), axis=-1) for op in ("Softmax", "LogSoftmax")),
        *(node(op, normal(2, 20, 30), what="middle", axis=1) for op in ("Softmax", "LogSoftmax")),
        *(
            node(op, normal(2, 20, 30), what="flattened", opset=11, axis=1)
            for op in ("Softmax", "LogSoftmax")
        ),
        node("Hardmax", normal(64, 1000), axis=-1, rtol=0),
        node("Dropout", hidden, one(0.5), one(0, np.bool_), outputs=2, rtol=0),
    ]


CASES = (*_convolutions(), *_pools(), *_products(), *_norms())
