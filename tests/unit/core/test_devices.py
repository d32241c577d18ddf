"""Devices as values, and sessions made for them."""

from __future__ import annotations

import numpy as np
import pytest
from context_models import OPENVINO
from small_models import feed, mlp

import ort_lite as ort


def of(ep: str) -> list[ort.OrtEpDevice]:
    return [device for device in ort.get_ep_devices() if device.ep_name == ep]


def test_every_device_opens_its_execution_provider() -> None:
    for device in ort.get_ep_devices():
        options = ort.SessionOptions()
        options.add_provider_for_devices([device])
        with ort.InferenceSession(mlp().SerializeToString(), options) as session:
            assert session.get_providers()[0] == device.ep_name
            assert session.run(None, feed(mlp()))[0].shape == (2, 3)


def test_a_session_runs_on_the_device_that_was_named() -> None:
    """Two platforms on one processor are two devices of the OpenCL EP."""
    for device in of("OpenCLExecutionProvider"):
        options = ort.SessionOptions()
        options.add_provider_for_devices([device])
        with ort.InferenceSession(mlp().SerializeToString(), options) as session:
            identity = session._present().eps[0].identity
        assert identity.driver_version == device.ep_metadata["os_driver_version"]


def test_a_device_says_what_it_is() -> None:
    device = of(OPENVINO)[0]
    assert device.ep_vendor == "ort_lite"
    assert device.ep_metadata["version"] == ort.__version__
    assert device.ep_metadata["sdk_version"].startswith("20")
    assert device.ep_options == {"device_type": "CPU"}
    assert device.device.type is ort.OrtHardwareDeviceType.CPU
    assert device.device.metadata["Description"]
    assert device.device in ort.get_hardware_devices()


def test_options_of_the_user_win_over_those_of_the_device() -> None:
    options = ort.SessionOptions()
    options.add_provider_for_devices(of(OPENVINO), {"precision": "FP32", "device_type": "AUTO"})
    assert options.providers == ((OPENVINO, {"device_type": "AUTO", "precision": "FP32"}),)


def test_devices_of_two_execution_providers_are_refused() -> None:
    devices = [of(OPENVINO)[0], of("CPUExecutionProvider")[0]]
    with pytest.raises(ort.InvalidArgument, match="must be for the same execution provider"):
        ort.SessionOptions().add_provider_for_devices(devices)
    with pytest.raises(RuntimeError, match="must be for the same execution provider"):
        ort.get_model_compatibility_for_ep_devices(devices, "")


def test_the_default_ep_stays_behind_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ort.SessionOptions()
    options.add_provider_for_devices(of(OPENVINO))
    with ort.InferenceSession(mlp().SerializeToString(), options) as session:
        assert session.get_providers() == [OPENVINO, "CPUExecutionProvider"]
        (found,) = session.run(None, feed(mlp()))
    assert np.isfinite(found).all()
