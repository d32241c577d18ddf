"""Operators that cut, join, pick, scatter, order and resize agree with onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from parity.against_onnxruntime import agree
from parity.node_cases import NodeCase, ints, normal, whole


def node(name: str, op: str, *inputs, **options):
    return NodeCase(name=name, op=op, inputs=inputs, **{"rtol": 0.0, **options})


X = normal(3, 4, 5, 6)
TEXT = np.array(["pear", "apple", "fig", "apple"], object)
FLOAT0 = np.array(0, np.float32)

SHAPES = [
    node("copy and infer", "Reshape", X, ints(0, -1, 6)),
    node("constant", "Reshape", X, ints(6, 10, 6), constants=[1]),
    node(
        "allow zero",
        "Reshape",
        np.zeros((0, 3), np.float32),
        ints(3, 0),
        attributes={"allowzero": 1},
    ),
    node("2", "Flatten", X, attributes={"axis": 2}),
    node("negative", "Flatten", X, attributes={"axis": -1}),
    node("axes", "Squeeze", normal(1, 3, 1, 4), ints(-2, 0)),
    node("all", "Squeeze", normal(1, 3, 1, 4)),
    node("unsorted", "Unsqueeze", normal(3, 4), ints(3, 0)),
    node("perm", "Transpose", X, attributes={"perm": [0, 2, 1, 3]}),
    node("default", "Transpose", X),
    node("both ways", "Expand", normal(3, 1), ints(2, 1, 6)),
    node("plain", "Tile", normal(2, 3), ints(2, 3)),
    node("text", "Tile", TEXT, ints(2)),
    node("axis -1", "Concat", X, X, attributes={"axis": -1}),
    node("empty part", "Concat", X, np.zeros((0, 4, 5, 6), np.float32), attributes={"axis": 0}),
    node("sizes", "Split", X, ints(1, 3), attributes={"axis": 1}, outputs=2),
    node("even", "Split", X, attributes={"axis": 3}, outputs=3),
    node("uneven", "Split", normal(7, 2), opset=18, attributes={"num_outputs": 3}, outputs=3),
    node("start end", "Shape", X, attributes={"start": 1, "end": -1}),
    node("plain", "Size", X),
    node("steps", "Slice", X, ints(-1, 4), ints(-100, 0), ints(1, -1), ints(-1, -2)),
    node("past the end", "Slice", X, ints(1), ints(2**62), ints(2)),
    node("constant", "Slice", X, ints(1, 0), ints(3, 4), ints(0, 3), constants=[1, 2, 3]),
    node("nothing", "Slice", X, ints(3), ints(1), ints(1)),
    node("constant", "Pad", X, ints(0, 1, 0, 2, 0, 0, 3, 0), np.array(1.5, np.float32)),
    node("crop", "Pad", X, ints(0, -1, 0, 2, 0, 0, -1, -3)),
    node("reflect", "Pad", X, ints(0, 0, 2, 3, 0, 0, 4, 1), attributes={"mode": "reflect"}),
    node("edge", "Pad", X, ints(1, 0, 2, 3, 0, 2, 4, 1), attributes={"mode": "edge"}),
    node("wrap", "Pad", normal(4, 5), ints(1, 2, 3, 4), attributes={"mode": "wrap"}, opset=19),
    node("axes", "Pad", X, ints(1, 2), FLOAT0, ints(-1), opset=18),
    node("int", "Pad", whole(0, 9, 3, 3, dtype=np.int32), ints(1, 0, 0, 1), np.array(7, np.int32)),
    node("DCR", "DepthToSpace", normal(2, 16, 5, 6), attributes={"blocksize": 2}),
    node("CRD", "DepthToSpace", normal(2, 16, 5, 6), attributes={"blocksize": 2, "mode": "CRD"}),
    node("plain", "SpaceToDepth", normal(2, 4, 6, 8), attributes={"blocksize": 2}),
    node("plain", "ConstantOfShape", ints(2, 3)),
    node("int", "Range", np.array(3), np.array(-9), np.array(-4)),
    node(
        "float",
        "Range",
        np.array(0.5, np.float32),
        np.array(9, np.float32),
        np.array(0.7, np.float32),
        rtol=1e-6,
    ),
    node("none", "Range", np.array(3), np.array(1), np.array(1)),
    node("upper", "Trilu", normal(2, 5, 6), np.array(1)),
    node("lower", "Trilu", normal(2, 5, 6), np.array(-2), attributes={"upper": 0}),
    node("k", "EyeLike", normal(4, 6), attributes={"k": -1, "dtype": 6}),
    node("time first", "ReverseSequence", normal(6, 3, 2), ints(6, 1, 3)),
    node(
        "batch first",
        "ReverseSequence",
        normal(3, 6, 2),
        ints(6, 1, 3),
        attributes={"batch_axis": 0, "time_axis": 1},
    ),
    node("mixed", "CenterCropPad", normal(10, 7, 3), ints(6, 10, 3), opset=18),
    node(
        "2d",
        "Col2Im",
        normal(2, 12, 20),
        ints(5, 6),
        ints(2, 2),
        opset=18,
        rtol=1e-6,
        attributes={"pads": [0, 0, 0, 0]},
    ),
    node(
        "strided",
        "Col2Im",
        normal(1, 9, 9),
        ints(6, 6),
        ints(3, 3),
        opset=18,
        rtol=1e-6,
        attributes={"strides": [2, 2], "pads": [1, 1, 0, 0]},
    ),
]

DATA = normal(128, 384)
PICKS = [
    node("embedding", "Gather", normal(3000, 64), whole(0, 3000, 4, 32)),
    node("negative axis 1", "Gather", X, np.array([[-1, 0], [2, -4]]), attributes={"axis": 1}),
    node("scalar", "Gather", X, np.array(2)),
    node("text", "Gather", TEXT, ints(3, 0)),
    node("long axis", "GatherElements", DATA, whole(-384, 384, 128, 384), attributes={"axis": 1}),
    node("short", "GatherElements", X, whole(0, 3, 2, 3, 5, 1), attributes={"axis": 0}),
    node("slices", "GatherND", X, whole(0, 3, 7, 2)),
    node("elements", "GatherND", X, whole(-3, 3, 2, 7, 4)),
    node("batch", "GatherND", X, whole(0, 4, 3, 2, 1), attributes={"batch_dims": 1}),
    node(
        "plain",
        "ScatterElements",
        DATA,
        np.argsort(normal(128, 384), 1)[:, :50],
        normal(128, 50, seed=1),
        attributes={"axis": 1},
    ),
    node(
        "add",
        "ScatterElements",
        normal(5, 6),
        whole(-5, 5, 3, 6),
        normal(3, 6, seed=1),
        opset=18,
        attributes={"reduction": "add"},
        rtol=1e-6,
    ),
    node(
        "max",
        "ScatterElements",
        normal(5, 6),
        whole(0, 5, 3, 6),
        normal(3, 6, seed=1),
        opset=18,
        attributes={"reduction": "max"},
    ),
    node(
        "rows",
        "ScatterND",
        normal(1000, 64),
        np.arange(0, 1000, 20)[:, None],
        normal(50, 64, seed=1),
    ),
    node(
        "add",
        "ScatterND",
        normal(9, 4),
        whole(0, 9, 20, 1),
        normal(20, 4, seed=1),
        opset=18,
        attributes={"reduction": "add"},
        rtol=1e-6,
    ),
    node(
        "mul",
        "ScatterND",
        normal(9, 4),
        whole(0, 4, 6, 2),
        normal(6, seed=1),
        opset=18,
        attributes={"reduction": "mul"},
        rtol=1e-6,
    ),
    node("axis", "Compress", X, np.array([True, False, True]), attributes={"axis": 1}),
    node("flat", "Compress", X, np.arange(50) % 3 == 0),
    node("plain", "NonZero", whole(0, 2, 7, 9)),
    node("last", "OneHot", whole(-12, 12, 5, 4), np.array(9), np.array([2, 7], np.float32)),
    node(
        "axis 1",
        "OneHot",
        whole(0, 9, 5, 4).astype(np.float32),
        ints(9),
        ints(0, 1),
        attributes={"axis": 1},
    ),
    node("sorted", "Unique", whole(0, 9, 40), outputs=4),
    node("in order", "Unique", whole(0, 9, 40), outputs=4, attributes={"sorted": 0}),
    node("axis", "Unique", whole(0, 2, 12, 3), outputs=4, attributes={"axis": 0}),
    node("text", "Unique", TEXT, outputs=4, attributes={"sorted": 0}),
    node("few of many", "TopK", normal(4, 5000), ints(10), outputs=2),
    node("ties", "TopK", whole(0, 5, 6, 300).astype(np.float32), ints(20), outputs=2),
    node("smallest", "TopK", whole(0, 50, 6, 300), ints(7), outputs=2, attributes={"largest": 0}),
    node("axis 0", "TopK", normal(50, 6), ints(50), outputs=2, attributes={"axis": 0}),
    node("unsigned", "TopK", whole(0, 255, 30, dtype=np.int32), ints(9), outputs=2),
]


def resize(name: str, x, scales=None, sizes=None, opset: int = 17, **attributes):
    inputs = [x, None, None if scales is None else np.array(scales, np.float32)]
    if sizes is not None:
        inputs.append(ints(*sizes))
    return NodeCase(
        name=name, op="Resize", inputs=inputs, attributes=attributes, opset=opset, rtol=3e-6
    )


IMAGE = normal(1, 3, 13, 17)
RESIZES = [
    resize("nearest x2", IMAGE, [1, 1, 2, 2]),
    resize("linear x2", IMAGE, [1, 1, 2, 2], mode="linear"),
    resize("cubic x2", IMAGE, [1, 1, 2, 2], mode="cubic"),
    resize("linear large", normal(1, 4, 100, 90), sizes=[1, 4, 300, 311], mode="linear"),
    resize("integers", whole(0, 255, 1, 3, 13, 17, dtype=np.uint8), [1, 1, 2, 3]),
    *(
        resize(
            f"{mode} {how} {scale}",
            IMAGE,
            [1, 1, scale, scale],
            mode=mode,
            coordinate_transformation_mode=how,
        )
        for mode in ("nearest", "linear", "cubic")
        for how in ("half_pixel", "pytorch_half_pixel", "asymmetric")
        for scale in (0.6, 1.7)
    ),
    *(
        resize(
            f"{mode} align {sizes}",
            IMAGE,
            sizes=sizes,
            mode=mode,
            coordinate_transformation_mode="align_corners",
        )
        for mode in ("nearest", "linear", "cubic")
        for sizes in ([1, 3, 7, 9], [1, 3, 31, 20])
    ),
    *(
        resize(
            f"nearest {rounding} {how}",
            IMAGE,
            sizes=[1, 3, 20, 9],
            mode="nearest",
            nearest_mode=rounding,
            coordinate_transformation_mode=how,
        )
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for how in ("half_pixel", "asymmetric")
    ),
    resize(
        "cubic outside",
        IMAGE,
        [1, 1, 1.5, 0.7],
        mode="cubic",
        exclude_outside=1,
        cubic_coeff_a=-0.5,
    ),
    resize(
        "antialias linear",
        IMAGE,
        [1, 1, 0.4, 0.6],
        opset=18,
        mode="linear",
        antialias=1,
        exclude_outside=1,
    ),
    resize("axes", normal(1, 9, 9, 3), sizes=[5, 12], opset=18, mode="linear", axes=[1, 2]),
    resize(
        "not larger",
        IMAGE,
        sizes=[9, 9],
        opset=18,
        mode="nearest",
        axes=[2, 3],
        keep_aspect_ratio_policy="not_larger",
    ),
    resize("3d", normal(1, 2, 5, 6, 7), [1, 1, 2, 1.5, 2], mode="linear"),
    NodeCase(
        name="crop and resize",
        op="Resize",
        rtol=3e-6,
        inputs=[
            IMAGE,
            np.array([0, 0, 0.2, -0.1, 1, 1, 0.8, 1.2], np.float32),
            None,
            ints(1, 3, 9, 11),
        ],
        attributes={
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "mode": "linear",
            "extrapolation_value": 7.0,
        },
    ),
]


@pytest.mark.parametrize("case", [*SHAPES, *PICKS, *RESIZES], ids=lambda c: f"{c.op} {c.name}")
def test_a_node_agrees_with_onnxruntime(case: NodeCase) -> None:
    agree(case)
