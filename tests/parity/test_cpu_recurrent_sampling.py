"""Recurrent, sampling and signal operators agree with onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from parity.against_onnxruntime import agree
from parity.node_cases import NodeCase, ints, normal


def node(name: str, op: str, *inputs, **options):
    return NodeCase(name=name, op=op, inputs=inputs, **options)


def one(value: float, dtype: type = np.float32):
    return np.array(value, dtype)


def recurrent(
    name: str, op: str, steps=20, batch=2, size=8, hidden=16, *, lens=None, extra=(), **attributes
):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    scale = np.float32(0.6 / np.sqrt(hidden))  # states must not amplify rounding
    inputs = [
        normal(steps, batch, size),
        normal(ways, gates * hidden, size, seed=1) * scale,
        normal(ways, gates * hidden, hidden, seed=2) * scale,
        normal(ways, 2 * gates * hidden, seed=3) * scale,
        None if lens is None else np.array(lens, np.int32),
    ]
    state = normal(ways, batch, hidden, seed=4)
    if "state" in extra:
        inputs += [state] if op != "LSTM" else [state, normal(ways, batch, hidden, seed=5)]
    if "peephole" in extra:
        inputs += [None] * (7 - len(inputs)) + [normal(ways, 3 * hidden, seed=6) * scale]
    outputs = 3 if op == "LSTM" else 2
    return NodeCase(
        name=name,
        op=op,
        inputs=inputs,
        outputs=outputs,
        rtol=2e-6,
        opset=14,
        attributes={"hidden_size": hidden, **attributes},
        constants=[1, 2, 3],
    )


LONG = {"steps": 64, "batch": 1, "size": 64, "hidden": 128}
RECURRENT = [
    case
    for op in ("RNN", "GRU", "LSTM")
    for case in (
        recurrent("plain", op),
        recurrent("long", op, **LONG),
        recurrent("one row", op, batch=1, direction="bidirectional", extra=("state",)),
        recurrent("a few rows of large weights", op, 5, 3, hidden=512, direction="bidirectional"),
        recurrent("reverse", op, direction="reverse"),
        recurrent("bidirectional", op, direction="bidirectional", extra=("state",)),
        recurrent("lengths", op, lens=[20, 7]),
        recurrent("lengths reverse", op, lens=[11, 20], direction="reverse"),
        recurrent("clip", op, clip=0.4),
        recurrent("lengths of both ways", op, lens=[4, 20], direction="bidirectional"),
        recurrent("lengths and state", op, lens=[13, 2], direction="reverse", extra=("state",)),
        recurrent("one step", op, steps=1, batch=1, hidden=128, extra=("state",)),
        recurrent("one long", op, lens=[19, 1], direction="bidirectional", extra=("state",)),
    )
] + [
    recurrent("relu", "RNN", activations=["Relu"]),
    recurrent(
        "affine", "RNN", activations=["Affine"], activation_alpha=[0.3], activation_beta=[0.1]
    ),
    recurrent("reset after", "GRU", linear_before_reset=1),
    recurrent("reset after state", "GRU", linear_before_reset=1, extra=("state",)),
    recurrent(
        "reset after lengths",
        "GRU",
        linear_before_reset=1,
        lens=[7, 20],
        direction="bidirectional",
        extra=("state",),
    ),
    recurrent(
        "hard",
        "GRU",
        activations=["HardSigmoid", "Softsign"],
        activation_alpha=[0.3],
        activation_beta=[0.4],
    ),
    *(
        recurrent(
            name,
            op,
            direction=direction,
            activations=["HardSigmoid", "Tanh", "Tanh"][: 3 if op == "LSTM" else 2] * ways,
            **more,
        )
        for op in ("GRU", "LSTM")
        for name, direction, ways, more in (
            ("hard gates", "forward", 1, {}),
            ("hard gates of both ways", "bidirectional", 2, {"batch": 1}),
            (
                "hard gates with their parameters",
                "bidirectional",
                2,
                {"activation_alpha": [0.9, 0.9], "activation_beta": [0.3, 0.3]},
            ),
            ("hard gates that differ", "bidirectional", 2, {"activation_alpha": [0.9, 0.4]}),
        )
    ),
    recurrent("peephole", "LSTM", extra=("state", "peephole")),
    recurrent("coupled", "LSTM", input_forget=1),
    recurrent(
        "activations",
        "LSTM",
        activations=["HardSigmoid", "Tanh", "Elu"],
        activation_alpha=[0.25, 0.9],
        activation_beta=[0.5],
    ),
]

BOXES = np.sort(np.abs(normal(1, 200, 2, 2)), axis=2).reshape(1, 200, 4)[..., [0, 1, 2, 3]]
ROIS = np.array([[1, 1, 9, 8], [0, 3, 5, 20], [-2, -3, 4, 4], [6, 6, 6.5, 6.2]], np.float32)
GRID = np.clip(normal(2, 9, 11, 2), -1.6, 1.6).astype(np.float32)
SAMPLING = [
    node(
        "classes",
        "NonMaxSuppression",
        BOXES,
        np.abs(normal(1, 3, 200)),
        np.array([30]),
        one(0.4),
        one(0.3),
    ),
    node(
        "centres",
        "NonMaxSuppression",
        np.abs(normal(2, 60, 4)),
        np.abs(normal(2, 2, 60)),
        np.array([9]),
        one(0.2),
        attributes={"center_point_box": 1},
    ),
    node(
        "ties",
        "NonMaxSuppression",
        BOXES,
        np.ones((1, 1, 200), np.float32),
        np.array([30]),
        one(0.5),
    ),
    node("nothing", "NonMaxSuppression", BOXES, np.ones((1, 1, 200), np.float32)),
    *(
        node(
            f"{mode} {shift} {ratio}",
            "RoiAlign",
            normal(2, 5, 16, 18),
            ROIS,
            ints(0, 1, 0, 1),
            opset=16,
            attributes={
                "mode": mode,
                "coordinate_transformation_mode": shift,
                "sampling_ratio": ratio,
                "output_height": 3,
                "output_width": 4,
                "spatial_scale": 0.8,
            },
        )
        for mode in ("avg", "max")
        for shift in ("half_pixel", "output_half_pixel")
        for ratio in (2, 0)
        if (mode, ratio) != ("max", 0)
    ),
    node(
        "10",
        "RoiAlign",
        normal(2, 5, 16, 18),
        ROIS,
        ints(0, 1, 0, 1),
        opset=10,
        attributes={"output_height": 3, "output_width": 4},
    ),
    node(
        "plain",
        "MaxRoiPool",
        normal(2, 3, 12, 14),
        np.array([[0, 1, 1, 9, 8], [1, 0, 3, 5, 11], [0, 2, 2, 2, 2]], np.float32),
        attributes={"pooled_shape": [2, 3]},
    ),
    *(
        node(
            f"{mode} {padding} {corners}",
            "GridSample",
            normal(2, 3, 7, 8),
            GRID,
            opset=16,
            rtol=1e-5,
            attributes={"mode": mode, "padding_mode": padding, "align_corners": corners},
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (0, 1)
    ),
    node(
        "3d",
        "GridSample",
        normal(1, 2, 4, 5, 6),
        np.clip(normal(1, 3, 4, 5, 3), -1.3, 1.3).astype(np.float32),
        opset=20,
        rtol=1e-5,
    ),
    node("2d", "AffineGrid", normal(2, 2, 3), ints(2, 1, 5, 6), opset=20, rtol=1e-5),
    node(
        "3d corners",
        "AffineGrid",
        normal(2, 3, 4),
        ints(2, 1, 4, 5, 6),
        opset=20,
        rtol=1e-5,
        attributes={"align_corners": 1},
    ),
    node(
        "offsets",
        "DeformConv",
        normal(1, 4, 9, 9),
        normal(6, 2, 3, 3),
        normal(1, 36, 7, 7),
        normal(6),
        np.abs(normal(1, 18, 7, 7)),
        opset=19,
        rtol=1e-5,
        attributes={"group": 2, "offset_group": 2},
    ),
    node("real", "DFT", normal(2, 50, 1), rtol=2e-5),
    node("onesided", "DFT", normal(2, 50, 1), attributes={"onesided": 1}, rtol=2e-5),
    node("inverse", "DFT", normal(2, 50, 2), attributes={"inverse": 1}, rtol=2e-5),
    node(
        "windowed",
        "STFT",
        normal(1, 400, 1),
        np.array(80),
        np.hanning(160).astype(np.float32),
        rtol=2e-5,
    ),
    node("periodic", "HannWindow", np.array(20), rtol=1e-6),
    node("symmetric", "HammingWindow", np.array(20), attributes={"periodic": 0}, rtol=1e-6),
    node("plain", "BlackmanWindow", np.array(20), rtol=1e-6),
    node(
        "plain", "MelWeightMatrix", np.array(20), np.array(256), np.array(16000), one(0), one(8000)
    ),
]


@pytest.mark.parametrize("case", [*RECURRENT, *SAMPLING], ids=lambda c: f"{c.op} {c.name}")
def test_a_node_agrees_with_onnxruntime(case: NodeCase) -> None:
    agree(case)
