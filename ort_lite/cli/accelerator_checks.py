"""Checks GPUs and NPUs from the PCI bus to their drivers.

Reasons why an Intel NPU is not usable on Linux, in order: there is no such chip; the kernel has no
driver for it (intel_vpu, Linux 6.3); the user is not in the group of its node in /dev; its
user-mode driver (libze_intel_npu) or the loader (libze_loader) is not installed.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ort_lite.cli.checks import Check, State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PCI_ACCELERATOR = "0x1200"
"""PCI class of processing accelerators, without the interface byte."""
PCI_DISPLAY = "0x03"
"""PCI base class of display controllers."""
VENDORS = {"0x8086": "Intel", "0x1002": "AMD", "0x10de": "NVIDIA", "0x1022": "AMD"}
LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib")


def check_npu(root: Path) -> tuple[Check, ...]:
    """Check the NPU, from the chip to its user-mode driver.

    Args:
        root: Of the file system, "/" but in tests.
    """
    chips = _pci_devices(root, PCI_ACCELERATOR)
    nodes = sorted((root / "dev/accel").glob("accel*"))
    if not chips and not nodes:
        found = "no processing accelerator on the PCI bus, no /dev/accel"
        return (Check(name="NPU", state=State.ABSENT, found=found),)
    if not nodes:
        return (
            Check(
                name="NPU",
                state=State.BROKEN,
                found=f"{', '.join(chips)}, but there is no /dev/accel",
                fix="load the driver (modprobe intel_vpu); it needs Linux 6.3 or newer",
            ),
        )
    return (_openable("NPU", nodes, chips), *_npu_libraries(root))


def check_gpu(root: Path) -> tuple[Check, ...]:
    """Check the GPU's render node and the registered OpenCL drivers."""
    chips = _pci_devices(root, PCI_DISPLAY)
    nodes = sorted((root / "dev/dri").glob("renderD*"))
    if not nodes:
        found = f"{', '.join(chips) or 'no display controller'}, no render node in /dev/dri"
        return (Check(name="GPU", state=State.ABSENT, found=found),)
    drivers = sorted(path.stem for path in (root / "etc/OpenCL/vendors").glob("*.icd"))
    opencl = Check(
        name="OpenCL drivers",
        state=State.OK if drivers else State.BROKEN,
        found=", ".join(drivers) or "none registered in /etc/OpenCL/vendors",
        fix="" if drivers else "install your GPU's OpenCL driver, such as intel-opencl-icd",
    )
    return (_openable("GPU", nodes, chips), opencl)


def _openable(name: str, nodes: Sequence[Path], chips: Sequence[str]) -> Check:
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


def _npu_libraries(root: Path) -> tuple[Check, ...]:
    parts = {
        "Level Zero loader": ("libze_loader.so", "install the package level-zero"),
        "NPU user-mode driver": ("libze_intel_npu.so", "install intel-level-zero-npu"),
    }
    return tuple(_library(root, name, *part) for name, part in parts.items())


def _library(root: Path, name: str, stem: str, fix: str) -> Check:
    folders = [root / folder for folder in LIBRARY_FOLDERS]
    found = [path for folder in folders for path in sorted(folder.glob(f"{stem}*"))]
    if found:
        return Check(name=name, state=State.OK, found=f"/{found[-1].relative_to(root).as_posix()}")
    return Check(name=name, state=State.BROKEN, found=f"no {stem} in the usual folders", fix=fix)


def _pci_devices(root: Path, wanted: str) -> list[str]:
    """`Intel 8086:7d1d`, ..., of the PCI devices whose class begins with `wanted`."""
    found = []
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        try:
            if not (folder / "class").read_text().startswith(wanted):
                continue
            vendor = (folder / "vendor").read_text().strip()
            device = (folder / "device").read_text().strip()
        except OSError:
            continue  # the device went away while we looked
        found.append(f"{VENDORS.get(vendor, 'PCI')} {vendor[2:]}:{device[2:]}")
    return found
