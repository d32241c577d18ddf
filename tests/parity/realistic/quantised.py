"""Recorded cases: quantised operators of ai.onnx and com.microsoft.

Signed weights are of seven bits: without VNNI onnxruntime adds two products in 16 bits.
"""

from __future__ import annotations

import numpy as np
from parity.realistic.case import RecordedCase, node
from parity.realistic.drawn import Drawn, floats, ints, normal, one, uniform, whole

MS = "com.microsoft"
ZERO = one(121, np.uint8)


def u8(*shape: int) -> Drawn:
    return whole(0, 256, *shape, dtype=np.uint8)


def i8(*shape: int) -> Drawn:
    return whole(-64, 64, *shape, dtype=np.int8)


def _types() -> list[RecordedCase]:
    wide = normal(64, 300, scale=40)
    return [
        node("QuantizeLinear", wide, one(0.31), ZERO),
        node(
            "QuantizeLinear",
            normal(2, 8, 300, scale=9),
            uniform(0.05, 1, 8),
            whole(-9, 9, 8, dtype=np.int8),
            what="axis",
        ),
        node(
            "QuantizeLinear",
            normal(4, 96, scale=9),
            uniform(0.1, 1, 4, 3),
            whole(0, 9, 4, 3, dtype=np.uint8),
            what="blocks",
            axis=1,
            block_size=32,
        ),
        node("QuantizeLinear", wide, one(0.031), one(-300, np.int16), what="int16"),
        node("DequantizeLinear", u8(64, 300), one(0.31), ZERO, rtol=0),
        node("DequantizeLinear", i8(8, 300), uniform(0.05, 1, 8), what="axis", axis=0, rtol=0),
        node(
            "DequantizeLinear",
            whole(-999, 999, 300, dtype=np.int32),
            one(0.003),
            what="int32",
            opset=13,
            rtol=0,
        ),
        node("DynamicQuantizeLinear", normal(128, 384, scale=3), outputs=3, opset=11),
        node("QuantizeLinear", wide, one(0.031), one(300, np.uint16), domain=MS),
        node(
            "DequantizeLinear",
            whole(0, 999, 64, 300, dtype=np.uint16),
            one(0.03),
            one(300, np.uint16),
            domain=MS,
            rtol=0,
        ),
    ]


def _dense() -> list[RecordedCase]:
    x, w = u8(1, 32, 28, 28), i8(48, 32, 3, 3)
    bias = whole(-500, 500, 48, dtype=np.int32)
    known = (1, 2, 3, 4, 5, 6, 7, 8)
    conv = (one(0.02), ZERO, w, one(0.01), one(0, np.int8), one(0.3), ZERO, bias)
    last = (u8(1, 28, 28, 32), *conv)
    a, b = u8(64, 384), i8(384, 96)
    return [
        node("QLinearConv", x, *conv, constants=known, pads=[1] * 4, steps=1),
        node(
            "QLinearConv",
            x,
            one(0.02),
            ZERO,
            w,
            uniform(0.005, 0.02, 48),
            whole(0, 1, 48, dtype=np.int8),
            one(0.3),
            ZERO,
            what="channels",
            constants=known[:7],
            steps=1,
        ),
        node(
            "QLinearConv", *last, domain=MS, constants=known, pads=[1] * 4, channels_last=1, steps=1
        ),
        node(
            "QLinearMatMul",
            a,
            one(0.02),
            ZERO,
            b,
            one(0.01),
            one(3, np.int8),
            one(0.3),
            ZERO,
            steps=1,
        ),
        node(
            "QGemm",
            a,
            one(0.02),
            ZERO,
            b,
            one(0.01),
            one(3, np.int8),
            whole(-500, 500, 96, dtype=np.int32),
            one(0.3),
            ZERO,
            domain=MS,
            steps=1,
        ),
        node(
            "QGemm",
            a,
            one(0.02),
            ZERO,
            b,
            uniform(0.005, 0.02, 96),
            whole(0, 1, 96, dtype=np.int8),
            what="float",
            domain=MS,
            constants=(3, 4, 5),
            rtol=1e-5,
        ),
        node(
            "DynamicQuantizeMatMul",
            normal(2, 60, 384),
            b,
            uniform(0.005, 0.02, 96),
            whole(0, 1, 96, dtype=np.int8),
            domain=MS,
            constants=(1, 2, 3),
            rtol=1e-5,
        ),
        node(
            "MatMulIntegerToFloat",
            a,
            b,
            one(0.02),
            one(0.1),
            ZERO,
            one(3, np.int8),
            normal(96),
            domain=MS,
            rtol=1e-5,
        ),
        node(
            "MatMulInteger16",
            whole(-999, 999, 30, 40, dtype=np.int16),
            whole(-99, 99, 40, 50, dtype=np.int16),
            domain=MS,
        ),
        *_few_bits(),
    ]


def _few_bits() -> list[RecordedCase]:
    cases = []
    for bits in (2, 4, 8):
        inputs = (normal(2, 8, 384), u8(96, 12, 32 * bits // 8), uniform(0.01, 0.1, 96, 12))
        options = {"K": 384, "N": 96, "bits": bits, "block_size": 32, "domain": MS}
        cases.append(
            node(
                "MatMulNBits", *inputs, what=f"{bits} bits", constants=(1, 2), rtol=1e-5, **options
            )
        )
    table = (u8(500, 32), whole(0, 500, 2, 30), uniform(0.01, 0.1, 500, 2))
    return [
        *cases,
        node(
            "MatMulBnb4",
            normal(8, 128),
            u8(128 * 40 // 2),
            uniform(0.1, 1, 128 * 40 // 32),
            domain=MS,
            K=128,
            N=40,
            block_size=32,
            quant_type=1,
            constants=(1, 2),
            rtol=1e-5,
        ),
        node(
            "GatherBlockQuantized",
            *table,
            domain=MS,
            bits=4,
            block_size=32,
            quantize_axis=1,
            gather_axis=0,
            constants=(0, 2),
        ),
    ]


def _plain() -> list[RecordedCase]:
    x = u8(1, 16, 28, 28)
    given = (one(0.02), ZERO)
    result = (one(0.03), one(100, np.uint8))
    unit = (one(1 / 256), one(0, np.uint8))
    pool = {"kernel_shape": [3, 3], "pads": [1] * 4}
    cases = [
        node("QLinearAdd", x, *given, u8(16, 1, 1), one(0.05), ZERO, *result),
        # Of 0.02 * 0.05 / 0.03 one product in 30 would be a tie.
        node("QLinearMul", x, *given, u8(16, 1, 1), one(0.0513), ZERO, *result),
        node("QLinearSigmoid", x, *given, *unit),
        node("QLinearLeakyRelu", x, *given, *result, alpha=0.1),
        RecordedCase(
            op="QLinearSoftmax",
            inputs=(u8(64, 300), *given, *unit),
            attributes={"axis": -1, "opset": 13},
        ),
        node("QLinearGlobalAveragePool", x, *given, *result, channels_last=0),
        node("QLinearAveragePool", x, *given, *result, **pool),
        node("QLinearConcat", *result, u8(8, 60), *given, u8(8, 70), one(0.05), ZERO, axis=1),
        node(
            "QLinearWhere",
            whole(0, 2, 60, 70, dtype=np.bool_),
            u8(60, 70),
            *given,
            u8(60, 70),
            one(0.05),
            ZERO,
            *result,
        ),
    ]
    return [
        *(_stepping(case) for case in cases),
        node(
            "NhwcMaxPool",
            u8(1, 28, 28, 16),
            domain=MS,
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[1] * 4,
        ),
    ]


def _stepping(case: RecordedCase) -> RecordedCase:
    return RecordedCase(
        op=case.op,
        inputs=case.inputs,
        attributes=case.attributes,
        domain=MS,
        steps=1,
    )


def _recurrent() -> list[RecordedCase]:
    x = normal(12, 2, 32)
    ways = 2
    weights = (
        i8(ways, 32, 96),
        i8(ways, 24, 96),
        normal(ways, 192, scale=0.1),
        None,
        normal(ways, 2, 24),
        normal(ways, 2, 24),
        None,
    )
    scales = (floats(0.01, 0.02), np.zeros(ways, np.int8)) * 2
    return [
        node(
            "DynamicQuantizeLSTM",
            x,
            *weights,
            *scales,
            domain=MS,
            direction="bidirectional",
            hidden_size=24,
            outputs=3,
            rtol=0.02,
        ),
        node(
            "QAttention",
            u8(2, 40, 64),
            i8(64, 192),
            normal(192, scale=0.3),
            one(0.01),
            one(0.02),
            None,
            ZERO,
            one(3, np.int8),
            domain=MS,
            num_heads=4,
            rtol=1e-5,
        ),
        node(
            "Resize",
            u8(1, 3, 28, 28),
            None,
            None,
            ints(1, 3, 50, 50),
            what="uint8",
            mode="linear",
            steps=1,
        ),
    ]


CASES = (*_types(), *_dense(), *_plain(), *_recurrent())
