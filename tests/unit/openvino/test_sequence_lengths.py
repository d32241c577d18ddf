"""Recurrences that end early: OpenVINO computes every step in free shapes, so the CPU EP does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from recurrent_models import GATES, WIDTH, recurrence

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
ROWS, STEPS = 3, 6
SOME = np.array([6, 2, 4], np.int32)
ALL = np.full(ROWS, STEPS, np.int32)
X = {"x": np.random.default_rng(6).standard_normal((STEPS, ROWS, WIDTH), np.float32)}


def provider(model: bytes, feed: dict[str, Any]) -> str:
    """Of the node, once the answers are onnxruntime's."""
    theirs = onnxruntime.InferenceSession(model, providers=[CPU]).run(None, feed)
    config = ort.SessionOptions()
    config.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, config, providers=[OPENVINO, CPU]) as mine:
        for ours, right in zip(mine.run(None, feed), theirs, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-5)
        (part,) = mine.explain().partitions
        return part.ep


@pytest.mark.parametrize("steps", [STEPS, "s"])
@pytest.mark.parametrize("lengths", ["lengths", SOME], ids=["input", "constant"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", list(GATES))
def test_rows_end_where_they_should(
    op_type: str, direction: str, lengths: Any, steps: int | str
) -> None:
    feed = X | ({"lengths": SOME} if isinstance(lengths, str) else {})
    model = recurrence(op_type, direction, (steps, ROWS), lengths=lengths)
    assert provider(model, feed) == CPU


@pytest.mark.parametrize("op_type", list(GATES))
def test_lengths_of_all_steps_are_none(op_type: str) -> None:
    known = recurrence(op_type, "forward", (STEPS, ROWS), lengths=ALL)
    assert provider(known, X) == OPENVINO
    free = recurrence(op_type, "forward", ("s", ROWS), lengths=ALL)
    assert provider(free, X) == CPU
