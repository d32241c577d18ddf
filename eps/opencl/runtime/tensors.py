"""Tensors of users in the memory of an OpenCL device."""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from ctypes import c_void_p
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.cl.constants import CL_DEVICE_TYPE_GPU, CL_MEM_READ_WRITE
from eps.opencl.cl.loader import api
from eps.opencl.cl.objects import Queue
from eps.opencl.cl.rare_calls import rare_calls
from eps.opencl.options import OpenCLOptions
from eps.opencl.runtime.device import find_devices, fitting_devices, open_context
from eps.opencl.runtime.device_access import CopyCounter, DeviceAccess
from eps.opencl.runtime.device_memory import allocate, allocate_zeros
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.ep import (
    BindingError,
    DeviceMemory,
    DeviceTensor,
    EPFail,
    MemoryPlace,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.objects import Buffer, Context, Event
    from eps.opencl.runtime.device import ListedDevice
    from ort_lite.ep import CopyCounts

    Array = np.ndarray[Any, np.dtype[Any]]

KHRONOS = 0x10000
"""VK_VENDOR_ID_KHRONOS of Vulkan's registry: any device that OpenCL lists, whoever made it."""
GPU = 1
"""OrtDevice::GPU of ortdevice.h."""

_memories: weakref.WeakValueDictionary[int, OpenCLMemory] = weakref.WeakValueDictionary()
_making = Lock()


def ranked_devices() -> Sequence[ListedDevice]:
    """Every device, in the order in which sessions without options prefer them.

    Raises:
        EPFail: There is none.
    """
    return fitting_devices(find_devices(), OpenCLOptions())


def find_memory(device_name: str, device_id: int, vendor_id: int) -> OpenCLMemory | None:
    """The memory of a device; see `SupportsMemoryLookup`.

    Raises:
        EPFail: The device does not exist, or it cannot be opened.
    """
    if device_name not in ("opencl", "gpu"):
        return None
    listed = _find_device(device_name, device_id, vendor_id)
    return None if listed is None else shared_memory(DeviceAccess(listed))


def _find_device(device_name: str, device_id: int, vendor_id: int) -> ListedDevice | None:
    """As `find_memory`; None where there is no GPU.

    Raises:
        EPFail: The device does not exist.
    """
    devices = ranked_devices()
    if device_name == "gpu":
        devices = [listed for listed in devices if listed.device.type & CL_DEVICE_TYPE_GPU]
        if vendor_id > 0:
            devices = [one for one in devices if one.device.vendor_id == vendor_id]
        if not devices:
            return None
    if not 0 <= device_id < len(devices):
        there = "; ".join(f"{i}: {one.kind} {one.label}" for i, one in enumerate(devices))
        raise BindingError(f"{device_name} device {device_id} does not exist; found {there}")
    return devices[device_id]


def find_memory_of(options: OpenCLOptions) -> OpenCLMemory:
    """The memory of the best device that fits the options.

    Raises:
        EPFail: None fits, or it cannot be opened.
    """
    return shared_memory(DeviceAccess(fitting_devices(find_devices(), options)[0]))


def memory_of_context(context: int, listed: ListedDevice) -> OpenCLMemory:
    """The memory of a context by its handle, which may be the program's own."""
    with _making:
        memory = _memories.get(context)
    if memory is not None and memory.context.handle == context:
        return memory
    return shared_memory(DeviceAccess(listed, open_context(context, listed)))


def shared_memory(access: DeviceAccess) -> OpenCLMemory:
    """The memory of a device, one for all who use its context.

    Raises:
        EPFail: The driver makes no queue.
    """
    context = access.context
    with _making:
        memory = _memories.get(context.handle)
        if memory is None or memory.context.handle != context.handle:
            handles = [one.device.handle for one in ranked_devices()]
            number = handles.index(access.listed.device.handle)
            memory = _memories[context.handle] = OpenCLMemory(context, number)
        return memory


class OpenCLMemory(DeviceMemory):
    """The memory of a device, in one OpenCL context.

    Attributes:
        context: The context.
        queue: For copies, which have completed when they return.
    """

    def __init__(self, context: Context, number: int, queue: Queue | None = None) -> None:
        """Nothing is allocated yet.

        Args:
            context: Of one device.
            number: Of the device, in the order of `ranked_devices`.
            queue: For copies; None for one of its own.

        Raises:
            EPFail: The driver makes no queue.
        """
        super().__init__()
        self.context = context
        self.copies = CopyCounter()
        self.place = MemoryPlace(
            name="opencl",
            device_type=GPU,
            vendor_id=KHRONOS,
            device_id=number,
            allocator="OpenCL",
        )
        with opencl_errors("opening a queue for tensors"):
            self.queue = queue or Queue(context)
        self._largest = context.device.max_mem_alloc_size
        self._total = context.device.global_mem_size
        self._process = os.getpid()

    def allocate(
        self, shape: Sequence[int], dtype: np.dtype[Any], *, zeros: bool = True
    ) -> OpenCLTensor:
        """See DeviceMemory."""
        self.require_process()
        tensor = OpenCLTensor(self, tuple(shape), dtype)
        size = max(tensor.nbytes, 1)
        self.require_room(size, f"{dtype}{list(shape)}")
        with opencl_errors(f"allocating {size} bytes for {dtype}{list(shape)}"):
            if zeros:
                buffer = allocate_zeros(self.context, CL_MEM_READ_WRITE, size, self.queue)
                self.queue.finish()
            else:
                buffer = allocate(self.context, CL_MEM_READ_WRITE, size)
        tensor.own(buffer)
        return tensor

    def require_room(self, size: int, what: str) -> None:
        """Refuse a tensor that the device cannot have.

        Raises:
            BindingError: It is too large, alone or with those that are there.
        """
        if size > self._largest:
            raise BindingError(
                f"{what} needs {size} bytes in one piece, and the OpenCL device allows "
                f"{self._largest}: use a smaller shape, or keep it in host memory"
            )
        live = self.context.allocated.live
        if size + live > self._total:
            raise BindingError(
                f"{what} needs {size} bytes, and this process uses {live} of the {self._total} "
                "bytes of the OpenCL device: release tensors or sessions, or use a smaller shape"
            )

    def copy_counts(self) -> CopyCounts:
        """See DeviceMemory."""
        return self.copies.read()

    def require_process(self) -> None:
        """Refuse to go on in a forked process.

        Raises:
            EPFail: The driver's threads are in the process that was forked.
        """
        if os.getpid() != self._process:
            raise EPFail(
                "the memory of an OpenCL device cannot be used in a forked process: make values "
                "after the fork, or start processes without one: "
                "multiprocessing.set_start_method('spawn')"
            )

    def reaches(self, other: DeviceMemory) -> bool:
        """See DeviceMemory."""
        return isinstance(other, OpenCLMemory) and other.context.handle == self.context.handle


class OpenCLTensor(DeviceTensor):
    """A tensor in an OpenCL buffer.

    Attributes:
        held_buffer: The buffer, which belongs to this tensor alone; None once it is released.
        has_events: Whether `event_handles` may find any.
    """

    memory: OpenCLMemory
    has_events = False

    def __init__(self, memory: OpenCLMemory, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """A tensor without memory; `own` gives it some."""
        self.memory = memory
        self.shape = shape
        self.dtype = dtype
        self.held_buffer: Buffer | None = None
        self._size = 0
        self._end = self.nbytes
        self._event: Event | None = None

    def own(self, buffer: Buffer, *, counted: bool = True) -> None:
        """Take over a buffer, which counts as memory of the device unless it is the program's."""
        self.held_buffer = buffer
        self._size = max(self.nbytes, 1) if counted else 0
        self.memory.tensors.add(self._size)

    @property
    def buffer(self) -> Buffer:
        """The memory.

        Raises:
            BindingError: It was released.
            EPFail: The process was forked.
        """
        if self.held_buffer is None:
            self.refuse_use()
        self.memory.require_process()
        return self.held_buffer

    @property
    def region(self) -> tuple[int, int, int]:
        """Handle of the buffer that has the memory, and where it begins and ends in bytes.

        Raises:
            BindingError: It was released.
        """
        return self.data_ptr(), 0, self._end

    def event_handles(self) -> Sequence[int]:
        """Events that end what other queues still do with the memory."""
        return () if self._event is None else (self._event.handle,)

    def note_event(self, event: Event) -> None:
        """Take note of the event that ends the last use of the memory."""
        self._event = event
        self.has_events = True

    def wait(self) -> None:
        """See DeviceTensor."""
        handles = self.event_handles()
        if handles:
            with opencl_errors("waiting for a tensor"):
                api().clWaitForEvents(len(handles), (c_void_p * len(handles))(*handles))
        self._event = None

    def numpy(self) -> Array:
        """See DeviceTensor."""
        array = np.empty(self.shape, self.dtype)
        self.read_into(array)
        return array

    def read_into(self, array: Array) -> None:
        """Copy the elements to a contiguous array.

        Raises:
            BindingError: The tensor was released.
            EPFail: The device failed.
        """
        buffer = self.buffer
        self.wait()
        if array.nbytes:
            with opencl_errors("copying a tensor to the host"):
                self.memory.queue.read(bytes_of(array), buffer)
            self.memory.copies.count_to_host(array.nbytes)

    def write(self, array: Array) -> None:
        """See DeviceTensor."""
        buffer = self.buffer
        self.wait()
        if array.nbytes:
            with opencl_errors("copying a tensor to the device"):
                self.memory.queue.write(buffer, bytes_of(array))
                # A blocking write ends when the array may be reused, and Intel's runtime then
                # still has small ones of its own to copy; kernels run in another queue.
                self.memory.queue.finish()
            self.memory.copies.count_to_device(array.nbytes)

    def copy_from(self, source: DeviceTensor) -> None:
        """See DeviceTensor."""
        assert isinstance(source, OpenCLTensor), "the caller asks `reaches`"
        if source is self or not self.nbytes:
            return
        self.wait()
        source.wait()
        with opencl_errors("copying a tensor on the device"):
            copy_buffer(self.memory.queue, source.buffer, self.buffer, self.nbytes)
            self.memory.queue.finish()
        self.memory.copies.count_on_device(self.nbytes)

    def dlpack_device(self) -> tuple[int, int]:
        """kDLOpenCL of dlpack.h and the number of the device."""
        return 4, self.memory.place.device_id

    def data_ptr(self) -> int:
        """The cl_mem of the buffer as a number."""
        return self.buffer.handle

    def release(self) -> None:
        """See DeviceTensor."""
        buffer, self.held_buffer = self.held_buffer, None
        if buffer is None:
            return
        self.memory.tensors.add(-self._size)
        if os.getpid() == self.memory._process:  # noqa: SLF001 - of the same module
            with suppress(EPFail):  # of a lost device, which uses nothing any more
                self.wait()
            buffer.release()
        else:
            _left_alone.append(buffer)

    def __del__(self) -> None:
        """Give the memory back."""
        if getattr(self, "held_buffer", None) is not None:
            self.release()


_left_alone: list[Buffer] = []
"""In a forked process, buffers whose driver has lost its threads: never freed there."""


def copy_buffer(
    queue: Queue, source: Buffer, destination: Buffer, size: int, offsets: tuple[int, int] = (0, 0)
) -> None:
    """Enqueue a copy of `size` bytes, from and to these offsets.

    Raises:
        OpenCLError: The driver refuses.
    """
    rare_calls().clEnqueueCopyBuffer(queue, source, destination, *offsets, size, 0, None, None)


def bytes_of(array: Array) -> Array:
    """The memory of a contiguous array as bytes: types of ml_dtypes have no ctypes interface."""
    flat: Array = array.reshape(-1).view(np.uint8)
    return flat
