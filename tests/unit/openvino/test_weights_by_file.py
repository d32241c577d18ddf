"""Large weights reach OpenVINO through a file that it maps, and are the same numbers."""

from __future__ import annotations

import logging
import tempfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from eps.openvino.compile import convert

if TYPE_CHECKING:
    from pathlib import Path

OPENVINO = "OpenVINOExecutionProvider"
ROWS, COLUMNS = 5, 1 << 18
"""1.3 million elements: over a megabyte of the narrowest type."""


def table(dtype: type[np.generic]) -> np.ndarray:
    bounds = (-128, 127) if dtype is np.int8 else (0, 200)
    return np.random.default_rng(1).integers(*bounds, (ROWS, COLUMNS)).astype(dtype)


def picking(weights: np.ndarray) -> bytes:
    """y = weights[row]: whatever OpenVINO makes of the weights shows."""
    kind = helper.np_dtype_to_tensor_dtype(weights.dtype)
    row = helper.make_tensor_value_info("row", TensorProto.INT64, [1])
    y = helper.make_tensor_value_info("y", kind, [1, COLUMNS])
    node = helper.make_node("Gather", ["w", "row"], ["y"])
    tensor = numpy_helper.from_array(weights, "w")
    graph = helper.make_graph([node], "picking", [row], [y], [tensor])
    opset = [helper.make_opsetid("", 17)]
    model: bytes = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    return model


def multiplying(weights: np.ndarray) -> bytes:
    """y = x @ weights, which OpenVINO takes whole."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, ROWS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, COLUMNS])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    tensor = numpy_helper.from_array(weights, "w")
    graph = helper.make_graph([node], "multiplying", [x], [y], [tensor])
    opset = [helper.make_opsetid("", 17)]
    model: bytes = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    return model


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64]
)
def test_weights_of_each_type_are_what_they_were(dtype: type[np.generic], temporary: Path) -> None:
    weights = table(dtype)
    with ort.InferenceSession(picking(weights), providers=[OPENVINO]) as session:
        for row in (0, ROWS - 1):
            (found,) = session.run(None, {"row": np.array([row], np.int64)})
            np.testing.assert_array_equal(found, weights[[row]])
    assert list(temporary.iterdir()) == []


def test_where_no_mapped_file_can_be_removed_the_file_goes_after_the_compile(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, and with a limit that does not take a model of a gigabyte."""
    monkeypatch.setattr(convert, "MAPS_WHAT_IS_REMOVED", False)
    monkeypatch.setattr(convert, "IN_MEMORY_LIMIT", convert.FILE_FROM)
    x = np.arange(ROWS, dtype=np.float32)[None]
    weights = table(np.float32)
    with ort.InferenceSession(multiplying(weights), providers=[OPENVINO]) as session:
        assert session.explain().node_counts() == {OPENVINO: 1}
        assert list(temporary.iterdir()) == []
        np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ weights, rtol=1e-6)


def test_products_are_right(temporary: Path) -> None:
    weights = table(np.float32)
    x = np.arange(ROWS, dtype=np.float32)[None]
    with ort.InferenceSession(multiplying(weights), providers=[OPENVINO]) as session:
        assert session.explain().node_counts() == {OPENVINO: 1}
        np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ weights, rtol=1e-6)


def test_a_payload_holds_its_weights_and_no_name_of_the_file(temporary: Path) -> None:
    options = ort.SessionOptions()
    options.add_provider(OPENVINO)
    weights = table(np.float32)
    target = temporary / "made.onnx"
    ort.ModelCompiler(options, multiplying(weights)).compile_to_file(target)
    payload = target.with_name(f"made_{OPENVINO}.bin").read_bytes()
    assert len(payload) > weights.nbytes
    assert not any(name in payload for name in (b"weights.bin", bytes(temporary), b"ort_lite_"))
    x = np.ones((1, ROWS), np.float32)
    with ort.InferenceSession(target, providers=[OPENVINO]) as session:
        np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ weights, rtol=1e-6)


def test_without_room_for_a_file_they_go_through_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    weights = table(np.float32)
    caplog.set_level(logging.DEBUG, "ort_lite")
    with ort.InferenceSession(picking(weights), providers=[OPENVINO]) as session:
        (found,) = session.run(None, {"row": np.array([2], np.int64)})
    np.testing.assert_array_equal(found, weights[[2]])


def test_what_memory_cannot_take_either_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    monkeypatch.setattr(convert, "IN_MEMORY_LIMIT", convert.FILE_FROM)
    with pytest.raises(ort.EPFail, match="TMPDIR"):
        ort.InferenceSession(picking(table(np.float32)), providers=[OPENVINO])
