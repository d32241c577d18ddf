"""Tensors of users in place of the arena: arguments of kernels that a run sets anew."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

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

    Uses = tuple[tuple[int, int], ...]

    Region = tuple[int, int, int]
    """Handle of memory, and the first byte and the byte after the last one of a tensor in it."""
    _Users = dict[int, list[tuple[int, int, int]]]
    """By memory: the number of an input, or `_OUTPUT`, and its first and last byte."""

_ARENA = None
_OUTPUT = -1
"""User of memory that an output of the same run is written to."""


class BoundPorts:
    """The memory that each input and output of one program has at the moment.

    Kernels keep their arguments from run to run, so an argument is set only where it changes.

    Attributes:
        bound_outputs: For each output whether kernels write to its tensor themselves.
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
        self.bound_outputs: tuple[bool, ...] = ()
        self._writable: list[bool] = []
        self._regions: list[Region | None] = []

    def use_arena(self) -> None:
        """Have kernels read and write the arena alone."""
        for port in (*self._inputs, *self._outputs):
            self._set(port, _ARENA)

    def bind_inputs(self, inputs: Sequence[Value]) -> list[bool]:
        """Have kernels read tensors in place, arrays from the arena.

        Returns:
            For each input whether it is read in place.
        """
        return [
            self._set(port, value if isinstance(value, OpenCLTensor) else _ARENA)
            for port, value in zip(self._inputs, inputs, strict=True)
        ]

    def wait_for_tensors(self, queue: Queue, values: Sequence[Value]) -> None:
        """Have the queue wait for what other queues still do with tensors.

        Raises:
            OpenCLError: The driver refuses.
        """
        events = [
            handle
            for value in values
            if isinstance(value, OpenCLTensor)
            for handle in value.event_handles()
        ]
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

    def place_outputs(self, inputs: Sequence[Value], places: Sequence[Place]) -> list[Value]:
        """Have kernels write to the places as far as they can.

        Args:
            inputs: Of the run.
            places: None, an array, a tensor or a memory for each output.

        Returns:
            The arrays and tensors that the outputs go to.
        """
        values = [
            _destination(port.port, place)
            for port, place in zip(self._outputs, places, strict=True)
        ]
        self._find_writable(inputs, values)
        self.bound_outputs = tuple(
            [
                self._set(port, value if writes and isinstance(value, OpenCLTensor) else None)
                for port, value, writes in zip(self._outputs, values, self._writable, strict=True)
            ]
        )
        return values

    def _find_writable(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Whether kernels may write to each output's tensor; as before, where memory is."""
        regions = [
            value.region if isinstance(value, OpenCLTensor) else None
            for value in (*inputs, *outputs)
        ]
        if regions == self._regions:
            return
        users: _Users = {}
        writable = []
        for number, region in enumerate(regions):
            if number < len(inputs):
                if region is not None:
                    _add_user(users, region, number)
                continue
            output = number - len(inputs)
            writable.append(region is not None and self._may_write(output, region, users))
            if region is not None:
                _add_user(users, region, _OUTPUT)
        self._regions, self._writable = regions, writable

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
    dtype = np.dtype(port.dtype)
    if isinstance(place, OpenCLMemory):
        return place.allocate(port.shape, dtype, zeros=False)
    if not isinstance(place, OpenCLTensor | np.ndarray):
        return np.empty(port.shape, dtype)
    fits = (tuple(place.shape), place.dtype) == (port.shape, dtype)
    if isinstance(place, np.ndarray):
        fits = fits and place.flags.c_contiguous and place.flags.writeable
    return place if fits else np.empty(port.shape, dtype)


def _add_user(users: _Users, region: Region, user: int) -> None:
    base, start, end = region
    users.setdefault(base, []).append((user, start, end))
