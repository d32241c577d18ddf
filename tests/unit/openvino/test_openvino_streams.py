"""Memory and streams of OpenVINO's CPU, which reads and writes host memory."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import mlp

import ort_lite as ort
from eps.openvino import FACTORY

pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenVINO here")
NAME = "OpenVINOExecutionProvider"


@pytest.fixture(scope="module")
def cpu() -> ort.OrtEpDevice:
    return next(
        one
        for one in ort.get_ep_devices()
        if one.ep_name == NAME and one.ep_options == {"device_type": "CPU"}
    )


@pytest.mark.parametrize("kind", ort.OrtDeviceMemoryType)
def test_its_memory_is_the_hosts(cpu: ort.OrtEpDevice, kind: ort.OrtDeviceMemoryType) -> None:
    info = cpu.memory_info(kind)
    assert info is not None
    value = ort.OrtValue.ortvalue_from_shape_and_type([3], np.float32, memory_info=info)
    assert (info.name, value.device_name()) == ("Cpu", "cpu")


def test_copies_on_its_stream_have_been_made_when_they_return(cpu: ort.OrtEpDevice) -> None:
    stream = cpu.create_sync_stream()
    assert stream.get_handle() == 0
    source = ort.OrtValue.ortvalue_from_numpy(np.arange(3, dtype=np.float32))
    place = ort.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    ort.copy_tensors([source], [place], stream)
    assert place.numpy().tolist() == [0, 1, 2]
    stream.synchronize()


def test_a_session_names_it(cpu: ort.OrtEpDevice) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=[NAME])
    assert session.get_input_epdevices() == [cpu]
    (info,) = session.get_input_memory_infos()
    assert info.name == "Cpu"
