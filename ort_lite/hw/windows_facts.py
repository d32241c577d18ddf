"""CPU and accelerators of a Windows machine, without any SDK.

SetupAPI lists the PCI devices that are present. Their hardware IDs contain the chip and its class
(Microsoft, "Identifiers for PCI Devices"); a device without a service has no driver.
"""

from __future__ import annotations

import ctypes
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FEATURES = {36: "ssse3", 37: "sse4_1", 38: "sse4_2", 39: "avx", 40: "avx2", 41: "avx512f"}
"""Arguments of IsProcessorFeaturePresent (winnt.h) to CPU flags as Linux spells them."""
PROCESSOR = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
WITHOUT_DRIVER = ("", "basicdisplay")
"""Services of devices without a vendor's driver: Windows shows a picture by BasicDisplay."""
_ID = re.compile(r"PCI\\VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})&CC_([0-9A-F]{4})", re.IGNORECASE)
MOST_LETTERS = 4096
PRESENT, OF_ALL_CLASSES = 2, 4
"""Flags of SetupDiGetClassDevs (setupapi.h): DIGCF_PRESENT, DIGCF_ALLCLASSES."""
HARDWARE_ID, SERVICE = 1, 4
"""Properties of a device (setupapi.h): SPDRP_HARDWAREID, SPDRP_SERVICE."""


class DeviceData(ctypes.Structure):
    """SP_DEVINFO_DATA of setupapi.h."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("class_guid", ctypes.c_byte * 16),
        ("instance", ctypes.c_uint32),
        ("reserved", ctypes.c_void_p),
    )


def chip_and_class(hardware_ids: Iterable[str]) -> tuple[str, str] | None:
    r"""Chip and PCI class of a device, as "8086:643e" and "0x1200"; None if they are not told.

    Args:
        hardware_ids: Such as `PCI\VEN_8086&DEV_643E&CC_1200`.
    """
    match = next(filter(None, map(_ID.match, hardware_ids)), None)
    if match is None:
        return None
    vendor, device, kind = (part.lower() for part in match.groups())
    return f"{vendor}:{device}", f"0x{kind}"


def read_processor() -> tuple[str, tuple[str, ...]]:
    """The CPU's name and flags; nothing on other systems."""
    name, flags = "", list[str]()
    if sys.platform == "win32":
        import winreg  # noqa: PLC0415 - lazy: rare

        with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, PROCESSOR) as key:
            name = str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
        has = ctypes.WinDLL("kernel32").IsProcessorFeaturePresent
        flags = sorted(flag for number, flag in FEATURES.items() if has(number))
    return name, tuple(flags)


def list_pci_devices() -> tuple[tuple[tuple[str, ...], str], ...]:
    """Hardware IDs and service of each PCI device that is present; nothing on other systems."""
    devices: list[tuple[tuple[str, ...], str]] = []
    if sys.platform == "win32":
        api = ctypes.WinDLL("setupapi")
        api.SetupDiGetClassDevsW.restype = ctypes.c_void_p
        listed = ctypes.c_void_p(
            api.SetupDiGetClassDevsW(None, "PCI", None, PRESENT | OF_ALL_CLASSES)
        )
        if listed.value in (None, ctypes.c_void_p(-1).value):
            return ()
        device = DeviceData(size=ctypes.sizeof(DeviceData))
        buffer = ctypes.create_unicode_buffer(MOST_LETTERS)

        def texts(which: int) -> tuple[str, ...]:
            read = api.SetupDiGetDeviceRegistryPropertyW(
                *(listed, ctypes.byref(device), which, None),
                *(buffer, ctypes.sizeof(buffer), None),
            )
            text = "".join(buffer[:]).partition("\0\0")[0]
            return tuple(filter(None, text.split("\0"))) if read else ()

        while api.SetupDiEnumDeviceInfo(listed, len(devices), ctypes.byref(device)):
            devices.append((texts(HARDWARE_ID), "".join(texts(SERVICE)[:1])))
        api.SetupDiDestroyDeviceInfoList(listed)
    return tuple(devices)
