"""Execution providers that a program registers, and processes that set their seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx.reference
import pytest
from context_models import OPENVINO
from npu_ep import FACTORY, NAME
from onnx import TensorProto, helper
from small_models import feed, mlp

import ort_lite as ort
from ort_lite.capi import onnxruntime_pybind11_state as binding
from ort_lite.ep.factory import Probe

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY = "npu_ep:FACTORY"


@pytest.fixture
def chip() -> Iterator[str]:
    """The name of an execution provider with an NPU and a GPU, for the time of one test."""
    ort.register_execution_provider_library("chip", LIBRARY)
    yield NAME
    ort.unregister_execution_provider_library("chip")


def test_a_registered_execution_provider_runs_models(chip: str) -> None:
    assert chip in ort.get_available_providers()
    assert chip in ort.get_all_providers()
    with ort.InferenceSession(mlp().SerializeToString(), providers=[chip]) as session:
        report = session.get_providers()
        (found,) = session.run(None, feed(mlp()))
    assert report == [chip, "CPUExecutionProvider"]
    expected = onnx.reference.ReferenceEvaluator(mlp()).run(None, feed(mlp()))[0]  # type: ignore[index] # a list
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_it_is_gone_when_it_is_unregistered(chip: str) -> None:
    ort.unregister_execution_provider_library("chip")
    try:
        assert chip not in ort.get_available_providers()
        with pytest.raises(ort.Fail, match="chip was not registered"):
            ort.unregister_execution_provider_library("chip")
    finally:
        ort.register_execution_provider_library("chip", LIBRARY)


def test_a_name_is_registered_once(chip: str) -> None:
    with pytest.raises(ort.Fail, match="already registered under chip"):
        ort.register_execution_provider_library("chip", LIBRARY)
    with pytest.raises(ort.Fail, match=f"'{chip}' is provided already"):
        ort.register_execution_provider_library("again", LIBRARY)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("/lib/libep.so", ort.InvalidArgument, "module:attribute"),
        ("no_such_module:FACTORY", ort.EPFail, "No module named 'no_such_module'"),
        ("npu_ep:NAME", ort.EPFail, "is not a factory"),
    ],
)
def test_what_is_no_factory_is_refused(path: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ort.register_execution_provider_library("odd", path)
    assert "odd" not in ort.get_available_providers()


def _policy(policy: ort.OrtExecutionProviderDevicePolicy) -> list[str]:
    options = ort.SessionOptions()
    options.set_provider_selection_policy(policy)
    with ort.InferenceSession(mlp().SerializeToString(), options) as session:
        chosen = session.get_provider_options()
        return [f"{name} {chosen[name].get('device', '')}".strip() for name in chosen]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("DEFAULT", [OPENVINO]),
        ("PREFER_CPU", [OPENVINO]),
        ("PREFER_NPU", [f"{NAME} NPU", OPENVINO]),
        ("PREFER_GPU", [f"{NAME} GPU", OPENVINO]),
        ("MAX_PERFORMANCE", [f"{NAME} GPU", OPENVINO]),
        ("MAX_EFFICIENCY", [f"{NAME} NPU", OPENVINO]),
        ("MIN_OVERALL_POWER", [f"{NAME} NPU", OPENVINO]),
    ],
)
@pytest.mark.usefixtures("chip")
def test_a_policy_chooses_by_device(policy: str, expected: list[str]) -> None:
    found = _policy(ort.OrtExecutionProviderDevicePolicy[policy])
    assert found == [*expected, "CPUExecutionProvider"]


def test_without_the_device_a_policy_takes_the_cpu() -> None:
    found = _policy(ort.OrtExecutionProviderDevicePolicy.PREFER_NPU)
    assert found == [OPENVINO, "CPUExecutionProvider"]


def test_named_providers_win_over_a_policy(chip: str) -> None:
    options = ort.SessionOptions()
    options.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    options.add_provider(chip, {})
    with ort.InferenceSession(mlp().SerializeToString(), options) as session:
        assert session.get_providers() == [chip, "CPUExecutionProvider"]


def test_a_delegate_chooses_with_the_model_in_sight(chip: str) -> None:
    told = {}

    def delegate(devices, metadata, _runtime, most):  # type: ignore[no-untyped-def]
        told.update(metadata, kinds=[d.device.type.name for d in devices], most=most)
        return [d for d in devices if d.ep_name == chip][-1:]

    options = ort.SessionOptions()
    options.set_provider_selection_policy_delegate(delegate)
    with ort.InferenceSession(mlp().SerializeToString(), options) as session:
        assert session.get_provider_options()[chip] == {"device": "GPU"}
    assert told["producer_name"] == "tests"
    assert told["kinds"][:2] == ["NPU", "GPU"]
    assert told["most"] == 8
    compiler = ort.ModelCompiler(
        options, mlp().SerializeToString(), embed_compiled_data_into_model=True
    )
    assert b"ChipExecutionProvider" in compiler.compile_to_bytes()


@pytest.mark.parametrize(
    ("delegate", "message"),
    [
        (lambda *_: [], "did not select anything"),
        (lambda *_: 1 / 0, "EP selection delegate failed: ZeroDivisionError"),
        (lambda devices, *_: list(devices) * 9, "too many EP devices"),
        (lambda *_: ["CPU"], "devices that it was not offered"),
    ],
)
def test_a_delegate_that_fails_is_an_error(delegate, message: str) -> None:  # type: ignore[no-untyped-def]
    options = ort.SessionOptions()
    options.set_provider_selection_policy_delegate(delegate)
    with pytest.raises(ort.Fail, match=message):
        ort.InferenceSession(mlp().SerializeToString(), options)


def test_why_an_execution_provider_does_not_run_on_a_device(
    chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = ort.get_ep_devices()
    own = next(d.device for d in devices if d.ep_name == chip)
    host = next(d.device for d in devices if d.ep_name == OPENVINO)
    reasons = binding.OrtDeviceEpIncompatibilityReason
    details = binding.get_hardware_device_ep_incompatibility_details
    assert details(chip, own)["reasons_bitmask"] == reasons.NONE
    assert details(chip, host)["reasons_bitmask"] == reasons.DEVICE_INCOMPATIBLE
    with pytest.raises(ort.InvalidArgument, match="No valid factory"):
        details("NoExecutionProvider", own)
    monkeypatch.setattr(type(FACTORY), "probe", lambda _self: Probe(reason="no driver"))
    expected = {"reasons_bitmask": reasons.MISSING_DEPENDENCY, "notes": "no driver"}
    assert details(chip, own) == {**expected, "error_code": 0}


def _draw() -> np.ndarray:
    node = helper.make_node("RandomNormal", [], ["y"], shape=[4])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([node], "random", [], [out])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    cpu = ["CPUExecutionProvider"]
    with ort.InferenceSession(made.SerializeToString(), providers=cpu) as session:
        return np.concatenate([session.run(None, {})[0] for _ in range(2)])


def test_a_seed_makes_draws_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    from ort_lite.execution import random_seed  # noqa: PLC0415 - to leave the process as it was

    monkeypatch.setattr(random_seed, "_shared", [])
    ort.set_seed(7)
    first = _draw()
    assert not np.array_equal(first[:4], first[4:])
    ort.set_seed(7)
    np.testing.assert_array_equal(_draw(), first)
    ort.set_seed(8)
    assert not np.array_equal(_draw(), first)


def test_what_the_build_says() -> None:
    assert ort.get_device() == "CPU"
    assert ort.get_version_string() == ort.__version__
    assert ort.__version__ in ort.get_build_info()
    assert ort.has_collective_ops() is False
