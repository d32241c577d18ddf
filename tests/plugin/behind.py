"""Sessions on the gated EP that compile behind."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import onnxruntime
from small_models import feed, mlp

import ort_lite as ort

GATED = "GatedExecutionProvider"
CPU = "CPUExecutionProvider"
KEY = "session.ep_compile_in_background"
PATIENCE = 20
"""Seconds after which a test that hangs fails; none that passes waits for them."""


def compiling() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "ort_lite-background-compile"]


def options(**entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_session_config_entry(KEY, "1")
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    return made


def start(source: Any = None, chosen: ort.SessionOptions | None = None) -> ort.InferenceSession:
    source = mlp().SerializeToString() if source is None else source
    return ort.InferenceSession(source, chosen or options(), providers=[GATED])


def expected() -> np.ndarray:
    theirs = onnxruntime.InferenceSession(mlp().SerializeToString(), providers=[CPU])
    answer: np.ndarray = theirs.run(None, feed(mlp()))[0]
    return answer


def check(session: ort.InferenceSession) -> None:
    np.testing.assert_allclose(session.run(None, feed(mlp()))[0], expected(), rtol=1e-5, atol=1e-6)
