"""Old versions of operators agree with onnxruntime, as far back as it runs them."""

from __future__ import annotations

import numpy as np
import pytest
from parity.against_onnxruntime import agree
from parity.node_cases import NodeCase, ints, normal, whole


def node(opset: int, op: str, *inputs, name: str = "", **options):
    return NodeCase(name=name, op=op, inputs=inputs, opset=opset, **options)


X = normal(2, 3, 4, 5)
SCALE, BIAS, MEAN = normal(3, seed=1), normal(3, seed=2), normal(3, seed=3)
VARIANCE = np.abs(normal(3, seed=4)) + np.float32(0.1)
IMAGE = normal(1, 2, 7, 9)

CASES = [
    *(
        node(
            opset,
            op,
            X,
            name=f"axis {axis}",
            rtol=1e-5,
            attributes={} if axis is None else {"axis": axis},
        )
        for opset in (7, 11, 12, 13)
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for axis in (None, 0, 1, 3)
    ),
    *(
        node(opset, "BatchNormalization", X, SCALE, BIAS, MEAN, VARIANCE, rtol=1e-5)
        for opset in (7, 9, 14, 15)
    ),
    node(7, "Upsample", IMAGE, attributes={"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest"}),
    node(
        7,
        "Upsample",
        IMAGE,
        name="linear",
        attributes={"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"},
    ),
    node(
        9, "Upsample", IMAGE, np.array([1, 1, 1.5, 2.6], np.float32), attributes={"mode": "nearest"}
    ),
    node(
        9,
        "Upsample",
        IMAGE,
        np.array([1, 1, 2, 2], np.float32),
        name="linear",
        attributes={"mode": "linear"},
    ),
    node(10, "Resize", IMAGE, np.array([1, 1, 0.6, 0.5], np.float32), name="down"),
    node(10, "Resize", IMAGE, np.array([1, 1, 1.7, 2.0], np.float32), name="up"),
    node(
        10,
        "Resize",
        IMAGE,
        np.array([1, 1, 0.6, 1.7], np.float32),
        name="linear",
        attributes={"mode": "linear"},
    ),
    node(
        11,
        "Resize",
        IMAGE,
        np.array([], np.float32),
        np.array([1, 1, 2, 1.5], np.float32),
        name="tf nearest",
        attributes={"coordinate_transformation_mode": "tf_half_pixel_for_nn"},
    ),
    node(9, "Scatter", normal(4, 5), whole(0, 4, 2, 3), normal(2, 3, seed=1)),
    node(11, "ScatterElements", normal(4, 5), whole(0, 4, 2, 3), normal(2, 3, seed=1)),
    node(11, "ScatterND", normal(4, 5), whole(0, 4, 3, 1), normal(3, 5, seed=1)),
    node(7, "Pad", X, attributes={"pads": [0, 0, 1, 2, 0, 1, 0, -1], "value": 0.5}),
    node(
        7,
        "Pad",
        X,
        name="reflect",
        attributes={"pads": [0, 0, 1, 2, 0, 0, 2, 1], "mode": "reflect"},
    ),
    node(7, "Slice", X, attributes={"starts": [1, -3], "ends": [3, 100], "axes": [1, 3]}),
    node(7, "Slice", X, name="leading", attributes={"starts": [1], "ends": [2]}),
    node(10, "Slice", X, ints(0), ints(-1), ints(2)),
    node(7, "Clip", X, attributes={"min": -0.5, "max": 0.25}),
    node(7, "Clip", X, name="low", attributes={"min": 0.1}),
    node(11, "Clip", X, np.array(-0.5, np.float32), np.array(0.25, np.float32)),
    node(7, "Dropout", X, attributes={"ratio": 0.3}),
    node(10, "Dropout", X),
    node(12, "Dropout", X, np.array(0.3, np.float32), outputs=2),
    node(7, "ReduceSum", X, attributes={"axes": [1, -1], "keepdims": 0}, rtol=1e-5),
    node(11, "ReduceSum", X, rtol=1e-5),
    node(7, "Squeeze", normal(1, 3, 1), attributes={"axes": [0]}),
    node(11, "Squeeze", normal(1, 3, 1), attributes={"axes": [-1]}),
    node(7, "Unsqueeze", normal(3, 4), attributes={"axes": [0, 3]}),
    node(11, "Unsqueeze", normal(3, 4), attributes={"axes": [-1]}),
    node(7, "Split", X, attributes={"axis": 1, "split": [1, 2]}, outputs=2),
    node(11, "Split", X, attributes={"axis": -2}, outputs=2),
    node(9, "Cast", X * np.float32(9), attributes={"to": 7}),
    node(7, "Reshape", X, ints(0, -1)),
    node(7, "Flatten", X, attributes={"axis": 3}),
    node(7, "TopK", normal(3, 40), attributes={"k": 5}, outputs=2),
    node(10, "TopK", normal(3, 40), ints(5), outputs=2, attributes={"axis": 1}),
    node(9, "OneHot", whole(0, 6, 4), np.array(6), np.array([0, 1], np.float32)),
    node(7, "Gather", X, whole(0, 3, 2, 2), attributes={"axis": 1}),
    node(7, "ArgMax", X, attributes={"axis": 2, "keepdims": 0}),
    node(7, "AveragePool", IMAGE, attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    node(
        10,
        "AveragePool",
        IMAGE,
        attributes={"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 2]},
    ),
    node(7, "MaxPool", IMAGE, attributes={"kernel_shape": [2, 2], "strides": [2, 2]}),
    node(8, "MaxPool", IMAGE, attributes={"kernel_shape": [2, 2], "storage_order": 1}, outputs=2),
    node(7, "Gemm", normal(3, 4), normal(4, 5), normal(5), rtol=1e-5),
    node(9, "MatMul", normal(3, 4, dtype=np.float64), normal(4, 5, dtype=np.float64)),
    node(7, "Conv", IMAGE, normal(4, 2, 3, 3), attributes={"pads": [1, 0, 0, 1]}, rtol=1e-5),
    node(7, "PRelu", X, normal(3, 1, 1)),
    node(7, "Pow", np.abs(X), np.array(1.5, np.float32)),
    node(8, "Sum", X, X, normal(5)),
    node(8, "Max", X, normal(5)),
    node(8, "Mean", X, normal(5)),
    node(8, "Expand", normal(3, 1), ints(2, 3, 4)),
    node(7, "Tile", normal(2, 3), ints(2, 2)),
    node(7, "Greater", X, normal(5)),
    node(7, "Equal", whole(0, 3, 9), whole(0, 3, 9, 1)),
    node(7, "And", X > 0, normal(5) > 0),
    node(7, "DepthToSpace", normal(1, 8, 3, 3), attributes={"blocksize": 2}),
    node(7, "LRN", X, attributes={"size": 3}, rtol=1e-5),
    node(7, "InstanceNormalization", X, SCALE, BIAS, rtol=1e-5),
    node(7, "LpPool", IMAGE, attributes={"kernel_shape": [2, 2]}, rtol=1e-5),
    node(7, "GlobalLpPool", IMAGE, rtol=1e-5),
    node(10, "QuantizeLinear", X, np.array(0.1, np.float32), np.array(9, np.uint8)),
    node(
        13,
        "DequantizeLinear",
        whole(0, 99, 3, 4, dtype=np.uint8),
        np.array([1, 2, 3], np.float32),
        np.array([1, 2, 3], np.uint8),
        attributes={"axis": 0},
    ),
    node(11, "CumSum", normal(5, 6), np.array(1, np.int32), rtol=1e-5),
    node(10, "Mod", whole(-9, 9, 20), whole(1, 5, 20, dtype=np.int64)),
    node(11, "Round", X * np.float32(3)),
    node(
        7,
        "LSTM",
        normal(5, 2, 3),
        normal(1, 16, 3),
        normal(1, 16, 4),
        attributes={"hidden_size": 4},
        outputs=3,
        rtol=1e-5,
    ),
    node(9, "EyeLike", normal(3, 4)),
    node(
        9,
        "MaxUnpool",
        normal(1, 1, 2, 2),
        np.array([[[[5, 7], [13, 15]]]]),
        attributes={"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    node(11, "Unique", whole(0, 5, 9), outputs=4),
    node(12, "Celu", X),
    node(12, "ArgMin", X, attributes={"select_last_index": 1}),
    node(12, "NegativeLogLikelihoodLoss", -np.abs(normal(6, 4)), whole(0, 4, 6), rtol=1e-5),
    node(
        12,
        "SoftmaxCrossEntropyLoss",
        normal(6, 4, 3),
        whole(0, 4, 6, 3),
        np.abs(normal(4)),
        outputs=2,
        attributes={"ignore_index": 2},
        rtol=1e-5,
    ),
    node(
        13,
        "SoftmaxCrossEntropyLoss",
        normal(6, 4),
        whole(0, 4, 6),
        attributes={"reduction": "sum"},
        rtol=1e-5,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.op} {c.opset} {c.name}")
def test_an_old_version_agrees_with_onnxruntime(case: NodeCase) -> None:
    agree(case)
