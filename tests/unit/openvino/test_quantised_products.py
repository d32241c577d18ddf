"""Quantised products with scales by filter run on OpenVINO, and answer as onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

OPENVINO = "OpenVINOExecutionProvider"
CONTRIB = "com.microsoft"
RANDOM = np.random.default_rng(61)
OTHER_STEPS = 0.01
"""Largest share of results that may be the next step: those in the middle between two."""
FLOAT_ERROR = 1e-5
"""Of sums in float32, over the largest."""


def integers(kind: Any, *shape: int) -> Array:
    info = np.iinfo(kind)
    return RANDOM.integers(info.min, info.max + 1, shape, dtype=kind)


def weights(kind: Any, *shape: int) -> Array:
    """Small enough for 8-bit kernels on every CPU."""
    return RANDOM.integers(0 if kind is np.uint8 else -64, 65, shape).astype(kind)


def scales(*shape: int) -> Array:
    return (RANDOM.random(shape) * 0.01 + 0.001).astype(np.float32)


def factors(a: Array, b: Array, count: int | None, *, is_zero: bool = False) -> list[Array]:
    """Both factors, each with scale and zero point; `count` of b, None for scalars."""
    shape = () if count is None else (count,)
    zero = np.zeros(shape) if is_zero else RANDOM.integers(0, 9, shape)
    b_zero = np.asarray(zero).astype(b.dtype)
    return [a, np.float32(0.0213), np.array(17, a.dtype), b, scales(*shape), b_zero]


def make_model(
    op_type: str,
    inputs: Sequence[Array | None],
    *,
    opset: int = 17,
    free: bool = False,
    runtime: int = 1,
    **fields: Any,
) -> tuple[bytes, dict[str, Array]]:
    """One node of which the first `runtime` tensors are inputs, and its feed."""
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    infos, initializers, feed = [], [], {}
    for place, (name, value) in enumerate(zip(names, inputs, strict=True)):
        if value is not None and place < runtime:
            kind = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
            sizes: list[int | str] = list(np.shape(value))
            shape = ["n", *sizes[1:]] if free else sizes
            infos.append(helper.make_tensor_value_info(name, kind, shape))
            feed[name] = np.asarray(value)
        elif value is not None:
            initializers.append(numpy_helper.from_array(np.asarray(value), name))
    domain = CONTRIB if op_type == "QGemm" else ""
    node = helper.make_node(op_type, names, ["y"], domain=domain, **fields)
    last = 8 if op_type == "QGemm" else 7
    zero = inputs[last] if len(inputs) > last else None
    kind = (
        TensorProto.FLOAT
        if zero is None
        else helper.np_dtype_to_tensor_dtype(np.asarray(zero).dtype)
    )
    made = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph([node], "one", infos, made, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    return model.SerializeToString(), feed


def run_both(model: bytes, feed: dict[str, Array]) -> tuple[Array, Array, list[str]]:
    """OpenVINO's answer, onnxruntime's, and the notes; an error if the CPU EP has a node."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, feed)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as ours:
        (answer,) = ours.run(None, feed)
        (report,) = ours.explain().partitions
    assert answer.dtype == expected.dtype
    assert answer.shape == expected.shape
    return answer, expected, list(report.notes)


def agree(model: bytes, feed: dict[str, Array]) -> list[str]:
    """The notes, once the steps are onnxruntime's."""
    answer, expected, notes = run_both(model, feed)
    assert len(np.unique(expected)) > 20, "the steps should differ"
    difference = abs(answer.astype(np.int32) - expected.astype(np.int32))
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= OTHER_STEPS * difference.size
    return notes


@pytest.mark.parametrize(
    ("a", "b"),
    [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)],
    ids=["uint8 by int8", "int8", "uint8"],
)
@pytest.mark.parametrize("opset", [10, 12, 17])
@pytest.mark.parametrize("free", [False, True], ids=["known", "free"])
def test_convolutions_with_scales_by_filter(a: Any, b: Any, free: bool, opset: int) -> None:  # noqa: FBT001 - a parameter
    given = factors(integers(a, 2, 8, 9, 10), weights(b, 8, 8, 3, 3), 8, is_zero=b is np.int8)
    bias = RANDOM.integers(-3000, 3000, 8, dtype=np.int32)
    given += [np.float32(0.21), np.array(99, a), bias]
    fields = {"pads": [1, 1, 1, 1], "strides": [1, 2]}
    model, feed = make_model("QLinearConv", given, opset=opset, free=free, **fields)
    assert any("QLinearConv x1 written out as" in note for note in agree(model, feed))


@pytest.mark.parametrize("opset", [11, 17])
def test_depthwise_convolutions_with_scales_by_filter(opset: int) -> None:
    given = factors(integers(np.uint8, 1, 16, 9, 10), weights(np.int8, 16, 1, 3, 3), 16)
    given += [np.float32(0.06), np.uint8(120)]
    agree(*make_model("QLinearConv", given, opset=opset, group=16, pads=[1, 1, 1, 1]))


def test_a_scale_may_have_a_dimension() -> None:
    given = factors(integers(np.uint8, 1, 4, 9, 10), weights(np.int8, 6, 4, 3, 3), 1, is_zero=True)
    given += [np.full(1, 0.11, np.float32), np.full(1, 120, np.uint8)]
    agree(*make_model("QLinearConv", given))


@pytest.mark.parametrize("kind", [np.int8, np.uint8], ids=["int8", "uint8"])
@pytest.mark.parametrize("opset", [11, 17])
def test_matrix_products_with_scales_by_column(kind: Any, opset: int) -> None:
    given = factors(integers(kind, 3, 20, 30), weights(kind, 30, 40), 40)
    ends = [np.float32(0.11), np.array(70, kind)]
    model, feed = make_model("QLinearMatMul", [*given, *ends], opset=opset)
    assert any("QLinearMatMul x1 written out as" in note for note in agree(model, feed))


@pytest.mark.parametrize("turned", [0, 1], ids=["B", "B'"])
@pytest.mark.parametrize("count", [None, 40], ids=["one scale", "scales by column"])
@pytest.mark.parametrize("biased", [True, False], ids=["C", "no C"])
@pytest.mark.parametrize("opset", [11, 17])
def test_gemm(turned: int, count: int | None, biased: bool, opset: int) -> None:  # noqa: FBT001 - a parameter
    given = factors(
        integers(np.uint8, 20, 30), weights(np.int8, *((40, 30) if turned else (30, 40))), count
    )
    bias = RANDOM.integers(-9000, 9000, 40, dtype=np.int32) if biased else None
    rows = [*given, bias]
    ends = [np.float32(0.13), np.uint8(110)]
    fields = {"opset": opset, "transB": turned, "alpha": 0.75}
    notes = agree(*make_model("QGemm", [*rows, *ends], **fields))
    assert any("QGemm x1 written out as" in note for note in notes)
    answer, expected, _ = run_both(*make_model("QGemm", rows, **fields))
    assert abs(answer - expected).max() <= FLOAT_ERROR * abs(expected).max()


def _convolution(*, runtime: int = 1, size: int = 3, **fields: Any) -> Any:
    given = factors(
        integers(np.uint8, 1, 4, 9, 9), weights(np.int8, 4, 4, size, size), 4, is_zero=True
    )
    given += [np.float32(0.11), np.uint8(100)]
    return make_model("QLinearConv", given, runtime=runtime, **fields)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_convolution(runtime=2), "a scale is not one constant"),
        (_convolution(runtime=3), "a scale is not one constant"),
        (_convolution(runtime=4), "a scale is not one constant"),
        (_convolution(size=1, pads=[1, 1, 1, 1]), "windows of padding alone"),
    ],
    ids=["scale", "zero point", "weights", "padded point"],
)
def test_other_forms_are_left(case: tuple[bytes, dict[str, Array]], reason: str) -> None:
    model, feed = case
    with ort.InferenceSession(model, providers=[OPENVINO]) as session:
        explained = session.explain()
        (answer,) = session.run(None, feed)
    assert all(part.ep != OPENVINO for part in explained.partitions)
    assert reason in str(explained)
    (expected,) = onnxruntime.InferenceSession(model).run(None, feed)
    assert abs(answer.astype(np.int32) - expected).max() <= 1
