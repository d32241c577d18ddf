"""Quantised operators of com.microsoft run on OpenVINO, to the steps that onnxruntime gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

OPENVINO = "OpenVINOExecutionProvider"
CONTRIB = "com.microsoft"
RANDOM = np.random.default_rng(57)
OTHER_STEPS = 0.01
"""Largest share of results that may be the next step: those in the middle between two."""


def u8(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


def i8(*shape: int) -> Array:
    return RANDOM.integers(-128, 128, shape, dtype=np.int8)


def scale(value: float, *shape: int) -> Array:
    return np.full(shape, value, np.float32)


def zero(value: int, kind: Any = np.uint8) -> Array:
    return np.array(value, kind)


def make_model(
    op_type: str,
    inputs: Sequence[Array | None],
    *,
    imported: int = 17,
    free: bool = False,
    **fields: Any,
) -> tuple[bytes, dict[str, Array]]:
    """One node between others; tensors are inputs, scales and zero points constants; its feed."""
    infos, weights, feed = [], [], {}
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    for name, value in zip(names, inputs, strict=True):
        if value is None:
            continue
        if value.size == 1:
            weights.append(numpy_helper.from_array(value, name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            shape: list[int | str] = list(value.shape)
            infos.append(
                helper.make_tensor_value_info(name, kind, ["rows", *shape[1:]] if free else shape)
            )
            feed[name] = value
    node = helper.make_node(op_type, names, ["y"], domain=CONTRIB, **fields)
    quantised = next(value for value in feed.values() if value.dtype != bool)
    kind = helper.np_dtype_to_tensor_dtype(quantised.dtype)
    made = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph([node], "one", infos, made, weights)
    opsets = [helper.make_opsetid("", imported), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    return model.SerializeToString(), feed


def run_on_openvino(model: bytes, feed: dict[str, Array]) -> tuple[Array, tuple[str, ...]]:
    """The answer, and the notes of the one partition; an error if a node is left to the CPU EP."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as session:
        (answer,) = session.run(None, feed)
        (report,) = session.explain().partitions
        return answer, tuple(report.notes)


def agree(model: bytes, feed: dict[str, Array]) -> Array:
    """OpenVINO's answer, once it is onnxruntime's."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, feed)
    answer, notes = run_on_openvino(model, feed)
    assert any("written out as" in note for note in notes)
    assert answer.dtype == expected.dtype
    assert answer.shape == expected.shape
    difference = abs(answer.astype(np.int32) - expected.astype(np.int32))
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= OTHER_STEPS * difference.size
    return answer


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("make", [u8, i8], ids=["uint8", "int8"])
@pytest.mark.parametrize("free", [False, True], ids=["known", "free"])
def test_sums_and_products_saturate(op: str, make: Any, free: bool) -> None:  # noqa: FBT001 - a parameter
    a, b = make(6, 8, 9), make(6, 8, 1)
    kind = a.dtype
    given = [a, scale(0.0213), zero(90, kind), b, scale(0.0571), zero(70, kind)]
    model, feed = make_model(op, [*given, scale(0.0119), zero(5, kind)], free=free)
    answer = agree(model, feed)
    assert {answer.min(), answer.max()} == {np.iinfo(kind).min, np.iinfo(kind).max}


@pytest.mark.parametrize("make", [u8, i8], ids=["uint8", "int8"])
def test_zero_points_may_be_omitted(make: Any) -> None:
    """By the formula: onnxruntime 1.31.1 refuses such sums, and crashes on such activations."""
    x, y = make(5, 6), make(5, 6)
    inputs = [x, scale(0.0213), None, y, scale(0.0371), None, scale(0.0531)]
    answer, _ = run_on_openvino(*make_model("QLinearAdd", inputs))
    steps = (x * np.float32(0.0213) + y * np.float32(0.0371)) / np.float32(0.0531)
    kind = np.iinfo(x.dtype)
    assert answer.dtype == x.dtype
    assert abs(answer - np.rint(steps).clip(kind.min, kind.max)).max() <= 1


def test_scales_and_zero_points_may_have_a_dimension() -> None:
    given = [u8(4, 5, 6), scale(0.0213, 1), zero(3).reshape(1)]
    model, feed = make_model("QLinearSigmoid", [*given, scale(1 / 256, 1), zero(0).reshape(1)])
    agree(model, feed)


@pytest.mark.parametrize("make", [u8, i8], ids=["uint8", "int8"])
def test_activations(make: Any) -> None:
    x = make(3, 40, 50)
    given = [x, scale(0.0213), zero(100, x.dtype)]
    agree(*make_model("QLinearLeakyRelu", [*given, scale(0.0171), zero(30, x.dtype)], alpha=0.1))
    agree(*make_model("QLinearLeakyRelu", [*given, scale(0.0171), zero(30, x.dtype)]))
    agree(*make_model("QLinearSigmoid", [*given, scale(0.0041), zero(0, x.dtype)]))


@pytest.mark.parametrize(("opset", "axis"), [(13, -1), (13, 1), (11, 1)])
def test_a_softmax_along_the_last_axis(opset: int, axis: int) -> None:
    given = [u8(30, 20), scale(0.0213), zero(100), scale(1 / 256), zero(0)]
    agree(*make_model("QLinearSoftmax", given, imported=opset, axis=axis, opset=opset))


def test_pools() -> None:
    given = [u8(2, 5, 12, 14), scale(0.0213), zero(100), scale(0.0191), zero(90)]
    agree(*make_model("QLinearGlobalAveragePool", given, channels_last=0))
    pool = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    agree(*make_model("QLinearAveragePool", given, **pool))


def test_parts_of_different_scales_are_joined() -> None:
    parts = [u8(2, 30), scale(0.0213), zero(3), u8(2, 40), scale(0.1071), zero(90)]
    parts += [u8(2, 7), scale(0.0013), zero(0)]
    agree(*make_model("QLinearConcat", [scale(0.0531), zero(20), *parts], axis=1))


def test_elements_are_picked_by_a_condition() -> None:
    condition = RANDOM.integers(0, 2, (30, 40)).astype(bool)
    parts = [u8(30, 40), scale(0.0213), zero(3), u8(30, 40), scale(0.0571), zero(9)]
    agree(*make_model("QLinearWhere", [condition, *parts, scale(0.0431), zero(20)]))


@pytest.mark.parametrize(
    ("op", "inputs", "fields"),
    [
        (
            "QLinearGlobalAveragePool",
            [u8(2, 5, 6, 4), scale(0.02), zero(1), scale(0.02), zero(1)],
            {"channels_last": 1},
        ),
        (
            "QLinearSoftmax",
            [u8(2, 5, 6), scale(0.02), zero(1), scale(1 / 256), zero(0)],
            {"axis": 1, "opset": 13},
        ),
        (
            "QLinearAveragePool",
            [u8(2, 5, 6, 6), scale(0.02), zero(0), scale(0.02), zero(0)],
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        ),
    ],
    ids=["channels last", "Softmax along another axis", "padding counts"],
)
def test_other_forms_are_left(op: str, inputs: list[Array], fields: dict[str, Any]) -> None:
    model, feed = make_model(op, inputs, **fields)
    with ort.InferenceSession(model, providers=[OPENVINO]) as session:
        assert all(part.ep != OPENVINO for part in session.explain().partitions)
        (answer,) = session.run(None, feed)
    (expected,) = onnxruntime.InferenceSession(model).run(None, feed)
    assert abs(answer.astype(np.int32) - expected).max() <= 1


def test_a_scale_that_is_computed_is_left() -> None:
    model, feed = make_model(
        "QLinearSigmoid", [u8(3, 4), scale(0.02), zero(1), scale(0.01), zero(0)]
    )
    proto = onnx.ModelProto.FromString(model)
    kept = [w for w in proto.graph.initializer if w.name != "x1"]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    proto.graph.input.append(helper.make_tensor_value_info("x1", TensorProto.FLOAT, []))
    feed["x1"] = scale(0.02)
    with ort.InferenceSession(proto.SerializeToString(), providers=[OPENVINO]) as session:
        assert all(part.ep != OPENVINO for part in session.explain().partitions)
        assert session.run(None, feed)[0].shape == (3, 4)


def test_joined_parts_that_are_quantised_again_are_computed() -> None:
    """8-bit transformations crash on them on some CPUs, unless a maximum is between."""
    model, feed = make_model("QLinearSigmoid", [u8(2, 30), scale(0.0213), zero(3), scale(0.0041)])
    proto = onnx.ModelProto.FromString(model)
    proto.graph.node[0].output[0] = "s"
    for name, value in (("o", scale(0.0053)), ("z", zero(9))):
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    parts = ["o", "z", "s", "x3", "z", "s", "o", "z"]
    join = helper.make_node("QLinearConcat", parts, ["y"], domain=CONTRIB, axis=1)
    proto.graph.node.append(join)
    answer, notes = run_on_openvino(proto.SerializeToString(), feed)
    assert not any("float32" in note for note in notes)
    first = np.rint(1 / (1 + np.exp(-(feed["x0"] - np.float32(3)) * scale(0.0213))) / 0.0041)
    first = first.clip(0, 255)
    left = np.rint((first - 9) * 0.0041 / 0.0053 + 9).clip(0, 255)
    assert abs(answer[:, :30] - left).max() <= 1
    assert abs(answer[:, 30:] - first).max() <= 1


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("rows", ["rows", 2], ids=["free", "known"])
def test_a_constant_beside_another_reader_is_kept(op: str, rows: int | str) -> None:
    """In free shapes OpenVINO loses it before a quantisation, unless it is kept apart."""
    weights = {
        "s": scale(0.0041), "z": zero(100), "t": scale(0.0331),
        "c": u8(1, 8, 1, 1), "f": scale(0.0414), "o": zero(136), "b": zero(0),
        "w": RANDOM.integers(-60, 60, (8, 8, 1, 1), dtype=np.int8), "n": zero(0, np.int8),
    }  # fmt: skip
    given = ["v", "s", "b", "c", "f", "o", "t", "z"]
    nodes = [
        helper.make_node("QLinearSigmoid", ["x", "t", "z", "s", "b"], ["v"], domain=CONTRIB),
        helper.make_node(op, given, ["y"], domain=CONTRIB),
        helper.make_node("QLinearConv", ["v", "s", "b", "w", "s", "n", "t", "z"], ["k"]),
    ]
    kind = TensorProto.UINT8
    graph = helper.make_graph(
        nodes,
        "shared",
        [helper.make_tensor_value_info("x", kind, [rows, 8, rows, 5])],
        [helper.make_tensor_value_info(name, kind, None) for name in ("y", "k")],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString()
    feed = {"x": u8(2, 8, 2, 5)}
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with ort.InferenceSession(model, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        for mine, expected in zip(session.run(None, feed), reference.run(None, feed), strict=True):
            assert abs(mine.astype(np.int32) - expected.astype(np.int32)).max() <= 1
