"""What of a machine decides which devices execution providers find, without asking a driver."""

from __future__ import annotations

import os
import sys

from ort_lite.ep.installation import stamp_files
from ort_lite.processor import machine_name

CPU_FEATURES = "/sys/devices/system/cpu/modalias"
"""Family, model and feature bits of the CPU in one line (Documentation/x86/cpuinfo of Linux)."""
DEVICE_FOLDERS = ("/dev/dri", "/dev/accel")
DEVICE_FILES = ("/dev/kfd", "/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
DRIVER_MODULES = ("amdgpu", "i915", "intel_vpu", "nvidia", "xe")
LIBRARIES = ("/etc/ld.so.cache", "/etc/OpenCL/vendors")


def machine_fields() -> dict[str, str]:
    """CPU, system, device files and installed drivers, each as text; reading them takes 0.2 ms."""
    return {
        "machine.cpu": _read_line(CPU_FEATURES) or os.environ.get("PROCESSOR_IDENTIFIER", ""),
        "machine.system": _system(),
        "machine.devices": ";".join(_device_names()),
        "machine.drivers": ";".join(
            f"{name} {_read_line(f'/sys/module/{name}/srcversion')}"
            for name in DRIVER_MODULES
            if os.path.isdir(f"/sys/module/{name}")
        ),
        "machine.libraries": stamp_files(LIBRARIES),
    }


def _system() -> str:
    if sys.platform == "win32":
        version = sys.getwindowsversion()
        return f"Windows {version.major}.{version.minor}.{version.build} {machine_name()}"
    system = os.uname()
    return f"{system.sysname} {system.release} {system.version} {system.machine}"


def _device_names() -> list[str]:
    """Device files, with whether this process may open them: an EP finds no others."""
    names = [path for path in DEVICE_FILES if os.path.exists(path)]
    for folder in DEVICE_FOLDERS:
        if os.path.isdir(folder):
            names += sorted(os.path.join(folder, name) for name in os.listdir(folder))
    return [f"{name} {os.access(name, os.R_OK | os.W_OK):d}" for name in names]


def _read_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
