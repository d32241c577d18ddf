"""Recurrent nodes that name their default activations run in OpenVINO's kernel for them."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from recurrent_models import WIDTH, recurrence

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
NOTE = "1 recurrent nodes without a list of default activations"
STEPS = 5


def run(model: bytes) -> tuple[str, list[str]]:
    """The EP and the notes of the partition, once the answers are onnxruntime's."""
    theirs = onnxruntime.InferenceSession(model, providers=[CPU])
    config = ort.SessionOptions()
    config.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, config, providers=[OPENVINO, CPU]) as mine:
        x = np.random.default_rng(6).standard_normal((STEPS, 3, WIDTH)).astype(np.float32)
        np.testing.assert_allclose(
            mine.run(None, {"x": x})[0], theirs.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5
        )
        (part,) = mine.explain().partitions
        return part.ep, list(part.notes)


@pytest.mark.parametrize("rows", [3, "n"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op_type", "activations"),
    [("LSTM", ["Sigmoid", "Tanh", "Tanh"]), ("GRU", ["sigmoid", "TANH"]), ("RNN", ["Tanh"])],
)
def test_lists_of_defaults_are_left_out(
    op_type: str, activations: list[str], direction: str, rows: int | str
) -> None:
    both = activations * (2 if direction == "bidirectional" else 1)
    ep, notes = run(recurrence(op_type, direction, (STEPS, rows), activations=both))
    assert ep == OPENVINO
    assert any(note.startswith(NOTE) for note in notes)


@pytest.mark.parametrize(
    ("op_type", "activations"),
    [("LSTM", []), ("LSTM", ["Sigmoid", "Tanh", "Relu"] * 2), ("RNN", ["Relu", "Relu"])],
)
def test_other_activations_stay(op_type: str, activations: list[str]) -> None:
    model = recurrence(op_type, "bidirectional", (STEPS, 3), activations=activations)
    ep, notes = run(model)
    assert ep == OPENVINO
    assert not any(note.startswith(NOTE) for note in notes)


@pytest.mark.parametrize(
    ("op_type", "activations"),
    [("RNN", ["Tanh", "Relu"]), ("GRU", ["Sigmoid", "Tanh", "Sigmoid", "Relu"])],
)
def test_directions_that_differ_are_left_to_the_cpu_ep(
    op_type: str, activations: list[str]
) -> None:
    """OpenVINO gives both the first one's."""
    model = recurrence(op_type, "bidirectional", (STEPS, 3), activations=activations)
    assert run(model)[0] == CPU
