"""Streams on OpenCL: a command queue of the context that the tensors of a device share."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.cl.foreign import mark, wait_on_device
from eps.opencl.cl.objects import Queue
from eps.opencl.runtime.tensors import OpenCLTensor, bytes_of, copy_buffer
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.ep import DeviceStream, EPFail

if TYPE_CHECKING:
    from eps.opencl.cl.objects import Event
    from eps.opencl.runtime.tensors import OpenCLMemory
    from ort_lite.ep import Value

    Array = np.ndarray[Any, np.dtype[Any]]

MOST_PENDING = 64
"""Copies from and to host memory that have perhaps not been made, whose arrays are kept."""


class OpenCLStream(DeviceStream):
    """An in-order command queue. Tensors have the event of their last copy."""

    memory: OpenCLMemory

    def __init__(self, memory: OpenCLMemory) -> None:
        """Create the queue.

        Raises:
            EPFail: The driver does not.
        """
        memory.require_process()
        self.memory = memory
        self._process = os.getpid()
        self._pending: list[Event] = []
        with opencl_errors("creating a stream"):
            self._queue = Queue(memory.context)

    @property
    def handle(self) -> int:
        """The cl_command_queue."""
        return self._queue.handle

    def copy(self, source: Value, destination: Value) -> None:
        """See DeviceStream."""
        self.memory.require_process()
        tensors = [one for one in (source, destination) if isinstance(one, OpenCLTensor)]
        if source is destination or not tensors[0].nbytes:
            return
        with opencl_errors("copying a tensor on a stream"):
            wait_on_device(self._queue, [e for one in tensors for e in one.event_handles()])
            self._enqueue(source, destination)
            event = mark(self._queue)
            self._queue.flush()
        for tensor in tensors:
            tensor.note_event(event)

    def _enqueue(self, source: Value, destination: Value) -> None:
        copies = self.memory.copies
        if not isinstance(source, OpenCLTensor):
            array = np.ascontiguousarray(source)
            self._keep(self._queue.begin_write(destination.buffer, bytes_of(array)))
            copies.count_to_device(array.nbytes)
        elif not isinstance(destination, OpenCLTensor):
            self._keep(self._queue.begin_read(bytes_of(destination), source.buffer))
            copies.count_to_host(source.nbytes)
        else:
            copy_buffer(self._queue, source.buffer, destination.buffer, source.nbytes)
            copies.count_on_device(source.nbytes)

    def _keep(self, event: Event) -> None:
        """Keep the array of a copy until it has been made, of the oldest copy at the latest now."""
        self._pending.append(event)
        if len(self._pending) > MOST_PENDING:
            self._pending.pop(0).wait()

    def synchronize(self) -> None:
        """See DeviceStream."""
        self.memory.require_process()
        with opencl_errors("waiting for a stream"):
            self._queue.finish()
        self._pending.clear()

    def __del__(self) -> None:
        """Let copies end that have arrays of the program's."""
        if not getattr(self, "_pending", None):
            return
        if os.getpid() == self._process:
            with suppress(EPFail):  # of a lost device, which copies nothing any more
                self.synchronize()
        else:
            _left_alone.extend(self._pending)


_left_alone: list[Event] = []
"""In a forked process, events of a driver that has lost its threads: nothing waits for them."""
