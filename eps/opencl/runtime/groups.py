"""Which family of kernel templates a device gets: for CPUs, or for work-groups as GPUs run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from eps.opencl.cl.devices import GPU as GPU_TYPE
from eps.opencl.options import TEMPLATES

if TYPE_CHECKING:
    from eps.opencl.cl.devices import Device
    from eps.opencl.runtime.device import Target

AUTO, CPU, GPU, _ = TEMPLATES

MOST_IN_A_GROUP = 256
"""Work-items: two groups of kernels that use all registers of an item fit into a GPU's core."""
FEWEST_SHARING = 64
"""Work-items of the smallest group that is worth to share what it loads."""
ITEMS_OF_A_UNIT = 2048
"""Work-items that a compute unit has in flight, on NVIDIA's and AMD's GPUs; fewer elsewhere."""
MOST_ITEMS = 1 << 20
"""Of a launch; what is left over is a loop in each item."""
GROUPS_OF_A_UNIT = 2
VECTOR = 4
"""A GPU's items load and store up to 16 bytes at once."""
REGISTER_VECTORS = 8
"""Sums of four that an item keeps where operands stay in registers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Work-groups of a device: their items run side by side, and adjacent ones load together.

    Attributes:
        size: Work-items in one, a power of two.
        units: Groups that run at once when each has the device's most items.
        local: Bytes of local memory for a group; 0 where it is no faster than global memory.
    """

    size: int
    units: int
    local: int

    @property
    def wanted(self) -> int:
        """Groups that keep the device busy."""
        return self.units * GROUPS_OF_A_UNIT


def takes_groups(device: Device, templates: str) -> bool:
    """Whether kernels are made of work-groups; `templates` as in OpenCLOptions."""
    if templates == AUTO:
        return bool(device.type & GPU_TYPE)
    return templates != CPU


def with_groups(plain: Target, device: Device, templates: str) -> Target:
    """The target `plain` of a device, for kernels that are made of work-groups.

    By `AUTO` operands are shared in local memory where the device has such memory of its own:
    Mali's and some other GPUs' is global memory, which their caches serve better.
    """
    most = min(MOST_IN_A_GROUP, device.max_work_group_size, device.max_work_item_size)
    size = 1 << (most.bit_length() - 1)
    asked = device.has_local_memory if templates == AUTO else templates == GPU
    shares = asked and size >= FEWEST_SHARING
    groups = Groups(
        size=size,
        units=max(1, device.max_compute_units),
        local=device.local_mem_size if shares else 0,
    )
    return replace(
        plain,
        vector=VECTOR,
        accumulators=REGISTER_VECTORS,
        tasks=min(MOST_ITEMS, groups.units * ITEMS_OF_A_UNIT),
        attributes="",
        prefetches=False,
        winograd=False,
        one_entry=False,
        groups=groups,
    )
