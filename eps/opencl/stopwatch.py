"""How long kernels take on a device, with zeros for data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from eps.opencl.codegen.source import write_source
from eps.opencl.draw import BUILD_OPTIONS
from eps.opencl.plan import nbytes
from eps.opencl.program import build
from eps.opencl.sdk_errors import opencl_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.codegen.kernel import Kernel
    from eps.opencl.device import Target
    from eps.opencl.views import Buffer


def time_kernels(
    context: cl.Context, kernels: Sequence[Kernel], target: Target, passes: int
) -> list[int]:
    """Nanoseconds of the fastest of `passes` launches of each, after one that is not counted.

    The kernels take turns, so that what else the machine does falls on all of them alike.

    Raises:
        EPFail: The driver refuses the program, or has not the memory.
    """
    source, names = write_source(kernels, target)
    program = build(context, source, BUILD_OPTIONS)
    with opencl_errors("timing kernels"):
        timed = cl.command_queue_properties.PROFILING_ENABLE
        queue = cl.CommandQueue(context, properties=timed)
        memory = _Memory(context, queue, kernels)
        try:
            launches = [
                (memory.bound(cl.Kernel(program, name), kernel), (kernel.tasks,))
                for name, kernel in zip(names, kernels, strict=True)
            ]
            times = [[_time(queue, *launch) for launch in launches] for _ in range(passes + 1)]
        finally:
            memory.release()
    return [min(column) for column in zip(*times[1:], strict=True)]


def _time(queue: cl.CommandQueue, kernel: cl.Kernel, size: tuple[int]) -> int:
    event = cl.enqueue_nd_range_kernel(queue, kernel, size, (1,))
    event.wait()
    return int(event.profile.end - event.profile.start)


class _Memory:
    """Zeros for every operand; constants, which differ from kernel to kernel, share theirs."""

    def __init__(
        self, context: cl.Context, queue: cl.CommandQueue, kernels: Sequence[Kernel]
    ) -> None:
        sizes: dict[int, int] = {}
        for buffer in (b for kernel in kernels for b in kernel.operands):
            key = self._key(buffer)
            sizes[key] = max(sizes.get(key, 4), nbytes(buffer))
        self._buffers = {
            key: cl.Buffer(context, cl.mem_flags.READ_WRITE, size) for key, size in sizes.items()
        }
        for key, size in sizes.items():
            cl.enqueue_fill_buffer(queue, self._buffers[key], np.zeros(1, np.uint8), 0, size)

    @staticmethod
    def _key(buffer: Buffer) -> int:
        return id(buffer) if buffer.constant is None else 0

    def bound(self, kernel: cl.Kernel, call: Kernel) -> cl.Kernel:
        """The kernel with its arguments set."""
        for index, buffer in enumerate(call.operands):
            kernel.set_arg(index, self._buffers[self._key(buffer)])
        return kernel

    def release(self) -> None:
        for buffer in self._buffers.values():
            buffer.release()
