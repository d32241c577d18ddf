"""Checks GPUs and NPUs from the PCI bus to their drivers.

Reasons why an Intel NPU is not usable on Linux, in order: there is no such chip; the kernel has no
driver for it (intel_vpu, Linux 6.3); the user is not in the group of its node in /dev; its
user-mode driver (libze_intel_npu) or the loader (libze_loader) is not installed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ort_lite.cli.checks import Check, State
from ort_lite.cli.npu_drivers import compiler_note, driver_problem, windows_problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PCI_ACCELERATOR = "0x1200"
"""PCI class of processing accelerators, without the interface byte."""
PCI_DISPLAY = "0x03"
"""PCI base class of display controllers."""
VENDORS = {"0x8086": "Intel", "0x1002": "AMD", "0x10de": "NVIDIA", "0x1022": "AMD"}
COMPUTE_ACCELERATORS = (
    r"SYSTEM\CurrentControlSet\Control\Class\{f01a9d53-3ff6-48d2-9f97-c8a7004be10c}"
)
"""Registry key of the drivers of Windows' device class ComputeAccelerator."""
MOST_DRIVERS = 16
LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib")


def check_npu(root: Path, openvino: str = "") -> tuple[Check, ...]:
    """Check the NPU, from the chip to its user-mode driver and its version.

    Args:
        root: Of the file system, "/" but in tests.
        openvino: Version of the installed OpenVINO; "" if absent.
    """
    chips = _pci_devices(root, PCI_ACCELERATOR)
    nodes = sorted((root / "dev/accel").glob("accel*"))
    if not chips and not nodes:
        absence = "no processing accelerator on the PCI bus, no /dev/accel"
        return (Check(name="NPU", state=State.ABSENT, found=absence),)
    if not nodes:
        return (
            Check(
                name="NPU",
                state=State.BROKEN,
                found=f"{', '.join(chips)}, but /dev/accel does not exist",
                fix="load the driver (modprobe intel_vpu); it needs Linux 6.3 or newer",
            ),
        )
    loader, driver = _npu_libraries(root)
    return (_check_access("NPU", nodes, chips), loader, _judge_driver(driver, chips, openvino))


def _judge_driver(driver: Check, chips: Sequence[str], openvino: str) -> Check:
    """The check of the user-mode driver, with what its version is too old for.

    The library of Intel's packages has the driver's version in its name: libze_intel_npu.so.1.28.0.
    """
    if driver.state is not State.OK:
        return driver
    version = driver.found.partition(".so.")[2]
    problem = driver_problem(version, tuple(chip.rpartition(" ")[2] for chip in chips))
    if problem:
        return replace(driver, state=State.BROKEN, fix=problem)
    return replace(driver, fix=compiler_note(version, openvino))


def check_windows_npu(drivers: Sequence[tuple[str, str]]) -> tuple[Check, ...]:
    """Check the versions of NPU drivers on Windows.

    Args:
        drivers: Description and version of each driver, as `windows_npu_drivers` reads them.
    """
    if not drivers:
        return (Check(name="NPU", state=State.ABSENT, found="no driver of a compute accelerator"),)
    problems = [windows_problem(version) for _, version in drivers]
    return tuple(
        Check(
            name="NPU driver",
            state=State.BROKEN if problem else State.OK,
            found=f"{description} {version}",
            fix=problem,
        )
        for (description, version), problem in zip(drivers, problems, strict=True)
    )


def windows_npu_drivers() -> tuple[tuple[str, str], ...]:
    """Description and version of each of Intel's compute-accelerator drivers, on Windows alone."""
    drivers: list[tuple[str, str]] = []
    if sys.platform == "win32":
        import winreg

        for number in range(MOST_DRIVERS):
            try:
                path = rf"{COMPUTE_ACCELERATORS}\{number:04}"
                with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                    names = ("ProviderName", "DriverDesc", "DriverVersion")
                    read = [str(winreg.QueryValueEx(key, name)[0]) for name in names]
            except OSError:
                continue  # numbers have gaps
            if "intel" in read[0].lower():
                drivers.append((read[1], read[2]))
    return tuple(drivers)


def check_gpu(root: Path) -> tuple[Check, ...]:
    """Check the GPU's render node and the registered OpenCL drivers."""
    chips = _pci_devices(root, PCI_DISPLAY)
    nodes = sorted((root / "dev/dri").glob("renderD*"))
    if not nodes:
        absence = f"{', '.join(chips) or 'no display controller'}, no render node in /dev/dri"
        return (Check(name="GPU", state=State.ABSENT, found=absence),)
    drivers = sorted(path.stem for path in (root / "etc/OpenCL/vendors").glob("*.icd"))
    opencl = Check(
        name="OpenCL drivers",
        state=State.OK if drivers else State.BROKEN,
        found=", ".join(drivers) or "none registered in /etc/OpenCL/vendors",
        fix="" if drivers else "install your GPU's OpenCL driver, such as intel-opencl-icd",
    )
    return (_check_access("GPU", nodes, chips), opencl)


def _check_access(name: str, nodes: Sequence[Path], chips: Sequence[str]) -> Check:
    closed = [node for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    shown = ", ".join([*chips, *(node.name for node in nodes)])
    if not closed:
        return Check(name=name, state=State.OK, found=shown)
    return Check(
        name=name,
        state=State.BROKEN,
        found=f"{shown}; no permission to open {closed[0].name}",
        fix=f"join its group and log in again: sudo usermod -aG {_group(closed[0])} $USER",
    )


def _group(node: Path) -> str:
    if sys.platform == "win32":
        return "render"  # device files are Linux's
    try:
        return node.group()
    except KeyError:
        return "render"  # a container's view: the group has a number and no name


def _npu_libraries(root: Path) -> tuple[Check, Check]:
    parts = {
        "Level Zero loader": ("libze_loader.so", "install the package level-zero"),
        "NPU user-mode driver": ("libze_intel_npu.so", "install intel-level-zero-npu"),
    }
    loader, driver = (_library(root, name, *part) for name, part in parts.items())
    return loader, driver


def _library(root: Path, name: str, stem: str, fix: str) -> Check:
    folders = [root / folder for folder in LIBRARY_FOLDERS]
    libraries = [path for folder in folders for path in sorted(folder.glob(f"{stem}*"))]
    if libraries:
        return Check(
            name=name, state=State.OK, found=f"/{libraries[-1].relative_to(root).as_posix()}"
        )
    return Check(name=name, state=State.BROKEN, found=f"no {stem} in the usual folders", fix=fix)


def _pci_devices(root: Path, class_prefix: str) -> list[str]:
    """`Intel 8086:7d1d`, ..., of the PCI devices whose class begins with `class_prefix`."""
    devices = []
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        try:
            if not (folder / "class").read_text().startswith(class_prefix):
                continue
            vendor = (folder / "vendor").read_text().strip()
            device = (folder / "device").read_text().strip()
        except OSError:
            continue  # the device went away while we looked
        devices.append(f"{VENDORS.get(vendor, 'PCI')} {vendor[2:]}:{device[2:]}")
    return devices
