"""How long kernels take on a device, with zeros for data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Buffer, Queue
from eps.opencl.compile.codegen.emit import emit_program
from eps.opencl.compile.compile_partition import BUILD_OPTIONS
from eps.opencl.compile.memory_plan import nbytes
from eps.opencl.runtime.executable import Launch
from eps.opencl.runtime.program import build
from eps.opencl.sdk_errors import opencl_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.objects import Context
    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.views import Storage
    from eps.opencl.target import Target


def time_kernels(
    context: Context, kernels: Sequence[Kernel], target: Target, passes: int
) -> list[int]:
    """Nanoseconds of the fastest of `passes` launches of each, after one that is not counted.

    The kernels take turns, so that what else the machine does falls on all of them alike.

    Raises:
        EPFail: The driver refuses the program, or has not the memory.
    """
    source, names = emit_program(kernels, target)
    program = build(context, source, BUILD_OPTIONS)
    with opencl_errors("timing kernels"):
        queue = Queue(context, profiling=True)
        memory = _Memory(context, queue, kernels)
        try:
            launches = [
                Launch(queue, program, name, memory.operands(kernel), (kernel.tasks, kernel.group))
                for name, kernel in zip(names, kernels, strict=True)
            ]
            times = [[launch.run_timed() for launch in launches] for _ in range(passes + 1)]
        finally:
            memory.release()
    return [min(column) for column in zip(*times[1:], strict=True)]


class _Memory:
    """Zeros for every operand; constants, which differ from kernel to kernel, share theirs."""

    def __init__(self, context: Context, queue: Queue, kernels: Sequence[Kernel]) -> None:
        sizes: dict[int, int] = {}
        for buffer in (b for kernel in kernels for b in kernel.operands):
            key = self._key(buffer)
            sizes[key] = max(sizes.get(key, 4), nbytes(buffer))
        self._buffers = {
            key: Buffer.of(context, CL_MEM_READ_WRITE, size) for key, size in sizes.items()
        }
        for key, size in sizes.items():
            queue.clear(self._buffers[key], size)

    @staticmethod
    def _key(buffer: Storage) -> int:
        return id(buffer) if buffer.constant is None else 0

    def operands(self, kernel: Kernel) -> list[Buffer]:
        """What the kernel reads and writes."""
        return [self._buffers[self._key(operand)] for operand in kernel.operands]

    def release(self) -> None:
        for buffer in self._buffers.values():
            buffer.release()
