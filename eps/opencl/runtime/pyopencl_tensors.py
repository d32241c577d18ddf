"""Tensors in memory of pyopencl's objects, and pyopencl's arrays over memory of tensors.

pyopencl is imported where a program has an object of it, or asks for one.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.foreign import (
    context_of_buffer,
    devices_of_context,
    keep_buffer,
    origin_of_buffer,
    size_of_buffer,
)
from eps.opencl.runtime.tensors import OpenCLTensor, memory_of_context, ranked_devices
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.ep import BindingError, EPFail, LentMemory

CL_MISALIGNED_SUB_BUFFER_OFFSET = -13
ALIGNMENT = 16
"""In bytes: kernels read four floats at once."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.objects import Buffer, Event
    from eps.opencl.runtime.tensors import OpenCLMemory
    from ort_lite.ep import DeviceTensor


class ForeignTensor(OpenCLTensor):
    """A tensor in the memory of a `pyopencl.array.Array`, a `pyopencl.Buffer` or a DLPack capsule.

    Runs wait for the array's events, and add theirs to it.
    """

    def __init__(
        self,
        memory: OpenCLMemory,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        owner: Any,  # noqa: ANN401 - of pyopencl
        origin: tuple[int, int],
    ) -> None:
        """Nothing is kept yet.

        Args:
            memory: Of the object's context.
            shape: Sizes of dimensions.
            dtype: Type of elements.
            owner: The object of pyopencl.
            origin: Handle of the whole buffer, and where the tensor begins there in bytes.
        """
        super().__init__(memory, shape, dtype)
        self.has_events = True  # the array may get some at any time
        self._owner = owner
        self._origin = origin

    @property
    def region(self) -> tuple[int, int, int]:
        """Of the whole buffer, where the program has parts of one."""
        base, start = self._origin
        return base, start, start + self.nbytes

    def event_handles(self) -> Sequence[int]:
        """Those of the array, too."""
        events = getattr(self._owner, "events", ())
        return [*super().event_handles(), *(event.int_ptr for event in events)]

    def note_event(self, event: Event) -> None:
        """Add it to the array's."""
        super().note_event(event)
        if hasattr(self._owner, "add_event"):
            self._owner.add_event(_as_pyopencl(event))


def adopt(data: Any, shape: Sequence[int] | None, dtype: np.dtype[Any] | None) -> OpenCLTensor:  # noqa: ANN401 - of pyopencl
    """See `SupportsForeignTensors.adopt`.

    Raises:
        BindingError: The object has no memory of its own, is not contiguous, or too small.
        EPFail: It is on a device that OpenCL does not list, or the driver failed.
    """
    source, offset = data, 0
    if hasattr(data, "base_data"):
        if not data.flags.c_contiguous:
            raise BindingError(f"a pyopencl array of strides {data.strides} is not contiguous")
        source, offset = data.base_data, int(data.offset)
        shape = tuple(data.shape) if shape is None else shape
        dtype = np.dtype(data.dtype) if dtype is None else dtype
    if isinstance(data, LentMemory):
        offset = data.offset
    elif not hasattr(source, "int_ptr") or not hasattr(source, "size"):
        raise BindingError(f"a {type(data).__name__} of pyopencl has no memory of a tensor")
    if shape is None or dtype is None:
        raise BindingError("a pyopencl.Buffer has bytes alone; pass shape and element_type, too")
    size = prod(shape, start=dtype.itemsize)
    with opencl_errors("reading a buffer of pyopencl"):
        memory = _memory_of(source.int_ptr)
        room = size_of_buffer(source.int_ptr) - offset
        if size > room:
            raise BindingError(
                f"{dtype}{list(shape)} needs {size} bytes, and the buffer of pyopencl has {room}"
            )
        base, start = origin_of_buffer(source.int_ptr)
        origin = base, start + offset
        if origin[1] % ALIGNMENT:  # NVIDIA's driver makes such a part, and ends the context later
            raise _misalignment_error(origin[1])
        tensor = ForeignTensor(memory, tuple(shape), dtype, data, origin)
        if offset:  # a part of a part cannot be made
            whole = keep_buffer(base, data)
            tensor.own(_part_of(whole, origin[1], max(size, 1)), counted=False)
        else:
            tensor.own(keep_buffer(source.int_ptr, data), counted=False)
    return tensor


def _part_of(whole: Buffer, offset: int, size: int) -> Buffer:
    """The part of a buffer that begins at a byte.

    Raises:
        BindingError: The device takes no part from there on.
        OpenCLError: The driver failed otherwise.
    """
    try:
        return whole.part(offset, size)
    except OpenCLError as exc:
        if exc.status != CL_MISALIGNED_SUB_BUFFER_OFFSET:
            raise
        raise _misalignment_error(offset) from exc


def _misalignment_error(offset: int) -> BindingError:
    return BindingError(
        f"the array begins at byte {offset} of its buffer, and the device takes parts of "
        "buffers at coarser steps only (CL_DEVICE_MEM_BASE_ADDR_ALIGN): pass array.copy()"
    )


def _memory_of(buffer: int) -> OpenCLMemory:
    context = context_of_buffer(buffer)
    handles = devices_of_context(context)
    for listed in ranked_devices():
        if listed.device.handle in handles:
            return memory_of_context(context, listed)
    raise EPFail("the buffer's context has no device that OpenCL lists")


def lend(tensor: DeviceTensor, queue: Any) -> object:  # noqa: ANN401 - of pyopencl
    """A `pyopencl.array.Array` over a tensor's memory, with the events that end its use.

    Raises:
        BindingError: The queue is of another context; pyopencl is not there; the tensor was
            released.
    """
    assert isinstance(tensor, OpenCLTensor), "the caller goes by the name of its memory"
    try:
        import pyopencl as cl  # noqa: PLC0415 - lazy: rare
        import pyopencl.array as cl_array  # noqa: PLC0415 - lazy: rare
    except ImportError as exc:
        raise BindingError(f"pyopencl cannot be imported: {exc}") from exc
    context = tensor.memory.context.handle
    if queue is not None and queue.context.int_ptr != context:
        raise BindingError(
            "the command queue is of another context than the value; make the session with the "
            "provider option command_queue or context"
        )
    buffer = cl.Buffer.from_int_ptr(tensor.buffer.handle)
    at = queue if queue is not None else cl.Context.from_int_ptr(context)
    array = cl_array.Array(at, tensor.shape, tensor.dtype, data=buffer)
    for handle in tensor.event_handles():
        array.add_event(cl.Event.from_int_ptr(handle))
    array.ort_lite_tensor = tensor  # type: ignore[attr-defined] # it keeps the memory
    return array


def _as_pyopencl(event: Event) -> Any:  # noqa: ANN401 - of pyopencl
    import pyopencl as cl  # noqa: PLC0415 - lazy: rare

    return cl.Event.from_int_ptr(event.handle)
