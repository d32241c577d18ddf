"""Kernels with their arguments, ready to be launched on one queue.

For the name of each kernel pyopencl makes Python code that sets arguments, and keeps it as a pickle
in the user's cache folder (2026.1.4): 0.2 ms where it is there and 2 ms where not. Nothing here
needs it, so kernels are made through OpenCL's C API, and through pyopencl where that is not lent.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Protocol

import pyopencl as cl

from eps.opencl.c_api import kernel_functions, require_success

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.opencl.c_api import KernelFunctions
    from eps.opencl.program import Program

    Bind = Callable[[Program, str, Sequence[cl.Buffer], int], "Launch"]

_LOCAL = (1,)


class Launch(Protocol):
    """One kernel with its arguments."""

    def enqueue(self) -> None:
        """Launch it on its queue.

        Raises:
            cl.Error: The driver refuses.
        """
        ...

    def enqueue_timed(self) -> cl.Event:
        """As `enqueue`; the event is done when the kernel is."""
        ...

    def release(self) -> None:
        """Let go of the kernel."""
        ...


def launches_on(queue: cl.CommandQueue) -> Bind:
    """What makes launches on a queue: of a program, a kernel's name, buffers and a global size."""
    functions = kernel_functions()
    if functions is None:
        return lambda program, name, buffers, tasks: _PyopenclLaunch(
            queue, cl.Kernel(program, name), buffers, tasks
        )
    return lambda program, name, buffers, tasks: _NativeLaunch(
        functions, queue, _created(functions, program, name), buffers, tasks
    )


def _created(functions: KernelFunctions, program: Program, name: str) -> int:
    status = ctypes.c_int32()
    handle = functions.create(ctypes.c_void_p(program.int_ptr), name.encode(), ctypes.byref(status))
    require_success(status.value, "clCreateKernel")
    assert handle is not None, "there is a kernel where the status is success"
    return handle


class _NativeLaunch:
    """Through the C API; holds the queue and the buffers that the driver knows by address."""

    def __init__(
        self,
        functions: KernelFunctions,
        queue: cl.CommandQueue,
        handle: int,
        buffers: Sequence[cl.Buffer],
        tasks: int,
    ) -> None:
        self._kernel = ctypes.c_void_p(handle)
        self._functions = functions
        self._enqueue = functions.enqueue
        self._held = (queue, tuple(buffers))
        for index, buffer in enumerate(buffers):
            value = ctypes.c_void_p(buffer.int_ptr)
            status = functions.set_argument(
                self._kernel, index, ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(value)
            )
            require_success(status, "clSetKernelArg")
        sizes = (ctypes.c_size_t * 1)(tasks), (ctypes.c_size_t * 1)(*_LOCAL)
        self._call = (ctypes.c_void_p(queue.int_ptr), self._kernel, 1, None, *sizes, 0, None)

    def enqueue(self) -> None:
        status = self._enqueue(*self._call, None)
        if status:
            require_success(status, "clEnqueueNDRangeKernel")

    def enqueue_timed(self) -> cl.Event:
        event = ctypes.c_void_p()
        status = self._enqueue(*self._call, ctypes.byref(event))
        require_success(status, "clEnqueueNDRangeKernel")
        assert event.value is not None, "there is an event where the status is success"
        return cl.Event.from_int_ptr(event.value, retain=False)

    def release(self) -> None:
        if self._kernel.value is not None:
            self._functions.release(self._kernel)
            self._kernel = ctypes.c_void_p()

    def __del__(self) -> None:
        """What was made before the next one failed goes with its list."""
        self.release()


class _PyopenclLaunch:
    """Through pyopencl's own objects, which release what they hold."""

    def __init__(
        self, queue: cl.CommandQueue, kernel: cl.Kernel, buffers: Sequence[cl.Buffer], tasks: int
    ) -> None:
        self._call = (queue, kernel, (tasks,), _LOCAL)
        for index, buffer in enumerate(buffers):
            kernel.set_arg(index, buffer)

    def enqueue(self) -> None:
        cl.enqueue_nd_range_kernel(*self._call)

    def enqueue_timed(self) -> cl.Event:
        return cl.enqueue_nd_range_kernel(*self._call)

    def release(self) -> None:
        """The garbage collector's."""
