"""Facts of a machine, in the words of the matrix's requirements, without any SDK."""

from __future__ import annotations

import ctypes.util
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ort_lite.hw.windows_facts import (
    WITHOUT_DRIVER,
    chip_and_class,
    list_pci_devices,
    read_processor,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PCI_CLASSES: Mapping[str, str] = {"0x03": "GPU", "0x1200": "NPU"}
"""Beginning of a PCI class to the kind of device."""
NODES = (("GPU", "dri/renderD*"), ("GPU", "nvidia[0-9]*"), ("NPU", "accel/accel*"))
"""Kinds of device to their nodes in /dev; NVIDIA's driver in a container has no render node."""
LOADERS = (
    ("OpenCL.dll", "ze_loader.dll")
    if sys.platform == "win32"
    else ("libOpenCL.so.1", "libze_loader.so.1", "libze_intel_npu.so.1", "libpocl.so.2")
)
START_TIMEOUT_S = 20
LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib",
                   "usr/local/lib")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFile:
    """A node in /dev through which a device is opened.

    Attributes:
        usable: Whether this user may read and write it.
    """

    kind: str
    path: str
    usable: bool
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """Facts about a machine.

    Attributes:
        isa: All CPU flags.
        pci: "vendor:device" to "GPU" or "NPU".
        undriven: Chips of `pci` without a driver, on Windows; on Linux `device_files` say it.
        libraries: Of `LOADERS` and those asked for, where each is; "" if it is not.
        pythons: Interpreters on PATH: "3.12" to the command.
    """

    os: str
    machine: str
    cpu: str
    cores: int
    isa: tuple[str, ...]
    pci: Mapping[str, str] = field(default_factory=dict)
    undriven: tuple[str, ...] = ()
    device_files: tuple[DeviceFile, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)
    pythons: Mapping[str, str] = field(default_factory=dict)


def read_facts(root: Path = Path("/"), libraries: Iterable[str] = ()) -> MachineFacts:
    """Look at the machine.

    Args:
        root: Of the file system; another one in tests.
        libraries: Shared libraries to look for besides those of `LOADERS`.
    """
    on_windows = sys.platform == "win32" and root == Path("/")
    name, flags = read_processor() if on_windows else _cpu(root)
    pci, undriven = _windows_pci(list_pci_devices()) if on_windows else (_pci(root), ())
    libraries_to_find = dict.fromkeys((*LOADERS, *libraries))
    return MachineFacts(
        os=platform.system().lower(),
        machine=platform.machine().lower().replace("amd64", "x86_64"),
        cpu=name or platform.processor() or platform.machine(),
        cores=os.cpu_count() or 1,
        isa=flags,
        pci=pci,
        undriven=undriven,
        device_files=tuple(n for kind, files in NODES for n in _nodes(root, kind, files)),
        libraries={library: find_library(root, library) for library in libraries_to_find},
        pythons=_pythons(),
    )


def find_library(root: Path, name: str) -> str:
    """Path of a shared library in the usual folders; "" if it does not exist."""
    if name.endswith(".dll"):
        system = Path(os.environ.get("SYSTEMROOT", "")) / "System32" / name
        return str(system) if sys.platform == "win32" and system.is_file() else ""
    for folder in LIBRARY_FOLDERS:
        if (root / folder / name).is_file():
            return f"/{folder}/{name}"
    short = name.removeprefix("lib").partition(".so")[0]
    library = ctypes.util.find_library(short) if root == Path("/") else None
    return library if library == name else ""


def _cpu(root: Path) -> tuple[str, tuple[str, ...]]:
    try:
        lines = (root / "proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "", ()  # not Linux
    pairs = [line.partition(":") for line in lines]
    facts = {key.strip(): value.strip() for key, _, value in reversed(pairs)}
    flags = facts.get("flags", facts.get("Features", "")).split()
    return facts.get("model name", ""), tuple(sorted(set(flags)))


def _pci(root: Path) -> dict[str, str]:
    devices = {}
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        try:
            kind_text = (folder / "class").read_text().strip()
            ids = [(folder / part).read_text().strip()[2:] for part in ("vendor", "device")]
        except OSError:
            continue  # the device went away while we looked
        kind = _kind_of_class(kind_text)
        if kind:
            devices[":".join(ids)] = kind
    return devices


def _windows_pci(
    devices: Iterable[tuple[Iterable[str], str]],
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Accelerators among PCI devices, and those without a driver.

    Args:
        devices: Hardware IDs and service of each.
    """
    pci: dict[str, str] = {}
    driven = set()
    for hardware_ids, service in devices:
        chip, kind_text = chip_and_class(hardware_ids) or ("", "")
        kind = _kind_of_class(kind_text)
        if kind:
            pci[chip] = kind
            if service.lower() not in WITHOUT_DRIVER:
                driven.add(chip)
    return pci, tuple(chip for chip in pci if chip not in driven)


def _kind_of_class(text: str) -> str:
    return next((kind for start, kind in PCI_CLASSES.items() if text.startswith(start)), "")


def _nodes(root: Path, kind: str, pattern: str) -> list[DeviceFile]:
    return [
        DeviceFile(
            kind=kind,
            path=f"/{path.relative_to(root).as_posix()}",
            usable=os.access(path, os.R_OK | os.W_OK),
            group=_group(path),
        )
        for path in sorted((root / "dev").glob(pattern))
    ]


def _group(path: Path) -> str:
    if sys.platform == "win32":
        return ""  # device files are Linux's
    try:
        return path.group()
    except KeyError:
        return str(path.stat().st_gid)  # a container's view: the group has no name


def _pythons() -> dict[str, str]:
    names = {f"3.{minor}": shutil.which(f"python3.{minor}") for minor in range(11, 16)}
    return {version: command for version, command in names.items() if command and _starts(command)}


def _starts(python: str) -> bool:
    """Whether an interpreter runs; a version manager's stand-in for a missing one does not."""
    try:
        done = subprocess.run(
            [python, "-c", ""], capture_output=True, check=False, timeout=START_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
