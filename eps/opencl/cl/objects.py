"""Contexts, memory and queues: each object is released with the last reference to it."""

from __future__ import annotations

import ctypes
import threading
import weakref
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
from eps.opencl.cl.signal_handlers import KeptSignalHandlers
from ort_lite.ep import ByteCounter, Owned

if TYPE_CHECKING:
    import numpy as np

    from eps.opencl.cl.devices import Device

    Array = np.ndarray[Any, np.dtype[Any]]


class Context:
    """An OpenCL context of one device.

    May be passed where a function takes the object. It has no finalizer of its own: that would run
    before weak references are cleared, so one to it could give another thread a context that is
    being released.

    Attributes:
        allocated: Size of the buffers that are counted, see `Buffer.count_in`.
    """

    __slots__ = ("__weakref__", "_as_parameter_", "_owned", "allocated", "device")

    def __init__(self, device: Device) -> None:
        """Open the device.

        Raises:
            OpenCLError: The driver does not let it.
        """
        self._begin(device)
        devices = (c_void_p * 1)(device.handle)
        # no CL_CONTEXT_PLATFORM: the loader would look for a platform in what it lists itself
        with KeptSignalHandlers():
            handle = create(api().clCreateContext, None, 1, devices, None, None)
        self._own(handle)

    @classmethod
    def owning(cls, handle: c_void_p, device: Device) -> Context:
        """One of a handle, with a reference to it that is released with this object."""
        context = cls.__new__(cls)
        context._begin(device)  # noqa: SLF001 - of this class
        context._own(handle)  # noqa: SLF001 - as above
        return context

    @property
    def handle(self) -> int:
        """OpenCL's address of the context, for other libraries."""
        return self._owned.handle

    def _begin(self, device: Device) -> None:
        self.device = device
        self.allocated = ByteCounter()

    def _own(self, handle: c_void_p) -> None:
        self._owned = Owned(handle, api().clReleaseContext)
        self._as_parameter_ = handle


class PartStack:
    """Sub-buffers of a buffer: the newest is freed first, whatever the order of their release.

    In any other order NVIDIA's driver ends the process once kernels have used them (580.159).
    """

    __slots__ = ("__weakref__", "_lock", "_made", "_released")

    def __init__(self) -> None:
        """Of a buffer without parts."""
        self._lock = threading.Lock()
        self._made: list[int] = []
        self._released: set[int] = set()

    @staticmethod
    def of(whole: int) -> PartStack:
        """The one of the buffer with this handle, which may have several owners."""
        with _stacks_lock:
            return _stacks.setdefault(whole, PartStack())

    def make(self, whole: Buffer, region: Region) -> c_void_p:
        """Handle of a new part.

        Raises:
            OpenCLError: The driver makes none.
        """
        with self._lock:
            arguments = whole, 0, CL_BUFFER_CREATE_TYPE_REGION, region
            handle = create(api().clCreateSubBuffer, *arguments)
            self._made.append(handle.value or 0)
        self._free_newest()
        return handle

    def release(self, handle: c_void_p) -> None:
        """Free a part, or leave that to the release of the newer ones."""
        self._released.add(handle.value or 0)
        self._free_newest()

    def _free_newest(self) -> None:
        """Where another thread does, or this one further up, it goes on with what is new here."""
        made, released = self._made, self._released
        while made and made[-1] in released and self._lock.acquire(blocking=False):
            try:
                while made and made[-1] in released:
                    newest = made.pop()
                    released.discard(newest)
                    api().clReleaseMemObject(newest)
            finally:
                self._lock.release()


_stacks: weakref.WeakValueDictionary[int, PartStack] = weakref.WeakValueDictionary()
_stacks_lock = threading.Lock()


class Buffer(Owned):
    """An OpenCL buffer or sub-buffer."""

    __slots__ = ("__weakref__", "_counted")

    def count_in(self, context: Context, size: int) -> Buffer:
        """Count its bytes as memory of the context until it is released; the buffer itself."""
        self._counted = context, size
        context.allocated.add(size)
        return self

    def release(self) -> None:
        """See Owned."""
        if hasattr(self, "_counted"):
            context, size = self._counted
            del self._counted
            context.allocated.add(-size)
        super().release()

    @classmethod
    def of(cls, context: Context, flags: int, size: int) -> Buffer:
        """The driver's own memory; `size` in bytes.

        Raises:
            OpenCLError: There is not enough.
        """
        handle = create(api().clCreateBuffer, context, flags, size, None)
        return cls(handle, api().clReleaseMemObject)

    @classmethod
    def from_host(cls, context: Context, flags: int, content: Array) -> Buffer:
        """The host's memory, which the buffer holds for as long as it lives.

        Raises:
            OpenCLError: The driver does not take it.
        """
        return cls.over(context, flags, (content.ctypes.data, content.nbytes), content)

    @classmethod
    def over(cls, context: Context, flags: int, place: tuple[int, int], owner: object) -> Buffer:
        """As `from_host`, of so many bytes at an address, which `owner` keeps."""
        address, size = place
        shared = flags | CL_MEM_USE_HOST_PTR
        handle = create(api().clCreateBuffer, context, shared, size, address)
        return cls(handle, api().clReleaseMemObject, owner)

    def part(self, offset: int, size: int) -> Buffer:
        """A sub-buffer with the flags of this buffer.

        Raises:
            OpenCLError: They lie outside, or not where the device takes parts.
        """
        stack = PartStack.of(self.handle)
        return Buffer(stack.make(self, Region(offset, size)), stack.release, self)


class Event(Owned):
    """An OpenCL event: a command that the device executes."""

    __slots__ = ()

    def __init__(self, handle: c_void_p, keeps: object = None) -> None:
        """Take over `handle`; `keeps` is what the device reads meanwhile."""
        super().__init__(handle, api().clReleaseEvent, keeps)

    def wait(self) -> None:
        """Wait until the command has completed.

        Raises:
            OpenCLError: It was not.
        """
        api().clWaitForEvents(1, (c_void_p * 1)(self.handle))
        self._keeps = None

    def release(self) -> None:
        """Release the event once the device no longer reads the host's memory."""
        if self.handle and self._keeps is not None:
            api().clWaitForEvents(1, (c_void_p * 1)(self.handle))
        super().release()

    def nanoseconds(self) -> int:
        """Execution time of the command in ns; needs a profiling queue."""
        times = []
        for parameter in (CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END):
            value = c_uint64()
            api().clGetEventProfilingInfo(self, parameter, 8, ctypes.byref(value), None)
            times.append(value.value)
        return times[1] - times[0]


class Queue(Owned):
    """An in-order command queue."""

    __slots__ = ()

    def __init__(self, context: Context, *, profiling: bool = False) -> None:
        """Create the queue; with `profiling` its events record times.

        Raises:
            OpenCLError: The driver does not.
        """
        properties = CL_QUEUE_PROFILING_ENABLE if profiling else 0
        handle = create(api().clCreateCommandQueue, context, context.device, properties)
        super().__init__(handle, api().clReleaseCommandQueue)

    @classmethod
    def owning(cls, handle: c_void_p) -> Queue:
        """One of a handle, with a reference to it that is released with this object."""
        queue = cls.__new__(cls)
        Owned.__init__(queue, handle, api().clReleaseCommandQueue)
        return queue

    def write(self, buffer: Buffer, content: Array, offset: int = 0) -> None:
        """Copy to the device and wait until `content` may change; later commands see the copy.

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

    def begin_read(self, content: Array, buffer: Buffer) -> Event:
        """As `read` from the start, but the caller goes on; the event holds `content` meanwhile."""
        event = c_void_p()
        where = 0, 0, content.nbytes, content.ctypes.data
        api().clEnqueueReadBuffer(self, buffer, *where, 0, None, event)
        return Event(event, content)

    def clear(self, buffer: Buffer, size: int) -> None:
        """Enqueue setting the first `size` bytes to zero."""
        self.fill(buffer, 0, 0, size)

    def fill(self, buffer: Buffer, value: int, offset: int, size: int) -> None:
        """Enqueue setting `size` bytes from `offset` on to `value`."""
        byte = ctypes.c_uint8(value)
        place = ctypes.byref(byte), 1, offset, size
        api().clEnqueueFillBuffer(self, buffer, *place, 0, None, None)

    def flush(self) -> None:
        """Submit all enqueued commands to the device."""
        api().clFlush(self)

    def finish(self) -> None:
        """Wait until every enqueued command has completed.

        Raises:
            OpenCLError: The device failed.
        """
        api().clFinish(self)
