"""The peer of a kernel that is bound by memory: a copy of as many bytes on the same device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from eps.opencl.options import OpenCLOptions
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.device import find_devices, fitting_devices

if TYPE_CHECKING:
    from collections.abc import Callable

VECTOR = 8
"""Floats that the copy kernel moves at once."""


class CopyPeer:
    """Copies `moved` / 2 bytes, as a run of the EP has it: written before, read by the host after.

    So the caches hold of both arrays what they hold of a kernel's when that begins. Of the
    driver's own copy and a kernel's the faster one counts.
    """

    def __init__(self, moved: int) -> None:
        """`moved` is of bytes, read and written."""
        listed = fitting_devices(find_devices(), OpenCLOptions())[0]
        context = cl.Context([cl.Device.from_int_ptr(listed.device.handle)])
        timed = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(context, properties=timed)
        tasks = min(describe_target(listed).tasks, max(1, moved // (1 << 16)))
        each = moved // (2 * 4 * VECTOR * tasks)
        self._moved = 2 * 4 * VECTOR * each * tasks
        size = self._moved // 2
        self._host = np.ones(size, np.uint8)
        self._buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, size) for _ in range(2)]
        kind = f"float{VECTOR}"
        source = f"""__kernel void copy(__global const {kind}* x, __global {kind}* y) {{
          const int id = get_global_id(0);
          for (int i = id * {each}; i < (id + 1) * {each}; ++i) y[i] = x[i];
        }}"""
        self._kernel = cl.Kernel(cl.Program(context, source).build(), "copy")
        self._kernel.set_args(*self._buffers)
        self._ways = (self._by_kernel(tasks), self._by_driver)
        self._fastest = float("inf")

    def once(self) -> None:
        """Copy in each way."""
        for way in self._ways:
            cl.enqueue_copy(self._queue, self._buffers[0], self._host, is_blocking=True)
            event = way()
            event.wait()
            self._fastest = min(self._fastest, event.profile.end - event.profile.start)
            cl.enqueue_copy(
                self._queue, np.empty_like(self._host), self._buffers[1], is_blocking=True
            )

    @property
    def rate(self) -> float:
        """GB/s of the fastest copy so far."""
        return self._moved / self._fastest

    def _by_kernel(self, tasks: int) -> Callable[[], cl.Event]:
        return lambda: cl.enqueue_nd_range_kernel(self._queue, self._kernel, (tasks,), (1,))

    def _by_driver(self) -> cl.Event:
        return cl.enqueue_copy(self._queue, self._buffers[1], self._buffers[0])
