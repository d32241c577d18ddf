"""DFT runs on OpenVINO with ONNX's axis and shape (ONNX DFT-17 and DFT-20)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import ort_lite as ort

if TYPE_CHECKING:
    import onnx

OPENVINO = "OpenVINOExecutionProvider"
SHAPES = [((1, 16), 1), ((3, 20), 1), ((2, 3, 10), 1), ((2, 3, 8), 2), ((4, 3, 12), 0)]
FORMS = [(0, 1, 1), (0, 0, 1), (0, 0, 2), (1, 0, 2), (1, 0, 1)]
"""inverse, onesided, and 1 for real signals or 2 for complex ones."""


def dft(
    shape: tuple[int | str, ...],
    axis: int | None,
    *,
    length: int = 0,
    opset: int = 20,
    **attributes: int,
) -> onnx.ModelProto:
    """A DFT of float32 `x` along an axis; of the operator's own where that is None."""
    inputs, constants = ["x"], []
    if length:
        inputs.append("length")
        constants.append(helper.make_tensor("length", 7, [], [length]))
    if axis is not None and opset < 20:
        attributes["axis"] = axis
    elif axis is not None:
        inputs = [*inputs, *[""] * (2 - len(inputs)), "axis"]
        constants.append(helper.make_tensor("axis", 7, [], [axis]))
    graph = helper.make_graph(
        [helper.make_node("DFT", inputs, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, None)],
        constants,
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])


def session(proto: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO])


def compare(proto: onnx.ModelProto, x: Any) -> None:
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    with session(proto) as mine:
        mine.disable_fallback()
        assert {part.ep for part in mine.explain().partitions} == {OPENVINO}
        (output,) = mine.run(None, {"x": x})
    assert output.shape == expected.shape
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "free"])
@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(("inverse", "onesided", "parts"), FORMS)
def test_a_transform_has_onnxruntimes_numbers(
    inverse: int, onesided: int, parts: int, opset: int, *, free: bool
) -> None:
    chance = np.random.default_rng(3)
    for (shape, axis), length in itertools.product(SHAPES, (0, 8, 32)):
        x = chance.standard_normal((*shape, parts), np.float32)
        if onesided and (length > shape[axis] or (length and free)):
            continue  # left to the CPU EP
        if not onesided and (
            (length or shape[axis]) not in (4, 8, 16, 32) or (free and not length)
        ):
            continue
        named = tuple(f"d{i}" if free else size for i, size in enumerate(shape))
        proto = dft(
            (*named, parts),
            axis,
            length=length,
            opset=opset,
            inverse=inverse,
            onesided=onesided,
        )
        compare(proto, x)


@pytest.mark.parametrize("opset", [17, 20])
def test_the_operators_own_axis_is_taken(opset: int) -> None:
    x = np.random.default_rng(4).standard_normal((2, 6, 8, 1), np.float32)
    compare(dft(x.shape, None, opset=opset, onesided=1), x)


@pytest.mark.parametrize("opset", [17, 20])
def test_a_negative_axis_is_counted_from_the_end(opset: int) -> None:
    x = np.random.default_rng(5).standard_normal((2, 6, 8, 2), np.float32)
    compare(dft(x.shape, -2, opset=opset), x)


def test_a_batch_without_signals_stays_empty() -> None:
    proto = dft(("n", 16, 1), 1, onesided=1)
    with session(proto) as mine:
        (output,) = mine.run(None, {"x": np.zeros((0, 16, 1), np.float32)})
    assert output.shape == (0, 9, 2)


@pytest.mark.parametrize(
    ("proto", "why"),
    [
        (dft((16, 1), 0), "of one signal"),
        (dft((2, "n", 1), 1, length=8, onesided=1), "longer than the signal"),
        (dft((2, 4, 1), 1, length=8, onesided=1), "longer than the signal"),
        (dft((2, 8, "parts"), 1), "not known to be real or complex"),
        (dft((2, 5, 2), 1, onesided=1, inverse=1), "inverse or of complex numbers"),
        (dft((2, 10, 1), 1), "loses digits"),
        (dft((2, "n", 2), 1), "loses digits"),
    ],
    ids=["one-signal", "free-length", "longer", "parts", "inverse", "ten", "free-two-sided"],
)
def test_others_stay_on_the_cpu_ep(proto: onnx.ModelProto, why: str) -> None:
    with session(proto) as mine:
        assert why in str(mine.explain())
