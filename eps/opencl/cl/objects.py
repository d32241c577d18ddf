"""Contexts, memory and queues: each object is released with the last reference to it."""

from __future__ import annotations

import ctypes
from ctypes import c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

from eps.opencl.cl.c_api import Region, create
from eps.opencl.cl.constants import (
    CL_BUFFER_CREATE_TYPE_REGION,
    CL_MEM_USE_HOST_PTR,
    CL_PROFILING_COMMAND_END,
    CL_PROFILING_COMMAND_START,
    CL_QUEUE_PROFILING_ENABLE,
)
from eps.opencl.cl.loader import api
from ort_lite.ep import Owned

if TYPE_CHECKING:
    import numpy as np

    from eps.opencl.cl.devices import Device

    Array = np.ndarray[Any, np.dtype[Any]]


class Context(Owned):
    """What programs and memory of one device live in."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        """Open the device.

        Raises:
            OpenCLError: The driver does not let it.
        """
        self.device = device
        devices = (c_void_p * 1)(device.handle)
        # no CL_CONTEXT_PLATFORM: the loader would look for a platform in what it lists itself
        handle = create(api().clCreateContext, None, 1, devices, None, None)
        super().__init__(handle, api().clReleaseContext)


class Buffer(Owned):
    """Memory of a device, or a part of it."""

    __slots__ = ()

    @classmethod
    def of(cls, context: Context, flags: int, size: int) -> Buffer:
        """The driver's own memory; `size` in bytes.

        Raises:
            OpenCLError: There is not enough.
        """
        handle = create(api().clCreateBuffer, context, flags, size, None)
        return cls(handle, api().clReleaseMemObject)

    @classmethod
    def over(cls, context: Context, flags: int, content: Array) -> Buffer:
        """The host's memory, which the buffer holds for as long as it lives.

        Raises:
            OpenCLError: The driver does not take it.
        """
        shared = flags | CL_MEM_USE_HOST_PTR
        address = content.ctypes.data
        handle = create(api().clCreateBuffer, context, shared, content.nbytes, address)
        return cls(handle, api().clReleaseMemObject, content)

    def part(self, offset: int, size: int) -> Buffer:
        """Some of its bytes, with its flags.

        Raises:
            OpenCLError: They lie outside, or not where the device takes parts.
        """
        region = Region(offset, size)
        handle = create(api().clCreateSubBuffer, self, 0, CL_BUFFER_CREATE_TYPE_REGION, region)
        return Buffer(handle, api().clReleaseMemObject, self)


class Event(Owned):
    """Something that the device has been told to do."""

    __slots__ = ()

    def __init__(self, handle: c_void_p, keeps: object = None) -> None:
        """Take over `handle`; `keeps` is what the device reads meanwhile."""
        super().__init__(handle, api().clReleaseEvent, keeps)

    def wait(self) -> None:
        """Wait until it is done.

        Raises:
            OpenCLError: It was not.
        """
        api().clWaitForEvents(1, (c_void_p * 1)(self.handle))
        self._keeps = None

    def release(self) -> None:
        """Let go of it, when the device reads nothing of the host's any more."""
        if self.handle and self._keeps is not None:
            api().clWaitForEvents(1, (c_void_p * 1)(self.handle))
        super().release()

    def nanoseconds(self) -> int:
        """How long the device took, on a queue that takes times."""
        times = []
        for parameter in (CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END):
            value = c_uint64()
            api().clGetEventProfilingInfo(self, parameter, 8, ctypes.byref(value), None)
            times.append(value.value)
        return times[1] - times[0]


class Queue(Owned):
    """Has a device do one thing after the other."""

    __slots__ = ()

    def __init__(self, context: Context, *, profiling: bool = False) -> None:
        """Make it; with `profiling` its events tell times.

        Raises:
            OpenCLError: The driver does not.
        """
        properties = CL_QUEUE_PROFILING_ENABLE if profiling else 0
        handle = create(api().clCreateCommandQueue, context, context.device, properties)
        super().__init__(handle, api().clReleaseCommandQueue)

    def write(self, buffer: Buffer, content: Array, offset: int = 0) -> None:
        """Copy to the device and wait for it.

        Args:
            buffer: Where to.
            content: Contiguous.
            offset: In the buffer, in bytes.

        Raises:
            OpenCLError: The device failed.
        """
        where = 1, offset, content.nbytes, content.ctypes.data
        api().clEnqueueWriteBuffer(self, buffer, *where, 0, None, None)

    def begin_write(self, buffer: Buffer, content: Array, offset: int = 0) -> Event:
        """As `write`, but the caller goes on; the event holds `content` until it is done."""
        event = c_void_p()
        where = 0, offset, content.nbytes, content.ctypes.data
        api().clEnqueueWriteBuffer(self, buffer, *where, 0, None, event)
        return Event(event, content)

    def read(self, content: Array, buffer: Buffer, offset: int = 0) -> None:
        """Copy from the device and wait for it; else as `write`."""
        where = 1, offset, content.nbytes, content.ctypes.data
        api().clEnqueueReadBuffer(self, buffer, *where, 0, None, None)

    def clear(self, buffer: Buffer, size: int) -> None:
        """Fill the first `size` bytes with zeros, after what was asked before."""
        self.fill(buffer, 0, 0, size)

    def fill(self, buffer: Buffer, value: int, offset: int, size: int) -> None:
        """Write a byte into each of `size` bytes from `offset` on, after what was asked before."""
        byte = ctypes.c_uint8(value)
        place = ctypes.byref(byte), 1, offset, size
        api().clEnqueueFillBuffer(self, buffer, *place, 0, None, None)

    def flush(self) -> None:
        """Have the device begin."""
        api().clFlush(self)

    def finish(self) -> None:
        """Wait until all is done.

        Raises:
            OpenCLError: The device failed.
        """
        api().clFinish(self)
