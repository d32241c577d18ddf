"""Recorded cases: operators on one element at a time."""

from __future__ import annotations

import numpy as np
from parity.realistic.case import RecordedCase, node
from parity.realistic.drawn import bits, floats, normal, one, uniform, whole

IMAGE = (1, 32, 56, 56)
HIDDEN = (1, 128, 768)


def _unary() -> list[RecordedCase]:
    anywhere = normal(*IMAGE, scale=2)
    positive = uniform(0.05, 6, *IMAGE)
    inside = uniform(-0.99, 0.99, *IMAGE)
    cases = [
        *(node(op, anywhere) for op in ("Sigmoid", "Tanh", "Softplus", "Erf", "Sinh", "Cosh")),
        *(node(op, anywhere) for op in ("Sin", "Cos", "Asinh", "Exp", "Elu", "Selu", "Celu")),
        *(node(op, anywhere, rtol=0) for op in ("Abs", "Neg", "Floor", "Ceil", "Round", "Sign")),
        *(node(op, anywhere, rtol=0) for op in ("Relu", "IsNaN", "LeakyRelu")),
        *(node(op, positive) for op in ("Sqrt", "Log", "Reciprocal")),
        *(node(op, inside) for op in ("Asin", "Acos", "Atan", "Atanh", "Tan")),
        *(node(op, anywhere) for op in ("HardSigmoid", "HardSwish", "Mish", "Softsign")),
        node("ThresholdedRelu", anywhere, rtol=0),
        node("Acosh", uniform(1, 9, *IMAGE)),
        node("Shrink", anywhere, lambd=0.7, bias=0.1),
        node("Gelu", normal(*HIDDEN)),
        node("Gelu", normal(*HIDDEN), what="tanh", approximate="tanh"),
        node("Swish", normal(*HIDDEN), opset=24, alpha=1.5),
        node("IsInf", np.array([np.inf, -np.inf, 1, np.nan], np.float32), detect_negative=0),
        node("Not", bits(64, 1000)),
        node("BitwiseNot", whole(-(2**31), 2**31, 64, 1000, dtype=np.int32)),
        node("Identity", anywhere, rtol=0),
        node("Clip", anywhere, one(-0.5), one(1.25), rtol=0),
        node("Clip", anywhere, what="attributes", opset=6, min=-0.5, max=1.25, rtol=0),
        node("Relu", anywhere, what="old", opset=6, rtol=0),
    ]
    return [*cases, *_unary_types()]


def _unary_types() -> list[RecordedCase]:
    double = normal(40, 500, dtype=np.float64)
    half = normal(40, 500, dtype=np.float16)
    return [
        *(node(op, double, what="float64", rtol=1e-12) for op in ("Exp", "Tanh", "Sigmoid")),
        *(node(op, half, what="float16", rtol=1e-3) for op in ("Relu", "Sigmoid", "Tanh", "Exp")),
        *(
            node(op, whole(-99, 99, 40, 500, dtype=np.int32), what="int32")
            for op in ("Abs", "Neg", "Relu", "Sign")
        ),
        node("Sqrt", np.array([-1.0, 0, np.inf, np.nan], np.float32), what="unusual"),
        node("Log", np.array([-1.0, 0, np.inf, np.nan], np.float32), what="unusual"),
        node(
            "Round", floats(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, np.nan, np.inf), what="halves", rtol=0
        ),
    ]


def _binary() -> list[RecordedCase]:
    a, b = normal(*IMAGE), normal(*IMAGE)
    row = normal(56)
    channel = normal(32, 1, 1)
    cases = []
    for op in ("Add", "Sub", "Mul", "Div"):
        cases += [
            node(op, a, b, rtol=0),
            node(op, a, row, what="row", rtol=0),
            node(op, channel, a, what="channel", rtol=0),
            node(op, whole(-9999, 9999, 64, 500), whole(1, 99, 64, 500), what="int64"),
            node(
                op,
                normal(8, 300, dtype=np.float64),
                normal(300, dtype=np.float64),
                what="float64",
                rtol=0,
            ),
        ]
    for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        cases += [
            node(op, whole(0, 9, 64, 500, dtype=np.int32), whole(0, 9, 500, dtype=np.int32)),
            node(op, a, row, what="float"),
        ]
    for op in ("And", "Or", "Xor"):
        cases.append(node(op, bits(1, 12, 128, 128), bits(1, 1, 128, 128)))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        cases.append(
            node(op, whole(0, 2**16, 64, 500, dtype=np.int32), whole(0, 2**16, 500, dtype=np.int32))
        )
    for op in ("Max", "Min", "Sum", "Mean"):
        cases.append(node(op, a, channel, b, rtol=0 if op in ("Max", "Min") else 2e-6))
    return cases


def _powers() -> list[RecordedCase]:
    return [
        node("Pow", uniform(0.1, 3, *HIDDEN), one(2), what="squares"),
        node("Pow", uniform(0.1, 3, *HIDDEN), uniform(-2, 2, 768), rtol=4e-6),
        node("Pow", whole(1, 9, 500), whole(0, 9, 500), what="int64"),
        node("Pow", whole(1, 9, 500, dtype=np.int32), uniform(0, 3, 500), what="mixed"),
        node("Mod", whole(-99, 99, 64, 500), whole(1, 9, 500), what="sign of the divisor"),
        node("Mod", whole(-99, 99, 64, 500), whole(1, 9, 500), what="fmod int", fmod=1),
        node("Mod", normal(64, 500, scale=9), uniform(0.5, 3, 500), what="fmod", fmod=1),
        node("PRelu", normal(*IMAGE), uniform(0, 1, 32, 1, 1), rtol=0),
        node(
            "BitShift",
            whole(0, 2**16, 999, dtype=np.uint32),
            whole(0, 9, 999, dtype=np.uint32),
            direction="LEFT",
        ),
        node(
            "BitShift",
            whole(0, 200, 999, dtype=np.uint8),
            whole(0, 7, 999, dtype=np.uint8),
            what="right",
            direction="RIGHT",
        ),
        node("Where", bits(1, 12, 128, 128), normal(1, 12, 128, 128), one(-1e9), rtol=0),
    ]


def _casts() -> list[RecordedCase]:
    # Doubles to float16 are not here: onnxruntime rounds them twice, by way of float32.
    kinds = {"float": np.float32, "double": np.float64, "int64": np.int64, "uint8": np.uint8}
    targets = {"float16": 10, "int32": 6, "bool": 9, "double": 11, "float": 1, "int8": 3}
    cases = [
        node("Cast", uniform(0, 100, 64, 500, dtype=dtype), what=f"{name} to {to}", to=number)
        for name, dtype in kinds.items()
        for to, number in targets.items()
        if (name, to) != ("double", "float16")
    ]
    return [
        *(RecordedCase(**{**_fields(case), "rtol": 0}) for case in cases),
        node("Cast", floats(1.5, -2.25, 1e10, np.inf, 0.1), what="to text", to=8),
        node("CastLike", uniform(0, 100, 64, 500), whole(0, 9, 1, dtype=np.int32)),
        node("BitCast", normal(64, 500), opset=26, to=6),
    ]


def _fields(case: RecordedCase) -> dict[str, object]:
    return {name: getattr(case, name) for name in RecordedCase.__slots__}


CASES = (*_unary(), *_binary(), *_powers(), *_casts())
