"""Which NPU a chip on the PCI bus is, as the vendor names it.

Platforms and chips: openvinotoolkit/openvino, src/plugins/intel_npu/README.md, "Supported
Platforms"; an NPU's DEVICE_ARCHITECTURE says the same numbers. Linux' drivers/accel/ivpu/ivpu_drv.h
knows these chips too, and Nova Lake's (8086:d71d), which the vendor's table does not have yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
