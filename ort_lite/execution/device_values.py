"""The memory behind a device's name: of a session, or of any installed execution provider."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ort_lite import forks
from ort_lite.ep.device_tensors import SupportsForeignTensors, SupportsMemoryLookup
from ort_lite.providers.memory_info import KHRONOS, OrtDevice, OrtMemoryInfo, is_host, read_device
from ort_lite.status import BindingError, EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np

    from ort_lite.ep.device_tensors import DeviceMemory, DeviceTensor, MemoryPlace

_KINDS = {1: "gpu", 3: "npu"}
OWN_ALLOCATORS = frozenset(("OpenVINO_GPU", "OpenVINO_RT_NPU"))
"""Allocators of one execution provider; another one may have memory of the same device."""

_known: WeakValueDictionary[tuple[object, ...], DeviceMemory] = WeakValueDictionary()
"""By the arguments of `_find_anywhere`, while a session or a tensor uses it: looking for execution
providers and their SDKs takes half a millisecond, and a decoder has 48 caches."""


def find_memory(
    device_type: str | OrtDevice | OrtMemoryInfo,
    device_id: int = 0,
    vendor_id: int = -1,
    known: Sequence[DeviceMemory] = (),
) -> DeviceMemory | None:
    """The memory of a device; None for the host's.

    Args:
        device_type: A name ("cpu", "opencl", "gpu", "npu"), or an object with all three.
        device_id: Number of the device among those of its kind.
        vendor_id: PCI id of its vendor; negative for any.
        known: Memory of a session, which is preferred.

    Raises:
        BindingError: No execution provider that is installed has such a device.
        EPFail: The device cannot be opened.
    """
    problem, allocator = "Can't allocate memory on the device", ""
    if isinstance(device_type, OrtMemoryInfo):
        place = device_type
        problem = f"No shared allocator found for: {place}"  # onnxruntime's text
        device = OrtDevice(
            *(place.device_type(), 0, place.device_vendor_id, place.device_id)  # as in OrtDevice
        )
        allocator = place.name if place.name in OWN_ALLOCATORS else ""
    else:
        device = read_device(device_type, device_id, vendor_id)
    if is_host(device):
        return None
    for memory in known:
        if _fits(memory.place, device) and allocator in ("", memory.place.allocator):
            return memory
    return _find_anywhere(device, problem, allocator)


def adopt(data: object, shape: Sequence[int] | None, dtype: np.dtype[Any] | None) -> DeviceTensor:
    """A tensor in memory that an object of another library owns; see `SupportsForeignTensors`.

    Raises:
        BindingError: No execution provider knows the library; or as `SupportsForeignTensors.adopt`.
        EPFail: The SDK failed.
    """
    from ort_lite.providers.catalog import entries  # noqa: PLC0415 - lazy: rare

    for entry in entries().values():
        factory = entry.load()
        if isinstance(factory, SupportsForeignTensors):
            tensor = factory.adopt(data, shape, dtype)
            if tensor is not None:
                forks.note_started(factory.name)
                return tensor
    raise BindingError(
        f"no execution provider shares memory with a {type(data).__module__}."
        f"{type(data).__name__}; expected a pyopencl.array.Array or a pyopencl.Buffer"
    )


def lend(tensor: DeviceTensor, queue: object) -> object:
    """An array of another library over a tensor's memory; see `SupportsForeignTensors`.

    Raises:
        BindingError: The tensor's memory cannot be shared; or as `SupportsForeignTensors.lend`.
    """
    from ort_lite.providers.catalog import entries  # noqa: PLC0415 - lazy: rare

    for entry in entries().values():
        factory = entry.load()
        if isinstance(factory, SupportsForeignTensors):
            array = factory.lend(tensor, queue)
            if array is not None:
                return array
    raise BindingError(
        f"a value in memory of {tensor.memory.place.name} is not in that of an OpenCL device"
    )


def _fits(place: MemoryPlace, device: OrtDevice) -> bool:
    numbers = device.device_type(), device.device_id()
    any_vendor = not device.device_vendor_id() and place.vendor_id != KHRONOS
    return numbers == (place.device_type, place.device_id) and (
        any_vendor or device.device_vendor_id() == place.vendor_id
    )


def _find_anywhere(device: OrtDevice, problem: str, allocator: str) -> DeviceMemory:
    from ort_lite.providers.catalog import registered  # noqa: PLC0415 - lazy: rare

    numbers = device.device_type(), device.device_vendor_id(), device.device_id()
    key = *numbers, allocator, *registered
    memory = _known.get(key)
    if memory is None:
        memory = _known[key] = _ask_providers(device, problem, allocator)
    return memory


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_known.clear)  # of SDKs whose threads are not in the child


def _ask_providers(device: OrtDevice, problem: str, allocator: str) -> DeviceMemory:
    from ort_lite.providers.catalog import entries  # noqa: PLC0415 - lazy: rare

    vendor = device.device_vendor_id()
    name = "opencl" if vendor == KHRONOS else _KINDS.get(device.device_type(), "")
    problems = []
    for entry in entries().values():
        factory = entry.load()
        if not isinstance(factory, SupportsMemoryLookup):
            continue
        forks.require_threads(factory.name)
        try:
            memory = factory.find_memory(name, device.device_id(), vendor or -1)
        except EPFail as exc:
            problems.append(exc.message)
            continue
        if memory is not None and allocator in ("", memory.place.allocator):
            forks.note_started(factory.name)
            return memory
    why = f": {'; '.join(problems)}" if problems else ""
    raise BindingError(
        f"{problem} (type {device.device_type()}, vendor {vendor:#x}, id {device.device_id()}) "
        "using this package: no execution provider that is installed has tensors there"
        f"{why}. ort_lite.get_ep_devices() lists the devices that are here."
    )
