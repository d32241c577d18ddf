"""Kernels with their arguments, ready to be launched on one queue."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_size_t, c_void_p
from typing import TYPE_CHECKING

from eps.opencl.cl.c_api import OpenCLError, made
from eps.opencl.cl.constants import CL_KERNEL_WORK_GROUP_SIZE
from eps.opencl.cl.loader import api
from eps.opencl.cl.objects import Event, Owned
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.devices import Device
    from eps.opencl.cl.objects import Buffer, Queue
    from eps.opencl.cl.program import Program


class GroupTooLarge(EPFail):
    """A kernel whose work-groups the device cannot run.

    Attributes:
        most: Work-items of a group of it that the device runs.
    """

    def __init__(self, name: str, size: int, most: int) -> None:
        """Say how many were asked for."""
        self.most = most
        super().__init__(
            f"the device runs kernel {name} in work-groups of at most {most} items, and it was "
            f"made for {size}; compile with provider option templates=cpu"
        )


class Launch(Owned):
    """One kernel with its arguments; holds the queue and the buffers, which the driver may not."""

    __slots__ = ("_call", "_enqueue")

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
        kernel = made(api().clCreateKernel, program, name.encode())
        super().__init__(kernel, api().clReleaseKernel, (queue, tuple(arguments)))
        if size[1] > 1:
            self._require_group(name, size[1], program.device)
        for index, one in enumerate(arguments):
            value = c_int32(one) if isinstance(one, int) else c_void_p(one.handle)
            api().clSetKernelArg(self, index, ctypes.sizeof(value), ctypes.byref(value))
        sizes = [(c_size_t * 1)(n) for n in size]
        self._call = (c_void_p(queue.handle), kernel, 1, None, *sizes, 0, None)
        self._enqueue = api().enqueue

    def _require_group(self, name: str, size: int, device: Device) -> None:
        """A kernel that needs many registers may run in smaller groups than the device's most."""
        most = c_size_t()
        asked = ctypes.sizeof(most), ctypes.byref(most)
        api().clGetKernelWorkGroupInfo(self, device, CL_KERNEL_WORK_GROUP_SIZE, *asked, None)
        if most.value < size:
            raise GroupTooLarge(name, size, most.value)

    def enqueue(self) -> None:
        """Launch it on its queue.

        Raises:
            OpenCLError: The driver refuses.
        """
        _require_launched(self._enqueue(*self._call, None))

    def timed(self) -> int:
        """Launch it and wait for it; nanoseconds that the device took, on a queue that takes times.

        Raises:
            OpenCLError: The driver refuses.
        """
        handle = c_void_p()
        _require_launched(self._enqueue(*self._call, ctypes.byref(handle)))
        event = Event(handle)
        event.wait()
        return event.nanoseconds()


def _require_launched(status: int) -> None:
    if status:
        raise OpenCLError("clEnqueueNDRangeKernel", status)
