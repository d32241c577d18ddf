"""Recorded cases: operators that move, cut, pick and reduce."""

from __future__ import annotations

import numpy as np
from parity.realistic.case import RecordedCase, node
from parity.realistic.drawn import bits, floats, ints, normal, one, order, uniform, whole

HIDDEN = normal(1, 128, 768)
IMAGE = normal(1, 32, 28, 28)


def _layout() -> list[RecordedCase]:
    return [
        node("Reshape", HIDDEN, ints(0, -1, 12, 64), rtol=0),
        node("Flatten", IMAGE, axis=2, rtol=0),
        node("Transpose", normal(1, 128, 12, 64), perm=[0, 2, 1, 3], rtol=0),
        node("Transpose", IMAGE, what="reversed", rtol=0),
        node("Squeeze", normal(1, 64, 1, 20), ints(0, -2), rtol=0),
        node("Unsqueeze", normal(64, 20), ints(-1, 0), rtol=0),
        node("Concat", IMAGE, normal(1, 5, 28, 28), IMAGE, axis=1, rtol=0),
        node("Split", HIDDEN, ints(256, 300, 212), axis=-1, outputs=3, rtol=0),
        node("Split", HIDDEN, what="equal", opset=11, axis=2, outputs=3, rtol=0),
        node("Expand", normal(1, 12, 1, 64), ints(4, 1, 50, 1), rtol=0),
        node("Tile", normal(3, 40, 5), ints(2, 3, 7), rtol=0),
        node("Pad", IMAGE, ints(0, 0, 3, 2, 0, 0, 1, 4), one(0.5), rtol=0),
        node("Pad", IMAGE, ints(0, 0, 3, 2, 0, 0, 1, 4), what="reflect", mode="reflect", rtol=0),
        node("Pad", IMAGE, ints(0, 0, 3, 2, 0, 0, 1, 4), what="edge", mode="edge", rtol=0),
        node("Pad", IMAGE, ints(0, 0, -3, 2, 0, 0, 1, -4), what="crop", rtol=0),
        node("Pad", IMAGE, ints(3, 2, 1, 4), None, ints(2, 3), what="wrap", mode="wrap", rtol=0),
        node("DepthToSpace", IMAGE, blocksize=4, rtol=0),
        node("DepthToSpace", IMAGE, what="CRD", blocksize=4, mode="CRD", rtol=0),
        node("SpaceToDepth", IMAGE, blocksize=7, rtol=0),
        node("CenterCropPad", IMAGE, ints(20, 40), axes=[2, 3], rtol=0),
        node("ReverseSequence", normal(40, 8, 16), whole(1, 41, 8), rtol=0),
        node("Shape", IMAGE, start=1, end=-1),
        node("Size", IMAGE),
        node("Trilu", normal(2, 60, 80), one(3, np.int64), upper=0, rtol=0),
        node("EyeLike", normal(60, 80), k=2),
        node("Range", one(-3), one(500), one(0.25), rtol=0),
        node("Range", one(900, np.int64), one(-5, np.int64), one(-7, np.int64), what="down"),
        node("ConstantOfShape", ints(3, 40, 50)),
        node("OneHot", whole(0, 1000, 64), one(1000, np.int64), floats(0, 1), rtol=0),
        node(
            "OneHot",
            whole(-9, 9, 8, 20),
            one(9, np.int64),
            floats(-1, 4),
            what="axis",
            axis=1,
            rtol=0,
        ),
        node("AffineGrid", normal(2, 2, 3), ints(2, 3, 20, 30), align_corners=1),
    ]


def _picking() -> list[RecordedCase]:
    return [
        node("Gather", normal(3000, 96), whole(0, 3000, 2, 128), rtol=0),
        node("Gather", normal(12, 300), whole(-300, 300, 50), what="axis", axis=1, rtol=0),
        node("GatherElements", normal(128, 384), whole(-128, 128, 100, 384), axis=0, rtol=0),
        node("GatherND", normal(40, 30, 20), whole(0, 30, 500, 2), rtol=0),
        node(
            "GatherND",
            normal(8, 30, 20),
            whole(0, 20, 8, 50, 2),
            what="batches",
            batch_dims=1,
            rtol=0,
        ),
        node("ScatterElements", normal(200, 64), order(150, 64), normal(150, 64), axis=0, rtol=0),
        node(
            "ScatterElements",
            normal(200, 64),
            whole(0, 200, 150, 64),
            normal(150, 64),
            what="add",
            axis=0,
            reduction="add",
            opset=18,
        ),
        node(
            "ScatterElements",
            normal(200, 64),
            whole(0, 200, 150, 64),
            normal(150, 64),
            what="max",
            axis=0,
            reduction="max",
            opset=18,
            rtol=0,
        ),
        node("Scatter", normal(200, 64), order(150, 64), normal(150, 64), opset=9, rtol=0),
        node("ScatterND", normal(1000, 64), _rows(300), normal(300, 64), rtol=0),
        node(
            "ScatterND",
            normal(50, 64),
            whole(0, 50, 300, 1),
            normal(300, 64),
            what="add",
            reduction="add",
            opset=18,
        ),
        node(
            "ScatterND",
            normal(50, 64),
            whole(0, 50, 300, 1),
            normal(300, 64),
            what="mul",
            reduction="mul",
            opset=18,
            rtol=1e-5,
        ),
        node(
            "TensorScatter",
            normal(2, 4, 60, 16),
            normal(2, 4, 3, 16),
            ints(5, 40),
            opset=24,
            rtol=0,
        ),
        node(
            "Slice",
            IMAGE,
            ints(2, 27, -20),
            ints(30, -40, 500),
            ints(1, 2, 3),
            ints(2, -1, 3),
            rtol=0,
        ),
        node(
            "Slice",
            IMAGE,
            what="attributes",
            opset=9,
            axes=[1, 3],
            starts=[2, -9],
            ends=[30, -2],
            rtol=0,
        ),
        node("Compress", normal(60, 50), bits(60), axis=0, rtol=0),
        node("NonZero", whole(0, 2, 60, 50)),
        node("Unique", whole(0, 300, 5000), outputs=4),
        node("Unique", whole(0, 3, 500, 4), what="rows", outputs=4, axis=0),
        node("Unique", whole(0, 300, 5000), what="as met", outputs=4, sorted=0),
        node("TopK", normal(10, 5000), ints(20), outputs=2, rtol=0),
        node(
            "TopK",
            normal(10, 500),
            ints(20),
            what="smallest",
            largest=0,
            axis=-1,
            outputs=2,
            rtol=0,
        ),
        node("TopK", whole(0, 50, 40, 300), ints(9), what="ties", axis=0, outputs=2),
        node(
            "NonMaxSuppression", _boxes(200), uniform(0, 1, 1, 3, 200), ints(30), one(0.4), one(0.2)
        ),
    ]


def _rows(count: int) -> np.ndarray:
    return (np.arange(count) * 37 % 1000)[:, None]


def _boxes(count: int) -> np.ndarray:
    corner = np.stack((np.arange(count) * 37 % 101, np.arange(count) * 53 % 97), 1)
    size = 5 + np.stack((np.arange(count) * 7 % 23, np.arange(count) * 11 % 29), 1)
    return np.concatenate((corner, corner + size), 1)[None].astype(np.float32)


def _reductions() -> list[RecordedCase]:
    cases = []
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"):
        cases += [
            node(op, HIDDEN, ints(-1), opset=18, rtol=4e-6),
            node(op, IMAGE, ints(0, 2, 3), what="places", opset=18, keepdims=0, rtol=4e-6),
            node(op, normal(30, 40, dtype=np.float64), what="all", opset=18, rtol=1e-13),
        ]
    for op in ("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd"):
        cases.append(node(op, uniform(0.5, 1.5, 8, 60, 40), ints(1), opset=18, rtol=4e-6))
    for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"):
        cases.append(node(op, whole(-9, 9, 60, 9, dtype=np.int32), ints(1), what="int32", opset=18))
    cases.append(node("ReduceMean", HIDDEN, what="attribute", opset=13, axes=[1], rtol=4e-6))
    for op in ("ArgMax", "ArgMin"):
        cases += [
            node(op, normal(128, 3000), axis=-1),
            node(
                op,
                whole(0, 9, 40, 50, dtype=np.int32),
                what="last",
                axis=0,
                keepdims=0,
                select_last_index=1,
            ),
        ]
    return [
        *cases,
        node("CumSum", normal(128, 384), one(1, np.int64), rtol=1e-5),
        node(
            "CumSum",
            whole(-9, 9, 30, 50),
            one(0, np.int64),
            what="backwards",
            exclusive=1,
            reverse=1,
        ),
        node("CumProd", uniform(0.8, 1.2, 60, 40), one(0, np.int64), opset=26, rtol=1e-5),
    ]


def _resizes() -> list[RecordedCase]:
    image = normal(1, 3, 56, 56)
    modes = [
        ("nearest", "asymmetric", {"nearest_mode": "floor"}),
        ("nearest", "half_pixel", {}),
        ("linear", "half_pixel", {}),
        ("linear", "align_corners", {}),
        ("linear", "pytorch_half_pixel", {}),
        ("cubic", "half_pixel", {"cubic_coeff_a": -0.5}),
    ]
    cases = []
    for mode, coordinates, others in modes:
        options = {"mode": mode, "coordinate_transformation_mode": coordinates, **others}
        what = f"{mode} {coordinates}"
        cases += [
            node(
                "Resize", image, None, floats(1, 1, 2, 2), what=f"up {what}", rtol=1e-5, **options
            ),
            node(
                "Resize",
                image,
                None,
                None,
                ints(1, 3, 30, 43),
                what=f"down {what}",
                rtol=1e-5,
                **options,
            ),
        ]
    smooth = {"mode": "linear", "antialias": 1}
    return [
        *cases,
        node("Resize", image, None, floats(1, 1, 0.4, 0.7), what="antialias", rtol=1e-5, **smooth),
        node("Resize", image, floats(1, 1, 2, 2), what="old", opset=10, mode="linear", rtol=1e-5),
        node("Upsample", image, floats(1, 1, 2, 3), opset=9, mode="nearest", rtol=0),
        node(
            "GridSample",
            normal(1, 8, 32, 32),
            uniform(-1.2, 1.2, 1, 20, 30, 2),
            opset=20,
            rtol=1e-5,
        ),
        node(
            "GridSample",
            normal(1, 8, 32, 32),
            uniform(-1.2, 1.2, 1, 20, 30, 2),
            what="cubic",
            opset=20,
            mode="cubic",
            padding_mode="border",
            rtol=1e-5,
        ),
        node(
            "GridSample",
            normal(1, 8, 32, 32),
            uniform(-1.2, 1.2, 1, 20, 30, 2),
            what="old",
            opset=16,
            mode="nearest",
            padding_mode="reflection",
            align_corners=1,
            rtol=0,
        ),
    ]


CASES = (*_layout(), *_picking(), *_reductions(), *_resizes())
