"""Vendor and model of the machine's processor."""

from __future__ import annotations

import platform
from pathlib import Path
from types import MappingProxyType

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
