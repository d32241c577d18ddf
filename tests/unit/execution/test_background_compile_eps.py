"""Compiling behind a session on the EPs that ship: right numbers before, during and after."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import onnxruntime
import pytest
from small_models import feed, sandwich

import ort_lite as ort

CPU = "CPUExecutionProvider"
PATIENCE = 60
"""Seconds after which a test that hangs fails; none that passes waits for them."""


@pytest.mark.parametrize(
    "ep",
    [
        "OpenVINOExecutionProvider",
        pytest.param(
            "OpenCLExecutionProvider",
            marks=pytest.mark.skipif(not find_spec("pyopencl"), reason="pyopencl is missing"),
        ),
    ],
)
def test_answers_stay_right_through_the_swap(ep: str) -> None:
    data, values = sandwich().SerializeToString(), feed(sandwich())
    theirs = onnxruntime.InferenceSession(data, providers=[CPU]).run(None, values)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_compile_in_background", "1")
    options.add_session_config_entry("session.placement", "all")

    def check() -> None:
        for mine, right in zip(session.run(None, values), theirs, strict=True):
            np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)

    def until_done() -> None:
        while session.background_compile().state == "compiling":
            check()
        check()

    with (
        ort.InferenceSession(data, options, providers=[ep]) as session,
        ThreadPoolExecutor(4) as pool,
    ):
        for running in [pool.submit(until_done) for _ in range(4)]:
            running.result(PATIENCE)
        assert session.background_compile().state == "done"
        assert session.get_providers() == [ep, CPU]
        assert ep in session.explain().node_counts()
