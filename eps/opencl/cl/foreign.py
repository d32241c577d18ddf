"""OpenCL objects that a program made itself, with pyopencl for example: kept, never changed.

A handle is a number that only the driver can check, and it reads the memory there. So what is not
a handle of the same loader ends the process; pyopencl's objects have the right ones.
"""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_void_p
from typing import TYPE_CHECKING

from eps.opencl.cl import constants as cl
from eps.opencl.cl.loader import api
from eps.opencl.cl.objects import Buffer, Context, Event, Queue
from eps.opencl.cl.rare_calls import rare_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.devices import Device


def devices_of_context(handle: int) -> Sequence[int]:
    """Handles of the devices of a context.

    Raises:
        OpenCLError: The driver does not know it.
    """
    size = c_size_t()
    rare_calls().clGetContextInfo(handle, cl.CL_CONTEXT_DEVICES, 0, None, size)
    devices = (c_void_p * (size.value // ctypes.sizeof(c_void_p)))()
    rare_calls().clGetContextInfo(handle, cl.CL_CONTEXT_DEVICES, size, devices, None)
    return [device for device in devices if device]


def keep_context(handle: int, device: Device) -> Context:
    """The context, with one more reference to it.

    Raises:
        OpenCLError: The driver does not know it.
    """
    rare_calls().clRetainContext(handle)
    return Context.owning(c_void_p(handle), device)


def keep_queue(handle: int) -> Queue:
    """The command queue, with one more reference to it.

    Raises:
        OpenCLError: The driver does not know it.
    """
    rare_calls().clRetainCommandQueue(handle)
    return Queue.owning(c_void_p(handle))


def keep_buffer(handle: int, keeps: object) -> Buffer:
    """The buffer, with one more reference to it; `keeps` lives as long.

    Raises:
        OpenCLError: The driver does not know it.
    """
    rare_calls().clRetainMemObject(handle)
    return Buffer(c_void_p(handle), api().clReleaseMemObject, keeps)


def context_of_queue(handle: int) -> int:
    """Handle of the context of a command queue."""
    return _number(rare_calls().clGetCommandQueueInfo, handle, cl.CL_QUEUE_CONTEXT)


def device_of_queue(handle: int) -> int:
    """Handle of the device of a command queue."""
    return _number(rare_calls().clGetCommandQueueInfo, handle, cl.CL_QUEUE_DEVICE)


def is_in_order(handle: int) -> bool:
    """Whether a command queue runs its commands one after another."""
    properties = _number(rare_calls().clGetCommandQueueInfo, handle, cl.CL_QUEUE_PROPERTIES)
    return not properties & cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE


def context_of_buffer(handle: int) -> int:
    """Handle of the context of a buffer."""
    return _number(rare_calls().clGetMemObjectInfo, handle, cl.CL_MEM_CONTEXT)


def size_of_buffer(handle: int) -> int:
    """Size of a buffer in bytes."""
    return _number(rare_calls().clGetMemObjectInfo, handle, cl.CL_MEM_SIZE)


def origin_of_buffer(handle: int) -> tuple[int, int]:
    """Handle of the buffer that a buffer is a part of, or its own, and where it begins there."""
    whole = _number(rare_calls().clGetMemObjectInfo, handle, cl.CL_MEM_ASSOCIATED_MEMOBJECT)
    return (whole or handle), _number(rare_calls().clGetMemObjectInfo, handle, cl.CL_MEM_OFFSET)


def wait_on_device(queue: Queue, events: Sequence[int]) -> None:
    """Have later commands of a queue wait for events, by their handles.

    Raises:
        OpenCLError: The driver refuses.
    """
    if events:
        handles = (c_void_p * len(events))(*events)
        rare_calls().clEnqueueBarrierWithWaitList(queue, len(events), handles, None)


def mark(queue: Queue) -> Event:
    """An event that completes when everything enqueued so far has.

    Raises:
        OpenCLError: The driver refuses.
    """
    event = c_void_p()
    rare_calls().clEnqueueMarkerWithWaitList(queue, 0, None, ctypes.byref(event))
    return Event(event)


def _number(query: ctypes._FuncPointer, handle: int, parameter: int) -> int:
    value = c_size_t()
    query(handle, parameter, ctypes.sizeof(value), ctypes.byref(value), None)
    return value.value
