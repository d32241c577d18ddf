"""Real models, plain and reloaded, against onnxruntime's CPU EP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = "CPUExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
MANIFEST = Path(__file__).parents[1] / "model_set" / "manifest.json"
NAMES = [model["name"] for model in json.loads(MANIFEST.read_text("utf-8"))["models"]]
DYNAMIC_INT8 = {"rawi_lstm_int8"}
"""Activations are quantised on the fly, and onnxruntime's sums of 8-bit products saturate on
CPUs without VNNI: a step of 1/255 here and there, two LSTM layers deep."""
IN_PARTS = {"rawi_lstm_int8", "silero_vad_if"}
"""Models with operators that OpenVINO has not, or computes wrong: DynamicQuantizeLSTM, If."""

Values = dict[str, np.ndarray[Any, Any]]


def expected(path: Path, values: Values) -> list[Any]:
    session = onnxruntime.InferenceSession(path, providers=[CPU])
    return session.run(None, values)


def compare(name: str, found: list[Any], right: list[Any]) -> None:
    """Within 1e-4 of the largest value; sigmoids far from 1 have no more digits than 2e-6."""
    share = 2e-2 if name in DYNAMIC_INT8 else 1e-4
    for mine, theirs in zip(found, right, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        bound = share * float(np.abs(theirs).max(initial=0)) + 2e-6
        assert float(np.abs(mine.astype(np.float64) - theirs).max(initial=0)) <= bound


def test_the_set_has_models_to_speak_of() -> None:
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_openvino_gives_onnxruntimes_numbers_and_the_same_when_reloaded(
    name: str,
    tmp_path: Path,
    model_path: Callable[[str], Path],
    example_inputs: Callable[[str], Values],
) -> None:
    path, values = model_path(name), example_inputs(name)
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "c.onnx"))
    with ort.InferenceSession(path, options, providers=[OPENVINO]) as session:
        plain = session.run(None, values)
        counts = session.explain().node_counts()
        parts = len(session.explain().partitions)
    compare(name, plain, expected(path, values))
    if name not in IN_PARTS:
        assert (parts, list(counts)) == (1, [OPENVINO])
    with ort.InferenceSession(tmp_path / "c.onnx", providers=[OPENVINO]) as session:
        for mine, compiled in zip(session.run(None, values), plain, strict=True):
            np.testing.assert_array_equal(mine, compiled)


@pytest.mark.parametrize("name", NAMES)
def test_the_cpu_ep_gives_onnxruntimes_numbers(
    name: str, model_path: Callable[[str], Path], example_inputs: Callable[[str], Values]
) -> None:
    path, values = model_path(name), example_inputs(name)
    with ort.InferenceSession(path, providers=[CPU]) as session:
        compare(name, session.run(None, values), expected(path, values))
