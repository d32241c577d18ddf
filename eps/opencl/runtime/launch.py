"""One kernel with its arguments, prepared once and enqueued many times."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int32, c_size_t, c_void_p
from typing import TYPE_CHECKING

from eps.opencl.cl.c_api import OpenCLError, create
from eps.opencl.cl.constants import CL_KERNEL_WORK_GROUP_SIZE
from eps.opencl.cl.loader import api
from eps.opencl.cl.objects import Event
from ort_lite.ep import EPFail, Owned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.devices import Device
    from eps.opencl.cl.objects import Buffer, Queue
    from eps.opencl.cl.program import Program


POINTER_SIZE = ctypes.sizeof(c_void_p)


class GroupTooLarge(EPFail):
    """A kernel whose work-groups the device cannot run.

    Attributes:
        most: Work-items of a group of it that the device runs.
    """

    def __init__(self, name: str, size: int, most: int) -> None:
        """Name the kernel, the size that it was made for, and the device's maximum."""
        self.most = most
        super().__init__(
            f"the device runs kernel {name} in work-groups of at most {most} items, and it was "
            f"made for {size}; compile with provider option templates=cpu"
        )


class Launch(Owned):
    """One kernel with its arguments; holds the queue and the buffers, which the driver may not."""

    __slots__ = ("_call", "_enqueue")  # and the arguments are kept, see Owned

    def __init__(
        self,
        queue: Queue,
        program: Program,
        name: str,
        arguments: Sequence[Buffer | int],
        size: tuple[int, int],
    ) -> None:
        """Make the kernel; `size` is the global and the local one, numbers are of 32 bits.

        Raises:
            OpenCLError: The program has no such kernel, or the driver refuses an argument.
            GroupTooLarge: The device does not run the kernel in groups of that size.
        """
        kernel = create(api().clCreateKernel, program, name.encode())
        super().__init__(kernel, api().clReleaseKernel, (queue, tuple(arguments)))
        if size[1] > 1:
            self._require_group(name, size[1], program.device)
        handle, set_argument = kernel.value, api().clSetKernelArg
        for index, one in enumerate(arguments):
            if isinstance(one, int):
                set_argument(handle, index, 4, byref(c_int32(one)))
            else:
                set_argument(handle, index, POINTER_SIZE, one.pointer)
        sizes = [(c_size_t * 1)(n) for n in size]
        self._call = (c_void_p(queue.handle), kernel, 1, None, *sizes, 0, None)
        self._enqueue = api().enqueue

    def _require_group(self, name: str, size: int, device: Device) -> None:
        """A kernel that needs many registers may run in smaller groups than the device's most."""
        most = c_size_t()
        result = ctypes.sizeof(most), ctypes.byref(most)
        api().clGetKernelWorkGroupInfo(self, device, CL_KERNEL_WORK_GROUP_SIZE, *result, None)
        if most.value < size:
            raise GroupTooLarge(name, size, most.value)

    def set_argument(self, index: int, buffer: Buffer) -> None:
        """Replace a buffer among the arguments; the caller keeps it alive while runs use it.

        Raises:
            OpenCLError: The driver refuses.
        """
        api().clSetKernelArg(self, index, POINTER_SIZE, buffer.pointer)

    def enqueue(self) -> None:
        """Enqueue the kernel on its queue.

        Raises:
            OpenCLError: The driver refuses.
        """
        _require_launched(self._enqueue(*self._call, None))

    def run_timed(self) -> int:
        """Run the kernel and return its device time in ns; needs a profiling queue.

        Raises:
            OpenCLError: The driver refuses.
        """
        from eps.opencl.runtime.compiler_binding import compiler_binding  # noqa: PLC0415 - lazy: rare

        handle = c_void_p()
        _require_launched(self._enqueue(*self._call, ctypes.byref(handle)))
        event = Event(handle)
        event.wait()
        return compiler_binding().nanoseconds(event)


def _require_launched(status: int) -> None:
    if status:
        raise OpenCLError("clEnqueueNDRangeKernel", status)
