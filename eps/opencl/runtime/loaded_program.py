"""A program with its memory on one device: kernels and arguments prepared once, then launched."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.opencl.blueprint import ENTRY, Constant, Weight
from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Queue
from eps.opencl.runtime.device_memory import allocate
from eps.opencl.runtime.launches import Launch
from eps.opencl.runtime.program import read_binary
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.opencl.blueprint import Blueprint, Call, Place, Port
    from eps.opencl.cl.objects import Buffer, Context
    from eps.opencl.cl.program import Program
    from eps.opencl.runtime.device_weights import DeviceWeights

    Array = np.ndarray[Any, np.dtype[Any]]

log = get_logger(__name__)


class Executable:
    """Runs one blueprint; one run at a time, because kernels hold their arguments."""

    def __init__(
        self,
        context: Context,
        make_program: Callable[[], Program],
        blueprint: Blueprint,
        weights: DeviceWeights,
        *,
        profiling: bool,
    ) -> None:
        """Allocate memory, place weights, prepare every launch.

        Args:
            context: Of one device.
            make_program: Builds or loads the program, while the driver copies weights.
            blueprint: What to run.
            weights: Of the partition.
            profiling: Whether runs log the time of each kernel.

        Raises:
            EPFail: The device has not enough memory, or the program lacks a kernel.
            InvalidGraph: From `make_program`.
        """
        self.blueprint = blueprint
        self._context = context
        self.program: Program | None = None
        self._warm = False
        self._lock = threading.Lock()
        self._profiling = profiling
        self._weights = weights
        self._parts: dict[Place, Buffer] = {}
        held = weights.hold(blueprint.weights)
        with ExitStack() as undo:
            undo.callback(weights.drop, blueprint.weights)
            program = make_program()
            with opencl_errors("preparing a program"):
                self._queue = Queue(context, profiling=profiling)
                self._arena = self._zeros(context, blueprint.arena)
                for fill in blueprint.fills:
                    place = fill.place.offset, fill.place.size
                    self._queue.fill(self._arena, fill.value, *place)
                self._flag = self._zeros(context, 4)
                self._launches = self._launches_of(program, held)
                self._queue.finish()
            weights.settle()
            undo.pop_all()
        self.program = program

    def _zeros(self, context: Context, size: int) -> Buffer:
        buffer = allocate(context, CL_MEM_READ_WRITE, size)
        self._queue.clear(buffer, size)
        return buffer

    def _launches_of(self, program: Program, weights: Sequence[Buffer]) -> list[Launch]:
        blueprint = self.blueprint
        numbers = {name: number for number, name in enumerate(blueprint.functions)}
        launches = []
        for call in blueprint.calls:
            name, arguments = call.kernel, self._arguments(call, weights)
            given: Sequence[Buffer | int] = arguments
            if blueprint.entry:
                unread = [self._flag] * (blueprint.most_arguments - len(arguments))
                name, given = ENTRY, [numbers[name], *arguments, *unread]
            launches.append(Launch(self._queue, program, name, given, (call.tasks, call.group)))
        return launches

    def _arguments(self, call: Call, weights: Sequence[Buffer]) -> list[Buffer]:
        arguments = [
            weights[one.index] if isinstance(one, Constant) else self._part(one)
            for one in call.arguments
        ]
        return [*arguments, *([self._flag] if call.checks else [])]

    def _part(self, place: Place) -> Buffer:
        found = self._parts.get(place)
        if found is None:
            found = self._arena.part(place.offset, place.size)
            self._parts[place] = found
        return found

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Compute the outputs.

        Raises:
            EPFail: The device failed.
            InvalidArgument: An index lies outside of what it picks from.
        """
        blueprint = self.blueprint
        outputs = [np.empty(port.shape, port.dtype) for port in blueprint.outputs]
        with self._lock, opencl_errors("running"):
            if self.program is None:
                raise EPFail("a partition is run after it was released")
            self._write(inputs)
            if self._profiling:
                self._launch_timed()
            else:
                for launch in self._launches:
                    launch.enqueue()
            for port, array in zip(blueprint.outputs, outputs, strict=True):
                self._copy(array, port, write=False)
            wrong = self._checked()
            self._queue.finish()
            self._warm = True
        if wrong:
            raise InvalidArgument("an index is out of the range of the axis that it picks from")
        return outputs

    def warm(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Launch every kernel once, with whatever is in memory; not again where that was done.

        Args:
            progress: Called with how many have run, and how many there are.

        Raises:
            EPFail: The device failed.
        """
        with self._lock, opencl_errors("running once"):
            if self._warm:
                return
            for done, launch in enumerate(self._launches):
                if progress is not None:
                    progress(done, len(self._launches))
                launch.enqueue()
                self._queue.finish()
            self._warm = True

    def binary(self) -> bytes:
        """The driver's binary of the program.

        Raises:
            EPFail: It was released.
        """
        if self.program is None:
            raise EPFail("a partition is exported after it was released")
        return read_binary(self._context, self.program, self.blueprint.kernels)

    def _write(self, inputs: Sequence[Array]) -> None:
        for port, array in zip(self.blueprint.inputs, inputs, strict=True):
            self._copy(np.ascontiguousarray(array), port, write=True)
        if self.blueprint.checks:
            self._queue.clear(self._flag, 4)

    def _copy(self, array: Array, port: Port, *, write: bool) -> None:
        if not array.nbytes:
            return
        if write:
            self._queue.write(self._arena, array, port.offset)
        else:
            self._queue.read(array, self._arena, port.offset)

    def _checked(self) -> bool:
        if not self.blueprint.checks:
            return False
        found = np.zeros(1, np.int32)
        self._queue.read(found, self._flag)
        return bool(found[0])

    def _launch_timed(self) -> None:
        for launch, call in zip(self._launches, self.blueprint.calls, strict=True):
            log.debug(
                "%s: %.1f us, %d operations, %d bytes",
                *(call.kernel, launch.timed() / 1e3, call.work, self.blueprint.bytes_of(call)),
            )

    def forget_weights(self) -> None:
        """Let go of the weights' bytes here; those that the device has or reads stay."""
        if self._profiling:
            return  # a profile counts them
        weights = tuple(Weight(weight.digest, memoryview(b"")) for weight in self.blueprint.weights)
        self.blueprint = replace(self.blueprint, weights=weights)

    def release(self) -> None:
        """Give device memory back; waits for a run under way."""
        with self._lock:
            if self.program is None:
                return
            self.program = None
            for launch in self._launches:
                launch.release()
            self._launches.clear()
            for part in self._parts.values():
                part.release()
            self._parts.clear()
            self._weights.drop(self.blueprint.weights)
            for buffer in (self._arena, self._flag):
                buffer.release()
