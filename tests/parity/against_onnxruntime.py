"""Runs a case in ort_lite and in onnxruntime and compares the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

import ort_lite
from ort_lite.transforms.insert_casts import NAME as INSERT_CASTS

if TYPE_CHECKING:
    from parity.node_cases import NodeCase

Array = np.ndarray[Any, Any]


def agree(case: NodeCase) -> None:
    """Fail unless both give the same types, shapes and numbers."""
    model, feed = case.model(), case.feed()
    kept = {name: value.copy() for name, value in feed.items()}
    theirs = onnxruntime_answers(model, feed)
    session = ort_lite.InferenceSession(
        model, providers=["CPUExecutionProvider"], disabled_optimizers=[INSERT_CASTS]
    )
    ours = session.run(None, feed)
    for name, value in feed.items():
        np.testing.assert_array_equal(value, kept[name], f"input {name} was written to")
    assert len(ours) == len(theirs)
    for ours_one, theirs_one in zip(ours, theirs, strict=True):
        same(ours_one, theirs_one, case.rtol)


def onnxruntime_answers(model: bytes, feed: dict[str, Array]) -> list[Any]:
    """What onnxruntime's CPU provider gives, without optimisations that change numbers."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    answers: list[Any] = session.run(None, feed)
    return answers


def same(ours: Any, theirs: Any, rtol: float) -> None:
    """Equal type and shape; values within rtol of the largest magnitude, or exactly equal."""
    if isinstance(theirs, list):
        assert isinstance(ours, list)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, rtol)
        return
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    if theirs.dtype == object:
        assert ours.tolist() == theirs.tolist()
        return
    assert ours.dtype == theirs.dtype
    if rtol == 0 or theirs.dtype.kind not in "fc":
        np.testing.assert_array_equal(ours, theirs)
        return
    finite = np.isfinite(theirs)
    largest = float(np.abs(theirs[finite]).max(initial=0))
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * largest)
