"""Devices and the execution providers that run on them, as onnxruntime lists them."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from enum import Enum, IntFlag
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ort_lite import forks
from ort_lite.ep.device_streams import SupportsStreams
from ort_lite.named_enum import NamedIntEnum
from ort_lite.providers import catalog
from ort_lite.providers.memory_info import OrtDeviceMemoryType, OrtMemoryInfo, info_of
from ort_lite.providers.sync_stream import OrtSyncStream
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.ep.device_tensors import DeviceMemory
    from ort_lite.ep.factory import DeviceInfo
    from ort_lite.providers.catalog import ProviderEntry

VENDOR_IDS = {"intel": 0x8086, "amd": 0x1022, "nvidia": 0x10DE, "arm": 0x13B5, "qualcomm": 0x5143}
"""PCI ids by a word of a vendor's name. onnxruntime gives a CPU of AMD 0x1022, too."""
CPUINFO = Path("/proc/cpuinfo")
_VENDORS = MappingProxyType(
    {
        "GenuineIntel": "Intel",
        "AuthenticAMD": "AMD",
        "HygonGenuine": "Hygon",
        "0x41": "ARM",
        "0x51": "Qualcomm",
        "0x61": "Apple",
        "0x4e": "NVIDIA",
    }
)
"""Vendors by the CPUID text of x86 and the implementer number of ARM."""


class OrtHardwareDeviceType(NamedIntEnum):
    """OrtHardwareDeviceType of onnxruntime_c_api.h."""

    CPU = 0
    GPU = 1
    NPU = 2


_TYPES = {
    "CPU": OrtHardwareDeviceType.CPU,
    "GPU": OrtHardwareDeviceType.GPU,
    "NPU": OrtHardwareDeviceType.NPU,
    "ACCELERATOR": OrtHardwareDeviceType.NPU,  # OpenCL's word for what is neither CPU nor GPU
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtHardwareDevice:
    """A device of the machine; the processor is one, whichever execution provider runs on it.

    Attributes:
        vendor: As the driver spells it; of a processor, the word that onnxruntime has for it. ""
            where it is not known.
        vendor_id: PCI id of the vendor; 0 if it is not known.
        device_id: 0: no supported SDK reports the PCI id of a device.
        metadata: `Description`, `Architecture`, where they are known.
    """

    type: OrtHardwareDeviceType
    vendor: str = ""
    vendor_id: int = 0
    device_id: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtEpDevice:
    """An execution provider on a device; `SessionOptions.add_provider_for_devices` takes it.

    Attributes:
        ep_vendor: The installed distribution that the execution provider comes from.
        ep_metadata: `version` of that distribution; `sdk_version` and `os_driver_version`
            where there are such things.
        ep_options: Provider options that open this device.
    """

    ep_name: str
    ep_vendor: str
    device: OrtHardwareDevice
    ep_metadata: Mapping[str, str] = field(default_factory=dict)
    ep_options: Mapping[str, str] = field(default_factory=dict)

    def memory_info(self, device_mem_type: int, /) -> OrtMemoryInfo | None:
        """The memory in which the execution provider reads and writes tensors without a copy.

        Args:
            device_mem_type: Of OrtDeviceMemoryType.

        Returns:
            Host memory for OpenVINO on a CPU. None where the execution provider has no memory of
            that kind, and always for CPUExecutionProvider, as in onnxruntime.

        Raises:
            EPFail: The device cannot be opened.
        """
        kind = OrtDeviceMemoryType(device_mem_type)
        factory = self._factory_with_memory()
        if factory is None:
            return None
        memory = self._open_memory(factory)
        if memory is None:
            return OrtMemoryInfo()
        return info_of(memory.place) if kind == OrtDeviceMemoryType.DEFAULT else None

    def create_sync_stream(self) -> OrtSyncStream:
        """A queue of the device, for `copy_tensors`; OpenCL's sessions run on it, too.

        Its handle is the value of OpenCL's provider option `command_queue`. Copies of OpenVINO
        have been made when they return: its stream has the handle 0 and never waits.

        Raises:
            BindingError: CPUExecutionProvider, in onnxruntime's words; a RuntimeError, too.
            EPFail: The device cannot be opened.
        """
        factory = self._factory_with_memory()
        if factory is None:
            raise BindingError("ep_device does not use DEFAULT memory of a non-CPU device.")
        forks.require_threads(self.ep_name)
        stream = factory.open_stream(self.ep_options)
        if stream is not None:
            forks.note_started(self.ep_name)
        return OrtSyncStream.over(stream)

    def _factory_with_memory(self) -> SupportsStreams | None:
        """The factory of the execution provider; None if it does not know memory of devices."""
        factory = catalog.entries()[self.ep_name].load()
        return factory if isinstance(factory, SupportsStreams) else None

    def _open_memory(self, factory: SupportsStreams) -> DeviceMemory | None:
        """The memory of the device; None for host memory."""
        forks.require_threads(self.ep_name)
        memory = factory.find_memory_of(self.ep_options)
        if memory is not None:
            forks.note_started(self.ep_name)
        return memory


def get_ep_devices() -> list[OrtEpDevice]:
    """Every device of every installed execution provider, in order of preference.

    Raises:
        EPFail: A distribution that provides an execution provider is broken.
    """
    return [
        _ep_device(entry, device)
        for entry in catalog.entries().values()
        for device in entry.load().probe().devices
    ]


def find_ep_device(
    ep_name: str, identity: HardwareIdentity, options: Mapping[str, str]
) -> OrtEpDevice | None:
    """The listed device that an open execution provider runs on; None if it is not listed.

    Args:
        ep_name: Name of the execution provider.
        identity: Of its device.
        options: Provider options that it was opened with; they decide between equal devices.

    Raises:
        EPFail: The distribution that provides it is broken.
    """
    entry = catalog.entries().get(ep_name)
    if entry is None:
        return None
    facts = identity.vendor, identity.device, identity.driver_version
    equal = [
        one
        for one in entry.load().probe().devices
        if (one.identity.vendor, one.identity.device, one.identity.driver_version) == facts
    ]
    named = [one for one in equal if one.options.items() <= options.items()]
    return _ep_device(entry, (named or equal)[0]) if equal else None


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """The devices of the machine, each once.

    The processor is one. A GPU or NPU that two execution providers describe in other words is
    there twice, since no supported SDK reports the PCI address.
    """
    hardware: list[OrtHardwareDevice] = []
    for ep_device in get_ep_devices():
        if ep_device.device not in hardware:
            hardware.append(ep_device.device)
    return hardware


def chosen_provider(
    ep_devices: Sequence[OrtEpDevice], options: Mapping[str, str], *, argument: str
) -> tuple[str, dict[str, str]]:
    """The provider and options that devices of one execution provider mean.

    An execution provider here runs on one device: of several the first one is taken, as
    ONNX Runtime's OpenVINO EP does. The user's options win over the device's.

    Raises:
        InvalidArgument: No device, or devices of several execution providers.
    """
    from ort_lite.status import InvalidArgument  # noqa: PLC0415 - lazy: reload

    if not ep_devices:
        raise InvalidArgument(f"{argument}: Must provide one or more OrtEpDevice instances.")
    names = {device.ep_name for device in ep_devices}
    if len(names) > 1:
        raise InvalidArgument(
            f"{argument}: All OrtEpDevice instances must be for the same execution provider, "
            f"not {sorted(names)}."
        )
    return names.pop(), {**ep_devices[0].ep_options, **options}


def _ep_device(entry: ProviderEntry, device: DeviceInfo) -> OrtEpDevice:
    identity = device.identity
    versions = {
        "version": entry.version,
        "sdk_version": identity.sdk_version,
        "os_driver_version": identity.driver_version,
    }
    return OrtEpDevice(
        ep_name=entry.name,
        ep_vendor=entry.distribution,
        ep_metadata={key: value for key, value in versions.items() if value},
        ep_options=dict(device.options),
        device=hardware_of(device),
    )


def hardware_of(device: DeviceInfo) -> OrtHardwareDevice:
    """Devices of one execution provider, in the form of onnxruntime."""
    if device.kind == "CPU":
        return host_processor()
    vendor_text = f"{device.identity.vendor or device.description}".lower()
    words = vendor_text.replace("(", " ").split()
    ids = [VENDOR_IDS[word] for word in words if word in VENDOR_IDS]
    facts = {"Description": device.description, "Architecture": device.identity.architecture}
    return OrtHardwareDevice(
        type=_TYPES[device.kind],
        vendor=device.identity.vendor,
        vendor_id=ids[0] if ids else 0,
        metadata={key: value for key, value in facts.items() if value},
    )


def host_processor() -> OrtHardwareDevice:
    """The processor, with the vendor's name and number as onnxruntime has them."""
    vendor, model = vendor_and_model()
    facts = {"Description": model, "Architecture": platform.machine()}
    return OrtHardwareDevice(
        type=OrtHardwareDeviceType.CPU,
        vendor=vendor,
        vendor_id=VENDOR_IDS.get(vendor.lower(), 0),
        metadata={key: value for key, value in facts.items() if value},
    )


def vendor_and_model(cpuinfo: Path = CPUINFO) -> tuple[str, str]:
    """The vendor's usual name and the model's; "" for what the system does not say."""
    facts: dict[str, str] = {}
    try:
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    except OSError:
        pass  # no Linux
    code = facts.get("vendor_id") or facts.get("CPU implementer", "")
    known = platform.processor()
    vendor = _VENDORS.get(code) or next((v for c, v in _VENDORS.items() if c in known), "")
    return vendor, facts.get("model name") or known


class OrtDeviceEpIncompatibilityReason(IntFlag):
    """OrtDeviceEpIncompatibilityReason of onnxruntime_c_api.h."""

    __str__ = Enum.__str__  # as the binding's, where IntEnum gives the number
    __format__ = Enum.__format__

    NONE = 0
    DRIVER_INCOMPATIBLE = 1
    DEVICE_INCOMPATIBLE = 2
    MISSING_DEPENDENCY = 4
    UNKNOWN = -2147483648


def get_hardware_device_ep_incompatibility_details(
    ep_name: str, hardware_device: OrtHardwareDevice
) -> dict[str, int | str | None]:
    """Why `ep_name` does not run on a device that `get_hardware_devices` gave.

    Returns:
        `reasons_bitmask` of OrtDeviceEpIncompatibilityReason, 0 if it runs there; `notes`,
        what the execution provider says itself, or None; `error_code`, always 0.
        An execution provider that finds no device at all lacks its SDK or a driver; one that
        finds others does not know this device.

    Raises:
        BindingError: No such execution provider is installed; an InvalidArgument and a
            RuntimeError.
        EPFail: The distribution that provides it is broken.
    """
    entry = catalog.entries().get(ep_name)
    if entry is None:
        raise BindingError(f"No valid factory found for execution provider '{ep_name}'.")
    probe = entry.load().probe()
    reasons = OrtDeviceEpIncompatibilityReason
    if hardware_device in [hardware_of(device) for device in probe.devices]:
        bits, notes = reasons.NONE, None
    elif probe.devices:
        bits, notes = reasons.DEVICE_INCOMPATIBLE, probe.reason
    else:
        bits, notes = reasons.MISSING_DEPENDENCY, probe.reason
    return {"reasons_bitmask": int(bits), "notes": notes or None, "error_code": 0}
