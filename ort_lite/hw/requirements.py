"""Compares a row's requirements with a machine and its device.

NPU platforms and chips: openvinotoolkit/openvino, src/plugins/intel_npu/README.md, "Supported
Platforms"; an NPU's DEVICE_ARCHITECTURE has the same numbers. Linux' drivers/accel/ivpu/ivpu_drv.h
knows these chips too, and Nova Lake's (8086:d71d), which the vendor's table does not have yet.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ort_lite.hw.patterns import is_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Require


@dataclass(frozen=True, slots=True)
class NpuChip:
    """An NPU by its chip.

    Attributes:
        platform: As `architecture` is required: "4000".
        host: The processor family that it is part of.
    """

    platform: str
    host: str


NPU_CHIPS: Mapping[str, NpuChip] = {
    "8086:7d1d": NpuChip("3720", "Meteor Lake"),
    "8086:ad1d": NpuChip("3720", "Arrow Lake"),
    "8086:643e": NpuChip("4000", "Lunar Lake"),
    "8086:b03e": NpuChip("5010", "Panther Lake"),
    "8086:fd3e": NpuChip("5020", "Wildcat Lake"),
}


def chip_text(chip: str) -> str:
    """`8086:643e (NPU 4000, Lunar Lake)`, or the chip alone."""
    npu = NPU_CHIPS.get(chip)
    return f"{chip} (NPU {npu.platform}, {npu.host})" if npu else chip


HERE = ".".join(platform.python_version_tuple()[:2])


def machine_lacks(row: ExpandedRow, facts: MachineFacts) -> tuple[str, ...]:
    """Requirements that the machine does not meet, as far as visible without the row's environment.

    An empty result is not a promise: only the row's own probe sees drivers and architectures.
    On another system nothing else is looked at.
    """
    systems = [require.os for require in row.requires if require.os not in ("", facts.os)]
    if systems:
        return (f"needs {systems[0]}, this is {facts.os}",)
    lacks = [problem for require in row.requires for problem in _lacks_of_machine(require, facts)]
    if row.python and row.python != HERE and row.python not in facts.pythons:
        have = ", ".join(sorted({HERE, *facts.pythons}))
        lacks.append(f"needs Python {row.python}; found {have}")
    if row.device in ("GPU", "NPU"):
        judge = _lacks_driven_chip if facts.os == "windows" else _lacks_device_file
        lacks += judge(row.device, facts)
    return tuple(dict.fromkeys(lacks))


def device_lacks(row: ExpandedRow, identity: HardwareIdentity) -> tuple[str, ...]:
    """Requirements that the row's device does not meet."""
    return tuple(p for require in row.requires for p in _lacks_of_device(require, identity))


def _lacks_of_machine(require: Require, facts: MachineFacts) -> Iterator[str]:
    if require.machine and require.machine != facts.machine:
        yield f"needs a {require.machine} machine, this is {facts.machine}"
    missing = [flag for flag in require.isa if flag not in facts.isa]
    if missing:
        yield f"needs a CPU with {', '.join(missing)}, which {facts.cpu} lacks"
    if require.pci and not set(require.pci) & set(facts.pci):
        chips = " or ".join(map(chip_text, require.pci))
        have = ", ".join(map(chip_text, facts.pci)) or "no accelerator or display controller"
        yield f"needs the chip {chips}; the PCI bus has {have}"
    for library in require.libraries:
        if not facts.libraries.get(library):
            yield f"needs {library}, which is not in the usual folders"


def _lacks_device_file(kind: str, facts: MachineFacts) -> list[str]:
    """On Linux a GPU or NPU is opened through a node in /dev."""
    if facts.os != "linux":
        return []
    nodes = [node for node in facts.device_files if node.kind == kind]
    if not nodes:
        folder = "/dev/accel" if kind == "NPU" else "/dev/dri"
        chips = [chip for chip, of in facts.pci.items() if of == kind]
        others = (
            f"; the PCI bus has {', '.join(map(chip_text, chips))}, without a driver"
            if chips
            else ""
        )
        return [
            f"needs {'an' if kind == 'NPU' else 'a'} {kind}; {folder} has no device node{others}"
        ]
    if any(node.usable for node in nodes):
        return []
    node = nodes[0]
    return [f"needs permission for {node.path}: sudo usermod -aG {node.group} $USER"]


def _lacks_driven_chip(kind: str, facts: MachineFacts) -> list[str]:
    """On Windows a chip with a driver is opened by its vendor's libraries."""
    article = "an" if kind == "NPU" else "a"
    chips = [chip for chip, of in facts.pci.items() if of == kind]
    if not chips:
        return [f"needs {article} {kind}; Windows lists none on the PCI bus"]
    if any(chip not in facts.undriven for chip in chips):
        return []
    return [f"needs {article} {kind} with a driver; {', '.join(map(chip_text, chips))} has none"]


def _lacks_of_device(require: Require, identity: HardwareIdentity) -> Iterator[str]:
    texts: Mapping[str, tuple[str, str]] = {
        "vendor": (require.vendor, f"{identity.vendor} {identity.device}"),
        "architecture": (require.architecture, identity.architecture),
    }
    for name, (required, actual) in texts.items():
        if required and required.lower() not in actual.lower():
            yield f"needs {name} {required}, found '{actual.strip()}'"
    ranges = {
        "driver": (require.driver, identity.driver_version),
        "SDK": (require.sdk, identity.sdk_version),
    }
    for name, (required, actual) in ranges.items():
        if required and not is_within(actual, required):
            yield f"needs {name} {required}, found '{actual}'"
