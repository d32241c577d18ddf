"""Reductions of transposed values keep axes of size 1 in their places on OpenVINO."""

from __future__ import annotations

from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

OPENVINO = "OpenVINOExecutionProvider"
SIZES = {"b": 2, "t": 3}
SHAPES = ([1, 2, "t", 4], [1, 2, 3, 4], ["b", 1, "t", 4], [1, 1, "t", 4])
OPSET = 17


def model_of(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    constants: Sequence[onnx.TensorProto] = (),
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = OPSET,
) -> bytes:
    """A model of one input, x."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "reduced",
        [info("x", TensorProto.FLOAT, shape)],
        [info(name, TensorProto.FLOAT, None) for name in outputs],
        constants,
    )
    imports = [helper.make_opsetid("", opset)]
    return bytes(helper.make_model(graph, ir_version=8, opset_imports=imports).SerializeToString())


def reduction(
    op_type: str, data: str, axes: Sequence[int], output: str = "y", opset: int = OPSET
) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
    """A reduction that removes axes, and the constants that it needs."""
    if opset >= 18 or (op_type == "ReduceSum" and opset >= 13):
        name = f"axes of {output}"
        held = helper.make_tensor(name, TensorProto.INT64, [len(axes)], axes)
        return helper.make_node(op_type, [data, name], [output], keepdims=0), [held]
    return helper.make_node(op_type, [data], [output], keepdims=0, axes=axes), []


def check(source: bytes, shape: Sequence[int | str], *, alone: bool = True) -> None:
    """As onnxruntime on OpenVINO, and with `alone` on nothing else."""
    sizes = [dim if isinstance(dim, int) else SIZES[dim] for dim in shape]
    x = np.random.default_rng(0).random(sizes, dtype=np.float32) + np.float32(0.5)
    peer = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(source, options, [OPENVINO]) as session:
        if alone:
            assert list(session.explain().node_counts()) == [OPENVINO]
        answers = session.run(None, {"x": x})
    for actual, expected in zip(answers, peer.run(None, {"x": x}), strict=True):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_order_and_axis_is_right(shape: list[int | str]) -> None:
    nodes, constants, outputs = [], [], []
    for number, (order, axis) in enumerate(product(permutations(range(4)), (*range(4), -1))):
        outputs.append(f"y{number}")
        nodes.append(helper.make_node("Transpose", ["x"], [f"v{number}"], perm=order))
        node, held = reduction("ReduceSum", f"v{number}", [axis], outputs[-1])
        nodes.append(node)
        constants += held
    check(model_of(nodes, shape, constants, outputs=outputs), shape)


@pytest.mark.parametrize("opset", [11, 17, 18])
@pytest.mark.parametrize(
    "op_type", ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
)
def test_every_reduction_is_right(op_type: str, opset: int) -> None:
    """Those that OpenVINO is not shown to compute are the CPU EP's."""
    turn = helper.make_node("Transpose", ["x"], ["v"], perm=[2, 1, 0, 3])
    node, constants = reduction(f"Reduce{op_type}", "v", [1, 3], opset=opset)
    source = model_of([turn, node], [1, 2, "t", 4], constants, opset=opset)
    check(source, [1, 2, "t", 4], alone=False)


@pytest.mark.parametrize("opset", range(11, 19))
@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceLogSum"])
@pytest.mark.parametrize("axes", [[1], [0, -1]], ids=str)
def test_axes_are_read_where_an_opset_has_them(op_type: str, opset: int, axes: list[int]) -> None:
    node, constants = reduction(op_type, "x", axes, opset=opset)
    source = model_of([node], ["b", 4, "t", 5], constants, opset=opset)
    check(source, ["b", 4, "t", 5], alone=opset in range(13, 18))


def test_what_is_passed_between_the_two_changes_nothing() -> None:
    turn = helper.make_node("Transpose", ["x"], ["v"], perm=[2, 1, 0, 3])
    between = [
        helper.make_node("Cast", ["v"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["half"], ["single"], to=TensorProto.FLOAT),
        helper.make_node("Identity", ["single"], ["w"]),
    ]
    reduce, constants = reduction("ReduceSum", "w", [1])
    check(model_of([turn, *between, reduce], [1, 2, "t", 4], constants), [1, 2, "t", 4])


@pytest.mark.parametrize("op_type", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("length", ["t", 3], ids=["free", "known"])
def test_a_sum_over_directions_is_right(op_type: str, length: int | str) -> None:
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op_type]
    random = np.random.default_rng(0)
    weights = []
    for name, columns in (("w", 4), ("r", 5)):
        values = random.standard_normal((2, gates * 5, columns)).astype(np.float32)
        held = helper.make_tensor(name, TensorProto.FLOAT, values.shape, values.tobytes(), raw=True)
        weights.append(held)
    steps = helper.make_node(
        op_type, ["x", "w", "r"], ["v"], hidden_size=5, direction="bidirectional"
    )
    reduce, constants = reduction("ReduceSum", "v", [1])
    check(model_of([steps, reduce], [length, 1, 4], [*weights, *constants]), [length, 1, 4])
