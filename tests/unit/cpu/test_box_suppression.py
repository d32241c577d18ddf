"""NonMaxSuppression of many boxes keeps those that onnxruntime keeps."""

from __future__ import annotations

import numpy as np
import onnx.helper
import onnxruntime
import pytest

import ort_lite as ort


def agrees(feeds: dict[str, np.ndarray]) -> np.ndarray:
    """The boxes that are kept, which are onnxruntime's."""
    node = onnx.helper.make_node("NonMaxSuppression", list(feeds), ["kept"])
    types = {"limit": onnx.TensorProto.INT64}
    graph = onnx.helper.make_graph(
        [node],
        "boxes",
        [
            onnx.helper.make_tensor_value_info(
                name, types.get(name, onnx.TensorProto.FLOAT), value.shape
            )
            for name, value in feeds.items()
        ],
        [onnx.helper.make_tensor_value_info("kept", onnx.TensorProto.INT64, [None, 3])],
    )
    opset = [onnx.helper.make_opsetid("", 11)]
    data = onnx.helper.make_model(graph, ir_version=8, opset_imports=opset).SerializeToString()
    (right,) = onnxruntime.InferenceSession(data).run(None, feeds)
    (kept,) = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    np.testing.assert_array_equal(kept, right)
    return right


@pytest.mark.parametrize("apart", [0.0, 50.0], ids=["together", "in classes"])
@pytest.mark.parametrize("limit", [7, 4000])
def test_many_boxes_are_suppressed_as_in_onnxruntime(apart: float, limit: int) -> None:
    """Detectors move the boxes of each class to a place of their own: 20 classes of 100 boxes."""
    random = np.random.default_rng(11)
    corners = random.uniform(0, 30, (20, 100, 2)) + apart * np.arange(20)[:, None, None]
    sizes = random.uniform(1, 12, (20, 100, 2))
    boxes = np.concatenate([corners, corners + sizes], axis=2).reshape(1, 2000, 4)
    feeds: dict[str, np.ndarray] = {
        "boxes": boxes.astype(np.float32),
        "scores": random.permutation(2000).astype(np.float32).reshape(1, 1, 2000),
        "limit": np.array([limit], np.int64),
        "overlap": np.array([0.3], np.float32),
    }
    kept = agrees(feeds)
    assert len(kept) > min(limit, 30) - 1


@pytest.mark.parametrize("least", [None, 0.9, 2.0], ids=["all", "some", "none"])
def test_classes_without_candidates_are_left_out_as_in_onnxruntime(least: float | None) -> None:
    random = np.random.default_rng(13)
    low = random.uniform(0, 30, (2, 90, 2))
    scores = random.uniform(0, 1, (2, 5, 90)).astype(np.float32)
    scores[:, ::2] *= 0.5
    feeds: dict[str, np.ndarray] = {
        "boxes": np.concatenate([low, low + random.uniform(1, 12, low.shape)], axis=2).astype(
            np.float32
        ),
        "scores": scores,
        "limit": np.array([70], np.int64),
        "overlap": np.array([0.4], np.float32),
    }
    if least is not None:
        feeds["least"] = np.array([least], np.float32)
    agrees(feeds)


@pytest.mark.parametrize("least", [None, 0.2, 0.55], ids=["all", "many", "some"])
@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("boxes", [1, 9, 64, 65, 80])
def test_small_classes_are_suppressed_side_by_side_as_in_onnxruntime(
    boxes: int, limit: int, least: float | None
) -> None:
    """Many classes of a block of boxes at most, with equal scores; a block has 64."""
    random = np.random.default_rng(boxes)
    low = random.uniform(0, 30, (2, boxes, 2))
    corners = np.concatenate([low, low + random.uniform(1, 12, low.shape)], axis=2)
    corners[:, ::3] = corners[:, ::3, [2, 3, 0, 1]]  # opposite corners in any order
    feeds: dict[str, np.ndarray] = {
        "boxes": corners.astype(np.float32),
        "scores": (random.integers(0, 12, (2, 20, boxes)) / 20).astype(np.float32),
        "limit": np.array([limit], np.int64),
        "overlap": np.array([0.3], np.float32),
    }
    if least is not None:
        feeds["least"] = np.array([least], np.float32)
    agrees(feeds)
