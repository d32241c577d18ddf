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
from eps.openvino.payload.identity import device_to_compile_for
from eps.openvino.sdk.binding import BindingRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fail = Callable[..., list[str]]

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
LOST = (
    "Exception from src/plugins/intel_npu/src/utils/src/zero/zero_wrappers.cpp:154:\n"
    "L0 zeFenceHostSynchronize result: ZE_RESULT_ERROR_DEVICE_LOST, code 0x70000001 - device hung, "
    "reset, was removed, or driver update occurred"
)
REMOVED = "[GPU] clEnqueueNDRangeKernel, error code: -2 CL_DEVICE_NOT_AVAILABLE"
RESET = "L0 zeCommandQueueExecuteCommandLists result: ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET"
IN_USE = "L0 zeFenceReset result: ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, code 0x78000006"
ASLEEP = "L0 zeCommandListCreate result: ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE"
BUSY = "Exception from src/inference/src/cpp/infer_request.cpp:223:\nInfer Request is busy"
GROUP = "AUTO:NPU,GPU,CPU"


PAUSED = "eps.openvino.device_faults.sleep"


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """`fail(text)`: every inference raises it from now on; a list of those that were tried."""

    def install(text: str, times: int = 1000) -> list[str]:
        tried: list[str] = []
        infer_truly = BindingRequest.infer

        def infer(request: BindingRequest) -> Sequence[Any]:
            tried.append(text)
            if len(tried) > times:
                return infer_truly(request)
            raise RuntimeError(text)

        monkeypatch.setattr(BindingRequest, "infer", infer)
        monkeypatch.setattr(PAUSED, pauses.append)
        return tried

    pauses: list[float] = []
    return install


def session(**options: int) -> ort.InferenceSession:
    providers = [(OPENVINO, {"device_type": GROUP})]
    return ort.InferenceSession(mlp().SerializeToString(), providers=providers, **options)


@pytest.mark.parametrize("text", [LOST, RESET, REMOVED], ids=["npu", "npu reset", "gpu"])
def test_a_lost_device_is_a_typed_error_without_another_attempt(text: str, fail: Fail) -> None:
    with session(enable_fallback=0) as made:
        made.run(None, feed(mlp()))
        tried = fail(text)
        with pytest.raises(ort.DeviceReset) as failed:
            made.run(None, feed(mlp()))
        assert len(tried) == 1
    assert isinstance(failed.value, ort.EPFail), "code that catches what onnxruntime raises"
    assert text.splitlines()[-1] in str(failed.value)
    assert "Exception from" not in str(failed.value)
    assert "a new session opens it again if it is back" in str(failed.value)


@pytest.mark.parametrize("text", [BUSY, IN_USE, ASLEEP], ids=["request", "in use", "asleep"])
def test_a_busy_device_is_tried_three_times(text: str, fail: Fail) -> None:
    with session(enable_fallback=0) as made:
        made.run(None, feed(mlp()))
        tried = fail(text)
        with pytest.raises(ort.EPFail, match=r"\(3 attempts\)") as failed:
            made.run(None, feed(mlp()))
        assert len(tried) == 3
    assert not isinstance(failed.value, ort.DeviceReset)
    assert text.splitlines()[-1] in str(failed.value)


def test_another_error_is_not_tried_again(fail: Fail) -> None:
    with session(enable_fallback=0) as made:
        tried = fail("ZE_RESULT_ERROR_UNKNOWN")
        with pytest.raises(ort.EPFail, match="ZE_RESULT_ERROR_UNKNOWN"):
            made.run(None, feed(mlp()))
        assert len(tried) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_a_device_that_is_ready_again_answers_and_explain_says_so(times: int, fail: Fail) -> None:
    (right,) = ReferenceEvaluator(mlp()).run(None, feed(mlp()))
    with session(enable_fallback=0) as made:
        tried = fail(IN_USE, times)
        (found,) = made.run(None, feed(mlp()))
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
        assert len(tried) == times + 1
        (note,) = [n for n in made.explain().partitions[0].notes if "busy" in n]
        assert "a run was tried again: " in note
        assert IN_USE in note
        assert made.get_providers()[0] == OPENVINO


def test_the_pauses_before_further_attempts_are_bounded(
    fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(enable_fallback=0) as made:
        fail(BUSY)
        pauses: list[float] = []
        monkeypatch.setattr(PAUSED, pauses.append)
        with pytest.raises(ort.EPFail):
            made.run(None, feed(mlp()))
    assert pauses == sorted(pauses)
    assert sum(pauses) < 0.2


@pytest.mark.parametrize("text", [LOST, REMOVED, BUSY], ids=["npu", "gpu", "busy"])
def test_a_session_with_fallback_answers_on_the_cpu_and_says_so(text: str, fail: Fail) -> None:
    (right,) = ReferenceEvaluator(mlp()).run(None, feed(mlp()))
    with session() as made:
        made.run(None, feed(mlp()))
        tried = fail(text)
        with pytest.warns(UserWarning, match=text.splitlines()[-1][:20].replace("[", r"\[")):
            (found,) = made.run(None, feed(mlp()))
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
        attempts = len(tried)
        made.run(None, feed(mlp()))
        assert len(tried) == attempts
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


class Machine:
    """A runtime that knows the names of some devices."""

    def __init__(self, *devices: str) -> None:
        self._devices = devices

    def property(self, device: str, key: str) -> str | None:
        assert key == "FULL_DEVICE_NAME"
        return f"some {device}" if device in self._devices else None


@pytest.mark.parametrize(
    ("device", "compiled_for"),
    [
        ("AUTO:NPU,GPU,CPU", "AUTO:CPU"),
        ("AUTO:GPU.1,GPU.0,CPU", "AUTO:GPU.0,CPU"),
        ("AUTO:NPU", "AUTO:NPU"),  # OpenVINO's own error names what is missing
        ("AUTO", "AUTO"),
        ("HETERO:NPU,CPU", "HETERO:NPU,CPU"),
        ("NPU", "NPU"),
    ],
)
def test_auto_is_asked_for_members_that_are_here(device: str, compiled_for: str) -> None:
    machine: Any = Machine("CPU", "GPU.0")
    assert device_to_compile_for(machine, device) == compiled_for
