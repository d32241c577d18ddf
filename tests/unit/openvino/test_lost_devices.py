"""Devices that fail during a run, by faults at the interface of OpenVINO's plug-ins.

The texts are OpenVINO's own, of https://github.com/openvinotoolkit/openvino/issues/31439 and of an
infer request that two threads share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from small_models import feed, mlp

import ort_lite as ort
from eps.openvino.sdk.binding import BindingRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fail = Callable[[str], list[str]]

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
LOST = (
    "Exception from src/plugins/intel_npu/src/utils/src/zero/zero_wrappers.cpp:154:\n"
    "L0 zeFenceHostSynchronize result: ZE_RESULT_ERROR_DEVICE_LOST, code 0x70000001 - device hung, "
    "reset, was removed, or driver update occurred"
)
REMOVED = "[GPU] clEnqueueNDRangeKernel, error code: -2 CL_DEVICE_NOT_AVAILABLE"
BUSY = "Exception from src/inference/src/cpp/infer_request.cpp:223:\nInfer Request is busy"
GROUP = "AUTO:NPU,GPU,CPU"


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """`fail(text)`: every inference raises it from now on; a list of those that were tried."""

    def install(text: str) -> list[str]:
        tried: list[str] = []

        def infer(_: BindingRequest) -> Sequence[Any]:
            tried.append(text)
            raise RuntimeError(text)

        monkeypatch.setattr(BindingRequest, "infer", infer)
        return tried

    return install


def session(**options: int) -> ort.InferenceSession:
    providers = [(OPENVINO, {"device_type": GROUP})]
    return ort.InferenceSession(mlp().SerializeToString(), providers=providers, **options)


@pytest.mark.parametrize(
    ("text", "lost"), [(LOST, True), (REMOVED, True), (BUSY, False)], ids=["npu", "gpu", "busy"]
)
def test_a_session_without_fallback_says_what_failed_and_tries_once(
    text: str, *, lost: bool, fail: Fail
) -> None:
    with session(enable_fallback=0) as made:
        made.run(None, feed(mlp()))
        tried = fail(text)
        with pytest.raises(ort.EPFail) as failed:
            made.run(None, feed(mlp()))
        assert len(tried) == 1
    assert text.splitlines()[-1] in str(failed.value)
    assert "Exception from" not in str(failed.value)
    assert ("a new session opens it again if it is back" in str(failed.value)) == lost


@pytest.mark.parametrize("text", [LOST, REMOVED, BUSY], ids=["npu", "gpu", "busy"])
def test_a_session_with_fallback_answers_on_the_cpu_and_says_so(text: str, fail: Fail) -> None:
    (right,) = ReferenceEvaluator(mlp()).run(None, feed(mlp()))
    with session() as made:
        made.run(None, feed(mlp()))
        tried = fail(text)
        with pytest.warns(UserWarning, match=text.splitlines()[-1][:20].replace("[", r"\[")):
            (found,) = made.run(None, feed(mlp()))
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
        made.run(None, feed(mlp()))
        assert len(tried) == 1
        assert made.get_providers() == [CPU]
        (note,) = made.explain().notes
    assert text.splitlines()[-1] in note
    assert OPENVINO in note


def test_the_device_serves_again_in_a_new_session(
    fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(enable_fallback=0) as made:
        fail(LOST)
        with pytest.raises(ort.EPFail):
            made.run(None, feed(mlp()))
    monkeypatch.undo()
    with session(enable_fallback=0) as made:
        assert made.run(None, feed(mlp()))[0].shape == (2, 3)
