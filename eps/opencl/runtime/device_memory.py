"""A device's memory, in large pages where it is a CPU's."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.cl.constants import CL_DEVICE_TYPE_CPU
from eps.opencl.cl.objects import Buffer

if TYPE_CHECKING:
    from eps.opencl.cl.objects import Context

LARGE_PAGE = 2 << 20
"""In bytes, on x86, and on ARM with small pages of 4 KiB."""


def allocate(context: Context, flags: int, size: int) -> Buffer:
    """Memory of one device; of a CPU on Linux in large pages where the system has some left.

    Drivers of CPUs take pages of 4 KiB, and each is a fault of its own when it is first written:
    that took four times as long as copying weights there (Intel 2026.22, PoCL 3.0).
    A GPU's driver knows best how to place its memory, also where it shares the host's.

    Args:
        context: Of one device.
        flags: CL_MEM_READ_ONLY or CL_MEM_READ_WRITE.
        size: In bytes.

    Raises:
        OpenCLError: The device has not enough.
    """
    device = context.device
    shared = device.type & CL_DEVICE_TYPE_CPU and device.host_unified_memory
    able = hasattr(mmap, "MADV_HUGEPAGE") and shared
    if not able or size < LARGE_PAGE:
        return Buffer.of(context, flags, size)
    try:
        memory = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a limit on address space, or a kernel without large pages
        return Buffer.of(context, flags, size)
    content = np.frombuffer(memory, np.uint8)
    start = -content.ctypes.data % LARGE_PAGE
    return Buffer.over(context, flags, content[start : start + size])
