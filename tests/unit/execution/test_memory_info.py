"""Descriptions of memory: names and numbers are onnxruntime's."""

from __future__ import annotations

from typing import Any

import onnxruntime
import pytest

import ort_lite as ort

BOTH = pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
NAMES = ("cpu", "cuda", "cann", "dml", "gpu", "npu", "webgpu")
ENUMS = ("OrtAllocatorType", "OrtDeviceMemoryType", "OrtMemType", "OrtMemoryInfoDeviceType")
ALLOCATORS = (
    *("Cpu", "Cuda", "CudaPinned", "DML", "Hip", "HipPinned", "OpenVINO_GPU"),
    *("OpenVINO_RT_NPU", "QnnHtpShared", "WebGPU_Buf"),
)


def device_facts(module: Any, name: str, *vendor: int) -> tuple[int, ...]:
    device = module.OrtDevice.make(name, 1, *vendor)
    inner = device._get_c_device()
    outer = (
        device.device_type(),
        device.device_id(),
        device.device_vendor_id(),
        device.device_mem_type(),
    )
    assert outer == (inner.device_type(), inner.device_id(), inner.vendor_id(), inner.mem_type())
    return outer


@pytest.mark.parametrize("name", NAMES)
def test_a_device_has_their_numbers(name: str) -> None:
    for vendor in ((), (-1,), (0x8086,), (0,)):
        assert device_facts(ort, name, *vendor) == device_facts(onnxruntime, name, *vendor)


def test_kinds_of_devices_have_their_numbers() -> None:
    inner = onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice
    for name in ("cann", "cpu", "cuda", "default_memory", "dml", "fpga", "gpu", "npu", "webgpu"):
        assert getattr(ort.OrtDevice, name)() == getattr(inner, name)(), name
    assert dict(ort.OrtDeviceVendorId.__members__) == dict(
        onnxruntime.OrtDeviceVendorId.__members__
    )


@BOTH
def test_a_device_is_made_of_numbers_or_of_another(module: Any) -> None:
    inner = module.OrtDevice.make("cpu", 0)._get_c_device()
    made = [type(inner)(1, 0, 7), type(inner)(1, 0, 0x10DE, 7)]
    assert [(d.device_type(), d.vendor_id(), d.device_id()) for d in made] == [
        (1, 0, 7),
        (1, 0x10DE, 7),
    ]
    assert module.OrtDevice(made[1]).device_vendor_id() == 0x10DE
    with pytest.raises(ValueError, match="`Provided object` needs to be of type"):
        module.OrtDevice(3)
    with pytest.raises(TypeError):
        type(inner)(1, 0)
    with pytest.raises(Exception, match="Unsupported device type: tpu"):
        module.OrtDevice.make("tpu", 0)


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_are_theirs(name: str) -> None:
    mine, expected = getattr(ort, name), getattr(onnxruntime, name)
    assert {k: int(v) for k, v in mine.__members__.items()} == {
        k: int(v) for k, v in expected.__members__.items()
    }
    for member in mine:
        assert str(member) == str(expected(int(member)))


def memory_facts(info: Any) -> tuple[Any, ...]:
    return (
        info.name,
        info.device_id,
        int(info.allocator_type),
        int(info.mem_type),
        int(info.device_mem_type),
        info.device_vendor_id,
    )


@pytest.mark.parametrize("name", ALLOCATORS)
def test_memory_by_the_name_of_an_allocator_is_theirs(name: str) -> None:
    def made(module: Any) -> tuple[Any, ...]:
        kind = module.OrtAllocatorType.ORT_ARENA_ALLOCATOR
        return memory_facts(module.OrtMemoryInfo(name, kind, 3, module.OrtMemType.CPU))

    assert made(ort) == made(onnxruntime)


@pytest.mark.parametrize("kind", ["CPU", "GPU", "NPU", "FPGA"])
@pytest.mark.parametrize("memory", ["DEFAULT", "HOST_ACCESSIBLE"])
def test_memory_of_any_device_is_theirs(kind: str, memory: str) -> None:
    def made(module: Any) -> tuple[Any, ...]:
        info = module.OrtMemoryInfo.create_v2(
            "mine",
            module.OrtMemoryInfoDeviceType.__members__[kind],
            0x10DE,
            2,
            module.OrtDeviceMemoryType.__members__[memory],
            64,
            module.OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
        )
        return memory_facts(info)

    assert made(ort) == made(onnxruntime)


@BOTH
def test_memory_that_cannot_be_is_refused(module: Any) -> None:
    kind = module.OrtAllocatorType.ORT_DEVICE_ALLOCATOR
    with pytest.raises(RuntimeError, match="Specified device is not supported"):
        module.OrtMemoryInfo("Abacus", kind, 0, module.OrtMemType.DEFAULT)
    gpu = module.OrtMemoryInfo("Cuda", kind, 0, module.OrtMemType.DEFAULT)
    with pytest.raises(RuntimeError):
        module.OrtValue.ortvalue_from_shape_and_type([2], "float32", memory_info=gpu)
