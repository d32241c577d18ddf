"""A device's memory, in large pages where it shares the host's."""

from __future__ import annotations

import mmap

import numpy as np
import pyopencl as cl

LARGE_PAGE = 2 << 20
"""In bytes, on x86, and on ARM with small pages of 4 KiB."""


def allocate(context: cl.Context, flags: int, size: int) -> cl.Buffer:
    """Memory of one device; on Linux in large pages where the system has some left.

    Drivers of CPUs take pages of 4 KiB, and each is a fault of its own when it is first written:
    that took four times as long as copying weights there (Intel 2026.22, PoCL 3.0).

    Args:
        context: Of one device.
        flags: READ_ONLY or READ_WRITE of cl.mem_flags.
        size: In bytes.

    Raises:
        cl.MemoryError: The device has not enough.
    """
    (device,) = context.devices
    able = hasattr(mmap, "MADV_HUGEPAGE") and bool(device.host_unified_memory)
    if not able or size < LARGE_PAGE:
        return cl.Buffer(context, flags, size)
    try:
        memory = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a limit on address space, or a kernel without large pages
        return cl.Buffer(context, flags, size)
    content = np.frombuffer(memory, np.uint8)
    start = -content.ctypes.data % LARGE_PAGE
    # The buffer holds the memory for as long as it lives.
    shared = flags | cl.mem_flags.USE_HOST_PTR
    return cl.Buffer(context, shared, hostbuf=content[start : start + size])
