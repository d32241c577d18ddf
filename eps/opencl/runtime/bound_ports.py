"""Tensors of users in place of the arena: arguments of kernels that a run sets anew."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.cl.foreign import mark, wait_on_device
from eps.opencl.program_spec import ArenaSpan, PortUses
from eps.opencl.runtime.tensors import OpenCLMemory, OpenCLTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from eps.opencl.cl.objects import Buffer, Queue
    from eps.opencl.program_spec import ProgramPort, ProgramSpec
    from ort_lite.ep import Place, Value

    class TakesArguments(Protocol):
        """A kernel with its arguments."""

        def set_argument(self, index: int, buffer: Buffer) -> None:
            """Replace a buffer among the arguments."""
            ...

    Array = np.ndarray[Any, np.dtype[Any]]
    Uses = tuple[tuple[int, int], ...]

    Region = tuple[int, int, int]
    """Handle of memory, and the first byte and the byte after the last one of a tensor in it."""
    _Users = dict[int, list[tuple[int, int, int]]]
    """By memory: the number of an input, or `_OUTPUT`, and its first and last byte."""

_NO_TENSOR = object()
_ARENA = None
_OUTPUT = -1
"""User of memory that an output of the same run is written to."""


class BoundPorts:
    """The memory that each input and output of one program has at the moment.

    Kernels keep their arguments from run to run, so an argument is set only where it changes. A
    decoder has a hundred tensors that stay where they are: runs compare their buffers with those of
    the run before, in one comparison of two lists, and go through them only if these differ.

    Attributes:
        sent: Numbers of the inputs that have to be copied to the arena.
        fetched: Numbers of the outputs that kernels do not write to their places themselves.
    """

    def __init__(
        self,
        spec: ProgramSpec,
        calls: Sequence[TakesArguments],
        part: Callable[[ArenaSpan], Buffer],
    ) -> None:
        """Everything is in the arena.

        Args:
            spec: The program.
            calls: Its kernels with their arguments.
            part: Gives the buffer of a place in the arena.
        """
        uses = spec.port_uses
        if uses is None:  # of a payload that does not say
            none = (None,) * len(spec.inputs), (None,) * len(spec.outputs)
            uses = PortUses(inputs=none[0], outputs=none[1])
        self._uses = uses
        self._inputs = [_BoundPort(*pair) for pair in zip(spec.inputs, uses.inputs, strict=True)]
        self._outputs = [_BoundPort(*pair) for pair in zip(spec.outputs, uses.outputs, strict=True)]
        self._calls = calls
        self._part = part
        self._shift = 1 if spec.entry else 0  # the entry's first argument is a number
        self.sent: list[int] = []
        self.fetched: list[int] = []
        self._buffers: list[object] | None = None
        self._first_tensor = 0
        self._open: list[int] = []
        self._copied: list[int] = []

    def use_arena(self) -> None:
        """Have kernels read and write the arena alone."""
        self._buffers = None
        for port in (*self._inputs, *self._outputs):
            self._set(port, _ARENA)

    def bind(self, inputs: Sequence[Value], places: Sequence[Place]) -> list[Value]:
        """Have kernels read tensors in place, arrays from the arena; and write to places.

        Args:
            inputs: Of the run.
            places: None, an array, a tensor or a memory for each output.

        Returns:
            The arrays and tensors that the outputs go to.

        Raises:
            BindingError: A tensor was released.
            EPFail: A tensor is another process's.
        """
        values = (*inputs, *places)
        buffers = [getattr(value, "held_buffer", _NO_TENSOR) for value in values]
        if buffers != self._buffers:
            self._buffers = None
            self._bind_tensors(inputs, places)
            tensors = (n for n, value in enumerate(values) if isinstance(value, OpenCLTensor))
            self._first_tensor = next(tensors, -1)
            self._buffers = buffers
        elif self._first_tensor >= 0:
            values[self._first_tensor].memory.require_process()
        outputs = list(places)
        self.fetched = self._copied.copy()
        for number in self._open:
            port = self._outputs[number]
            outputs[number] = value = _destination(port.port, places[number])
            if not self._set(port, value if isinstance(value, OpenCLTensor) else _ARENA):
                self.fetched.append(number)
        return outputs

    def _bind_tensors(self, inputs: Sequence[Value], places: Sequence[Place]) -> None:
        """Have kernels use the tensors that are bound, and find the values to be copied.

        Outputs without a tensor are open: each run decides where they go. Kernels may always write
        to new memory, as nothing else is in it.
        """
        users: _Users = {}
        self.sent, self._open, self._copied = [], [], []
        for number, (port, value) in enumerate(zip(self._inputs, inputs, strict=True)):
            tensor = value if isinstance(value, OpenCLTensor) else _ARENA
            if not self._set(port, tensor):
                self.sent.append(number)
            if tensor is not None:
                _add_user(users, tensor.region, number)
        for number, (port, place) in enumerate(zip(self._outputs, places, strict=True)):
            if not isinstance(place, OpenCLTensor) or not _fits(port.port, place):
                self._open.append(number)
                continue
            may_write = self._may_write(number, place.region, users)
            if not self._set(port, place if may_write else _ARENA):
                self._copied.append(number)
            _add_user(users, place.region, _OUTPUT)

    def wait_for_tensors(self, queue: Queue, values: Sequence[Value]) -> None:
        """Have the queue wait for what other queues still do with tensors.

        Raises:
            OpenCLError: The driver refuses.
        """
        waiting = [value for value in values if getattr(value, "has_events", False)]
        events = [handle for value in waiting for handle in value.event_handles()]
        if events:
            wait_on_device(queue, list(dict.fromkeys(events)))

    def note_use(self, queue: Queue, values: Sequence[Value]) -> None:
        """Let tensors know the event that ends the run, which goes on after the call.

        Raises:
            OpenCLError: The driver refuses.
        """
        event = mark(queue)
        queue.flush()
        for value in values:
            if isinstance(value, OpenCLTensor):
                value.note_event(event)

    def _may_write(self, number: int, region: Region, users: _Users) -> bool:
        """Whether kernels may write output `number` to memory that is perhaps an input's, too."""
        base, start, end = region
        for user, first, last in users.get(base, ()):
            if first >= end or start >= last:
                continue
            if user == _OUTPUT:
                return False
            in_place = (first, last) == (start, end) and self._uses.may_share(user, number)
            if not in_place and self._inputs[user].uses is not None:
                return False
        return True

    def _set(self, port: _BoundPort, tensor: OpenCLTensor | None) -> bool:
        if port.uses is None:
            return False
        if port.is_at(tensor):
            return tensor is not _ARENA
        if tensor is _ARENA:
            buffer = self._part(ArenaSpan(port.port.offset, port.port.nbytes))
        else:
            buffer = tensor.buffer
        port.leave()
        for call, index in port.uses:
            self._calls[call].set_argument(index + self._shift, buffer)
        port.arrive(tensor)
        return tensor is not _ARENA


class _BoundPort:
    """One port and the tensor that kernels have in its place.

    Attributes:
        port: The port.
        uses: Arguments that are its memory; None where they cannot be replaced.
    """

    __slots__ = ("_at", "_in_arena", "port", "uses")

    def __init__(self, port: ProgramPort, uses: Uses | None) -> None:
        self.port = port
        self.uses = uses if port.nbytes else None
        self._in_arena = True
        self._at: weakref.ref[Buffer] | None = None

    def is_at(self, tensor: OpenCLTensor | None) -> bool:
        if tensor is None:
            return self._in_arena
        return self._at is not None and self._at() is tensor.buffer

    def leave(self) -> None:
        """Forget the place: setting arguments may fail between two of them."""
        self._in_arena, self._at = False, None

    def arrive(self, tensor: OpenCLTensor | None) -> None:
        self._in_arena = tensor is None
        self._at = None if tensor is None else weakref.ref(tensor.buffer)


def _destination(port: ProgramPort, place: Place) -> Value:
    """The array or tensor that an output goes to; a new array where its place does not fit."""
    if isinstance(place, OpenCLMemory):
        return place.allocate(port.shape, np.dtype(port.dtype), zeros=False)
    if isinstance(place, np.ndarray) and _fits(port, place):
        flags = place.flags
        if flags.c_contiguous and flags.writeable:
            return place
    return np.empty(port.shape, np.dtype(port.dtype))


def _fits(port: ProgramPort, place: OpenCLTensor | Array) -> bool:
    return (tuple(place.shape), place.dtype) == (port.shape, np.dtype(port.dtype))


def _add_user(users: _Users, region: Region, user: int) -> None:
    base, start, end = region
    users.setdefault(base, []).append((user, start, end))
