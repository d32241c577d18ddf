"""A row's requirements against a machine: what the machine lacks."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from ort_lite.hw.chips import chip_text
from ort_lite.hw.version_range import is_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.hw.facts import Facts
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Require

HERE = ".".join(platform.python_version_tuple()[:2])


def machine_lacks(row: ExpandedRow, facts: Facts) -> tuple[str, ...]:
    """What the machine lacks as far as it can be seen without the row's environment.

    An empty answer is no promise: only the row's own probe sees drivers and architectures.
    """
    lacks = [problem for require in row.requires for problem in _seen(require, facts)]
    if row.python and row.python != HERE and row.python not in facts.pythons:
        have = ", ".join(sorted({HERE, *facts.pythons}))
        lacks.append(f"needs Python {row.python}, here is {have}")
    if row.device in ("GPU", "NPU"):
        lacks += _device_file(row.device, facts)
    return tuple(dict.fromkeys(lacks))


def device_lacks(row: ExpandedRow, identity: HardwareIdentity) -> tuple[str, ...]:
    """What the device that the row's own environment found lacks."""
    return tuple(p for require in row.requires for p in _identified(require, identity))


def _seen(require: Require, facts: Facts) -> Iterator[str]:
    if require.os and require.os != facts.os:
        yield f"needs {require.os}, this is {facts.os}"
    if require.machine and require.machine != facts.machine:
        yield f"needs a {require.machine} machine, this is {facts.machine}"
    missing = [flag for flag in require.isa if flag not in facts.isa]
    if missing:
        yield f"needs a CPU with {', '.join(missing)}; {facts.cpu} has not"
    if require.pci and not set(require.pci) & set(facts.pci):
        wanted = " or ".join(map(chip_text, require.pci))
        have = ", ".join(map(chip_text, facts.pci)) or "no accelerator or display controller"
        yield f"needs the chip {wanted}, on the PCI bus is {have}"
    for library in require.libraries:
        if not facts.libraries.get(library):
            yield f"needs {library}, which is not in the usual folders"


def _device_file(kind: str, facts: Facts) -> list[str]:
    """On Linux a GPU or NPU is opened through a node in /dev."""
    if facts.os != "linux":
        return []
    nodes = [node for node in facts.device_files if node.kind == kind]
    if not nodes:
        folder = "/dev/accel" if kind == "NPU" else "/dev/dri"
        chips = [chip for chip, of in facts.pci.items() if of == kind]
        seen = (
            f"; on the PCI bus is {', '.join(map(chip_text, chips))}, without a driver"
            if chips
            else ""
        )
        return [f"needs a {kind}; {folder} has none{seen}"]
    if any(node.usable for node in nodes):
        return []
    node = nodes[0]
    return [f"needs permission for {node.path}: sudo usermod -aG {node.group} $USER"]


def _identified(require: Require, identity: HardwareIdentity) -> Iterator[str]:
    texts: Mapping[str, tuple[str, str]] = {
        "vendor": (require.vendor, f"{identity.vendor} {identity.device}"),
        "architecture": (require.architecture, identity.architecture),
    }
    for name, (wanted, found) in texts.items():
        if wanted and wanted.lower() not in found.lower():
            yield f"needs {name} {wanted}, found '{found.strip()}'"
    ranges = {
        "driver": (require.driver, identity.driver_version),
        "SDK": (require.sdk, identity.sdk_version),
    }
    for name, (wanted, found) in ranges.items():
        if wanted and not is_within(found, wanted):
            yield f"needs {name} {wanted}, found '{found}'"
