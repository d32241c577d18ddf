"""A real model of nested Ifs, specialized for the shapes at hand, against onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CPU = "CPUExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
KEY = "session.specialize_after_runs"


def test_openvino_runs_a_model_of_nested_ifs_whole(model_path: Callable[[str], Path]) -> None:
    path = model_path("silero_vad_if")
    peer = onnxruntime.InferenceSession(path, providers=[CPU])
    options = ort.SessionOptions()
    options.add_session_config_entry(KEY, "2")
    rng = np.random.default_rng(5)
    with ort.InferenceSession(path, options, providers=[OPENVINO, CPU]) as session:
        for batch, rate, size in (
            (1, 16000, 576),
            (2, 16000, 576),
            (1, 8000, 288),
            (1, 16000, 576),
        ):
            states = [np.zeros((2, batch, 128), np.float32)] * 2
            for turn in range(4):
                sound = rng.standard_normal((batch, size)).astype(np.float32) * 0.1
                feed: dict[str, Any] = {"input": sound, "sr": np.array(rate)}
                mine = session.run(None, {**feed, "state": states[0]})
                theirs = peer.run(None, {**feed, "state": states[1]})
                for one, other in zip(mine, theirs, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)
                states = [mine[1], theirs[1]]
                if turn == 2:
                    session.background_compile(None)
        lines = [line for line in session.explain().notes if line.startswith("specialized plan")]
    assert len(lines) == 3
    assert all(OPENVINO in line and CPU not in line for line in lines)
