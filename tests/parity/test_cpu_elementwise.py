"""Element-wise operators, casts and reductions agree with onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from parity.against_onnxruntime import agree
from parity.node_cases import NodeCase, ints, normal, whole

SPECIAL = np.array([0.0, -0.0, 1e-40, np.inf, -np.inf, np.nan, 88.0, -104.0, 3e38], np.float32)


def node(name: str, op: str, *inputs, **options):
    return NodeCase(name=name, op=op, inputs=inputs, **options)


UNARY = (
    [
        node(kind, op, x, opset=18)
        for op in (
            "Abs",
            "Ceil",
            "Elu",
            "Erf",
            "Exp",
            "Floor",
            "HardSigmoid",
            "LeakyRelu",
            "Neg",
            "Relu",
            "Round",
            "Selu",
            "Sigmoid",
            "Sign",
            "Softplus",
            "Softsign",
            "Tanh",
            "ThresholdedRelu",
            "Celu",
            "IsNaN",
            "IsInf",
            "HardSwish",
            "Mish",
        )
        for kind, x in (("normal", normal(128, 100) * np.float32(3)), ("special", SPECIAL))
        if (op, kind)
        not in {
            ("Mish", "special"),
            ("HardSwish", "special"),
            ("Elu", "special"),
            ("Selu", "special"),
            ("Sign", "special"),
            ("Round", "special"),
            ("Celu", "special"),
            ("HardSigmoid", "special"),
        }
    ]
    + [
        node("normal", op, np.abs(normal(50, 40)) + np.float32(0.1))
        for op in ("Log", "Sqrt", "Reciprocal")
    ]
    + [
        node("normal", op, np.clip(normal(50, 40), -0.99, 0.99).astype(np.float32))
        for op in ("Acos", "Asin", "Atan", "Atanh", "Asinh", "Cos", "Cosh", "Sin", "Sinh", "Tan")
    ]
    + [
        node("plain", "Acosh", np.abs(normal(50, 40)) + np.float32(1)),
        node("halves", "Round", np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32), rtol=0),
        node("double", "Sigmoid", normal(50, dtype=np.float64)),
        node("int", "Abs", whole(-9, 9, 30, dtype=np.int32)),
        node("int8", "Neg", whole(-128, 127, 30, dtype=np.int8)),
        node("int", "Sign", whole(-9, 9, 30)),
        node("half", "Relu", normal(50, dtype=np.float16)),
        node("plain", "Gelu", normal(128, 300) * np.float32(3), opset=20),
        node(
            "tanh",
            "Gelu",
            normal(128, 300) * np.float32(3),
            opset=20,
            attributes={"approximate": "tanh"},
        ),
        node("large alpha", "LeakyRelu", normal(50), attributes={"alpha": 2.0}),
        node("alpha", "HardSigmoid", normal(50), attributes={"alpha": 0.3, "beta": 0.4}),
        node("plain", "Shrink", normal(50), attributes={"lambd": 0.8, "bias": 0.3}),
        node("plain", "PRelu", normal(2, 3, 4), normal(3, 1)),
        node("negative", "IsInf", SPECIAL, attributes={"detect_positive": 0}),
        node("plain", "Clip", normal(50), np.array(-0.5, np.float32), np.array(0.5, np.float32)),
        node("low", "Clip", normal(50), np.array(0.5, np.float32)),
        node("high", "Clip", normal(50), None, np.array(0.5, np.float32)),
        node("int", "Clip", whole(-9, 9, 30), np.array(-3), np.array(3)),
        node("crossed", "Clip", normal(50), np.array(1, np.float32), np.array(-1, np.float32)),
        node("plain", "Not", normal(20) > 0),
        node("plain", "BitwiseNot", whole(0, 200, 20, dtype=np.uint8), opset=18),
    ]
)

I8, U8 = np.int8, np.uint8
BINARY = [
    node("broadcast", op, normal(3, 1, 20), normal(4, 1, seed=1), rtol=1e-6)
    for op in (
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Max",
        "Min",
        "Sum",
        "Mean",
        "Less",
        "Greater",
        "Equal",
        "GreaterOrEqual",
        "LessOrEqual",
    )
] + [
    node("int", "Div", whole(-20, 20, 200), whole(1, 7, 200, dtype=np.int64) - 9),
    node("int32", "Div", whole(-20, 20, 60, dtype=np.int32), whole(1, 7, 60, dtype=np.int32)),
    node("zero", "Div", np.array([1, -1, 0], np.float32), np.zeros(3, np.float32)),
    node("int8 wraps", "Add", np.array([127, -128], I8), np.array([1, -1], I8)),
    node("plain", "Pow", np.abs(normal(40)) + np.float32(0.1), normal(40, seed=1)),
    node("square", "Pow", normal(40), np.array(2, np.float32), constants=[1]),
    node("int exponent", "Pow", normal(40), np.array([3], np.int64)),
    node("int", "Pow", whole(-4, 5, 30), whole(0, 4, 30, dtype=np.int64)),
    node("int float", "Pow", whole(1, 9, 30, dtype=np.int32), np.array(0.5, np.float32)),
    node("half", "Pow", np.abs(normal(40)), np.array(0.5, np.float32), constants=[1]),
    node("int", "Mod", whole(-20, 20, 100), whole(-9, -1, 100)),
    node("fmod int", "Mod", whole(-20, 20, 100), whole(-9, -1, 100), attributes={"fmod": 1}),
    node("fmod", "Mod", normal(100) * np.float32(9), normal(100, seed=1), attributes={"fmod": 1}),
    node(
        "left",
        "BitShift",
        whole(0, 255, 9, dtype=U8),
        whole(0, 7, 9, dtype=U8),
        attributes={"direction": "LEFT"},
    ),
    node(
        "right",
        "BitShift",
        whole(0, 9999, 9, dtype=np.uint32),
        whole(0, 7, 9, dtype=np.uint32),
        attributes={"direction": "RIGHT"},
    ),
    node("plain", "BitwiseXor", whole(0, 99, 9), whole(0, 99, 1), opset=18),
    node("plain", "And", normal(3, 1) > 0, normal(4, seed=1) > 0),
    node("plain", "Xor", normal(3, 1) > 0, normal(4, seed=1) > 0),
    node("plain", "Where", normal(12, 1, 64) > 0, normal(12, 64, 64), np.array(-9, np.float32)),
    node("NaN", "Max", SPECIAL, np.zeros(1, np.float32)),
    node("three ints", "Max", whole(0, 9, 9), whole(3, 5, 9), whole(0, 12, 9)),
    node("three", "Sum", normal(3, 4), normal(4, seed=1), normal(1, seed=2)),
    node("text", "Equal", np.array(["a", "b"], object), np.array(["a", "c"], object), opset=19),
]


def cast(name: str, x, to: int, opset: int = 19, **attributes):
    return node(name, "Cast", x, attributes={"to": to, **attributes}, opset=opset, rtol=0)


CASTS = [
    cast("float to half", normal(100) * np.float32(1e5), 10),
    cast("half to float", normal(100, dtype=np.float16), 1),
    cast("float to int", normal(100) * np.float32(100), 6),
    cast("float to int8", normal(100) * np.float32(40), 3),
    cast("float to bool", np.array([0, -0.0, 0.5, np.nan], np.float32), 9),
    cast("int to uint8", whole(-999, 999, 50), 2),
    cast("int64 to int16", whole(-99999, 99999, 50), 5),
    cast("bool to float", normal(9) > 0, 1),
    cast("double to float", normal(9, dtype=np.float64) * 1e300, 1),
    cast("int to text", whole(-99, 99, 9), 8),
    cast("text to float", np.array(["1.5", "-INF", "NaN", "1e3", "7"], object), 1),
    cast("text to int", np.array(["12", "-7"], object), 7),
]

REDUCTIONS = [
    node(name, op, x, attributes={"axes": axes, "keepdims": keep}, rtol=1e-5)
    for op in (
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSumSquare",
    )
    for name, x, axes, keep in (
        ("rows", normal(128, 384) + np.float32(1), [-1], 1),
        ("space", normal(2, 16, 9, 9), [2, 3], 0),
        ("outer", normal(7, 5, 3), [0], 1),
    )
] + [
    node("plain", "ReduceSum", normal(6, 7, 8), ints(-1, 0), rtol=1e-5),
    node("constant", "ReduceSum", normal(6, 7, 8), ints(1), constants=[1], rtol=1e-5),
    node("all", "ReduceSum", normal(6, 7, 8), attributes={"keepdims": 0}, rtol=1e-5),
    node("nothing", "ReduceSum", normal(6, 7), ints(), attributes={"noop_with_empty_axes": 1}),
    node("int", "ReduceSum", whole(0, 9, 6, 7, dtype=np.int32), ints(1)),
    node("int", "ReduceMean", whole(-9, 9, 6, 7, dtype=np.int32), attributes={"axes": [1]}),
    node("uint8", "ReduceMax", whole(0, 200, 6, 7, dtype=U8), attributes={"axes": [0]}),
    node("plain", "ReduceLogSum", np.abs(normal(6, 7)), attributes={"axes": [1]}, rtol=1e-5),
    node(
        "large",
        "ReduceLogSumExp",
        normal(6, 7) * np.float32(200),
        attributes={"axes": [1]},
        rtol=1e-5,
    ),
    node("18", "ReduceL2", normal(6, 7), ints(1), opset=18, rtol=1e-5),
    node("bool", "ReduceMin", normal(6, 7) > 0, ints(1), opset=20),
    node("empty", "ReduceSum", np.zeros((2, 0), np.float32), ints(1)),
    node(
        "half", "ReduceMean", normal(6, 70, dtype=np.float16), attributes={"axes": [1]}, rtol=2e-3
    ),
    node("plain", "ArgMax", normal(16, 300), attributes={"axis": 1}),
    node(
        "last",
        "ArgMax",
        whole(0, 3, 16, 30).astype(np.float32),
        attributes={"axis": 0, "select_last_index": 1, "keepdims": 0},
    ),
    node("plain", "ArgMin", whole(0, 3, 16, 30).astype(np.float32), attributes={"axis": -1}),
    node("plain", "CumSum", normal(12, 38), np.array(1, np.int32), rtol=1e-5),
    node(
        "exclusive", "CumSum", normal(12, 38), np.array(-2), rtol=1e-5, attributes={"exclusive": 1}
    ),
    node(
        "reverse",
        "CumSum",
        normal(12, 38),
        np.array(0),
        rtol=1e-5,
        attributes={"reverse": 1, "exclusive": 1},
    ),
    node("vector axis", "CumSum", whole(0, 9, 5, 6), ints(1)),
]


@pytest.mark.parametrize(
    "case", [*UNARY, *BINARY, *CASTS, *REDUCTIONS], ids=lambda c: f"{c.op} {c.name} {c.opset}"
)
def test_a_node_agrees_with_onnxruntime(case: NodeCase) -> None:
    agree(case)
