"""A program with its memory on one device: kernels and arguments prepared once, then launched."""

from __future__ import annotations

import threading
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Queue
from eps.opencl.program_spec import ENTRY, ArenaSpan, Weight, WeightArgument
from eps.opencl.runtime.device_memory import allocate_zeros
from eps.opencl.runtime.launch import Launch
from eps.opencl.runtime.program import read_binary
from eps.opencl.runtime.room import needed_memory, own_bytes, require_room
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.ep import EPFail, InvalidArgument, get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from eps.opencl.cl.objects import Buffer, Context
    from eps.opencl.cl.program import Program
    from eps.opencl.program_spec import ProgramPort, ProgramSpec
    from eps.opencl.runtime.arena import SharedArena
    from eps.opencl.runtime.bound_ports import BoundPorts, TakesArguments
    from eps.opencl.runtime.chains import Chains
    from eps.opencl.runtime.device_access import DeviceAccess
    from eps.opencl.runtime.device_memory import DeviceWeights
    from ort_lite.ep import Place, Value

    Array = np.ndarray[Any, np.dtype[Any]]


OUT_OF_RANGE = "an index is out of the range of the axis that it picks from"


log = get_logger(__name__)
_ALONE = nullcontext()


class Executable:
    """Runs one spec; one run at a time, because kernels hold their arguments.

    Its arena is its own, or an own part, which keeps its content, and then one that it shares.
    """

    def __init__(
        self,
        access: DeviceAccess,
        make_programs: Callable[[], Sequence[Program]],
        spec: ProgramSpec,
        weights: DeviceWeights,
        *,
        profiling: bool,
    ) -> None:
        """Allocate memory, place weights, prepare every launch.

        Args:
            access: The device.
            make_programs: Builds or loads the program, or one for each part of the spec, while the
                driver copies weights.
            spec: What to run.
            weights: Of the partition.
            profiling: Whether runs log the time of each kernel.

        Raises:
            EPFail: The device has not enough memory, and then nothing was allocated; or the
                program lacks a kernel.
            InvalidGraph: From `make_programs`.
        """
        self.spec = spec
        self._checks = spec.checks
        self._context = context = access.context
        self._waits = access.queue is None
        self.programs: tuple[Program, ...] = ()  # until it is ready, and once it is released
        self._warm = False
        self._lock = threading.Lock()
        self._profiling = profiling
        self._weights = weights
        self.copies = access.copies
        self._bound: BoundPorts | None = None
        self._parts: dict[ArenaSpan, Buffer] = {}
        self._calls: list[TakesArguments] = []
        self._launches: list[Launch] = []
        self._chains: Chains | None = None
        shared_from = own_bytes(spec, access.arena)
        self._own_bytes = shared_from
        self._shared = access.arena if shared_from < spec.arena else None
        self._shared_buffer: Buffer | None = None
        require_room(context, [needed_memory([spec], weights, access.arena)])
        held = weights.hold(spec.weights, spec.stream_digests)
        with ExitStack() as undo:
            undo.callback(weights.drop, spec.weights)
            if self._shared is not None:
                self._shared.join(self, spec.arena - shared_from)
                undo.callback(self._shared.leave, self)
            programs = tuple(make_programs())
            with opencl_errors("preparing a program"):
                self._queue = access.queue or Queue(context, profiling=profiling)
                self._arena = self._allocate_zeros(context, max(shared_from, 1))
                for fill in spec.fills:
                    place = fill.place.offset, fill.place.size
                    self._queue.fill(self._arena, fill.value, *place)
                self._flag = self._allocate_zeros(context, 4)
                with self._turn(waits=True):
                    self._prepare_launches(programs, held)
                    self._queue.finish()
            weights.wait_for_uploads()
            undo.pop_all()
        self.programs = programs

    def _allocate_zeros(self, context: Context, size: int) -> Buffer:
        return allocate_zeros(context, CL_MEM_READ_WRITE, size, self._queue)

    def _prepare_launches(self, programs: Sequence[Program], weights: Sequence[Buffer]) -> None:
        """Make the launches of all calls and chains, and set their arguments."""
        spec, flag = self.spec, self._flag
        numbers = {name: number for number, name in enumerate(spec.functions)}
        most, parts = spec.most_arguments, spec.part_of_function
        if spec.chains and self._waits and not self._profiling:
            from eps.opencl.runtime.chains import Chains  # noqa: PLC0415 - lazy: rare

            launcher = partial(self._launch_entry, programs)
            self._chains = Chains(spec, self._context, self._queue, launcher)
        chains = self._chains
        buffers: dict[int, Buffer] = {}  # by the identity of an argument, which calls share
        for at, call in enumerate(spec.calls):
            operands: list[Buffer] = []
            for one in call.arguments:
                buffer = buffers.get(id(one))
                if buffer is None:
                    if isinstance(one, WeightArgument):
                        buffer = weights[one.index]
                    else:
                        buffer = self._part(one)
                    buffers[id(one)] = buffer
                operands.append(buffer)
            if call.checks:
                operands.append(flag)
            if chains is not None and at in chains.calls:
                chained = chains.calls[at]
                chained.set_all(operands)
                self._calls.append(chained)
                if at in chains.launches:
                    self._launches.append(chains.launches[at])
                continue
            name, number = call.kernel, numbers[call.kernel]
            arguments: list[Buffer | int] = [*operands]
            if spec.entry:
                unread = [flag] * (most - len(operands))
                name, arguments = ENTRY, [number, *operands, *unread]
            program = programs[parts.get(number, 0)]
            launch = Launch(self._queue, program, name, arguments, (call.tasks, call.group))
            self._calls.append(launch)
            self._launches.append(launch)

    def _launch_entry(
        self,
        programs: Sequence[Program],
        part: int,
        arguments: Sequence[Buffer | int],
        size: tuple[int, int],
    ) -> Launch:
        return Launch(self._queue, programs[part], ENTRY, arguments, size)

    def _part(self, place: ArenaSpan) -> Buffer:
        buffer, offset = self._locate(place.offset)
        if self._shared is not None and buffer is self._shared_buffer:
            return self._shared.part(offset, place.size)
        part = self._parts.get(place)
        if part is None:
            part = self._parts[place] = buffer.part(offset, place.size)
        return part

    def _locate(self, offset: int) -> tuple[Buffer, int]:
        """The buffer that has a place of the arena, and the place in it."""
        if offset < self._own_bytes or self._shared_buffer is None:
            return self._arena, offset
        return self._shared_buffer, offset - self._own_bytes

    def _turn(self, *, waits: bool) -> AbstractContextManager[None]:
        """The arena for this program alone, until commands that were enqueued have ended."""
        if self._shared is None:
            return _ALONE
        return self._shared.turn(self, self._queue, waits=waits)

    def enter_arena(self, buffer: Buffer) -> None:
        """See ArenaUser: kernels get other arguments where the memory is another one."""
        if self._shared_buffer is buffer:
            return
        self._shared_buffer = buffer
        self._bound = None
        shift = 1 if self.spec.entry else 0  # the entry's first argument is a number
        for prepared, call in zip(self._calls, self.spec.calls, strict=False):
            for index, place in enumerate(call.arguments):
                if isinstance(place, ArenaSpan) and place.offset >= self._own_bytes:
                    prepared.set_argument(index + shift, self._part(place))

    def leave_arena(self) -> None:
        """See ArenaUser."""
        self._shared_buffer = None

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Compute the outputs.

        Raises:
            EPFail: The device failed.
            InvalidArgument: An index lies outside of what it picks from.
        """
        spec = self.spec
        outputs = [np.empty(port.shape, port.dtype) for port in spec.outputs]
        with self._lock, opencl_errors("running"), self._take_turn(waits=True):
            if self._bound is not None:
                self._bound.use_arena()
            self._write(inputs)
            self._launch()
            for port, array in zip(spec.outputs, outputs, strict=True):
                self._copy(array, port, write=False)
            wrong = self._read_flag()
            self._queue.finish()
            self._warm = True
        if wrong:
            raise InvalidArgument(OUT_OF_RANGE)
        return outputs

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> list[Value]:
        """Compute the outputs from and to tensors of this context; see `SupportsBoundRuns`.

        Raises:
            EPFail: The device failed.
            InvalidArgument: An index lies outside of what it picks from.
        """
        from eps.opencl.runtime.bound_ports import BoundPorts  # noqa: PLC0415 - lazy: rare

        with (
            self._lock,
            opencl_errors("running with bound tensors"),
            self._take_turn(waits=self._waits),
        ):
            if self._bound is None:
                self._bound = BoundPorts(self.spec, self._calls, self._part)
            outputs = self._bound.bind(inputs, places)
            self._bound.wait_for_tensors(self._queue, (*inputs, *outputs))
            self._send(self._bound, inputs)
            if self._checks:
                self._queue.clear(self._flag, 4)
            self._launch()
            self._fetch(self._bound, outputs)
            wrong = self._read_flag()
            if self._waits:
                self._queue.finish()
            else:
                self._bound.note_use(self._queue, (*inputs, *outputs))
            self._warm = True
        if wrong:
            raise InvalidArgument(OUT_OF_RANGE)
        return outputs

    def _send(self, bound: BoundPorts, inputs: Sequence[Value]) -> None:
        """Copy to the arena what kernels do not read in place."""
        for number in bound.sent:
            port, value = self.spec.inputs[number], inputs[number]
            if isinstance(value, np.ndarray):
                self._copy(np.ascontiguousarray(value), port, write=True)
            elif port.nbytes:
                arena, offset = self._locate(port.offset)
                self._move(value.buffer, arena, (0, offset), port)

    def _fetch(self, bound: BoundPorts, outputs: Sequence[Value]) -> None:
        """Copy from the arena what kernels did not write to its place."""
        for number in bound.fetched:
            port, output = self.spec.outputs[number], outputs[number]
            if isinstance(output, np.ndarray):
                self._copy(output, port, write=False)
            elif port.nbytes:
                arena, offset = self._locate(port.offset)
                self._move(arena, output.buffer, (offset, 0), port)

    def _take_turn(self, *, waits: bool) -> AbstractContextManager[None]:
        """As `_turn`; EPFail if the program was released. Its lock is held."""
        if not self.programs:
            raise EPFail("a partition is run after it was released")
        return self._turn(waits=waits)

    def _launch(self) -> None:
        if self._profiling:
            self._launch_timed()
        else:
            if self._chains is not None:
                self._chains.begin_run()
            for launch in self._launches:
                launch.enqueue()

    def _move(
        self, source: Buffer, destination: Buffer, offsets: tuple[int, int], port: ProgramPort
    ) -> None:
        """Copy a tensor between the arena and memory of the user's, on the device."""
        from eps.opencl.runtime.tensors import copy_buffer  # noqa: PLC0415 - lazy: rare

        copy_buffer(self._queue, source, destination, port.nbytes, offsets)
        self.copies.count_on_device(port.nbytes)

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
            with self._turn(waits=True):
                self._warm_up(progress)
            self._warm = True

    def _warm_up(self, progress: Callable[[int, int], None] | None) -> None:
        if self._chains is not None:
            self._chains.begin_run()
        for done, launch in enumerate(self._launches):
            if progress is not None:
                progress(done, len(self._launches))
            launch.enqueue()
            self._queue.finish()

    def binaries(self) -> list[bytes]:
        """The driver's binary of each program.

        Raises:
            EPFail: It was released.
        """
        if not self.programs:
            raise EPFail("a partition is exported after it was released")
        return [read_binary(self._context, one, self.spec.kernels) for one in self.programs]

    def _write(self, inputs: Sequence[Array]) -> None:
        for port, array in zip(self.spec.inputs, inputs, strict=True):
            self._copy(np.ascontiguousarray(array), port, write=True)
        if self._checks:
            self._queue.clear(self._flag, 4)

    def _copy(self, array: Array, port: ProgramPort, *, write: bool) -> None:
        if not array.nbytes:
            return
        arena, offset = self._locate(port.offset)
        if write:
            self._queue.write(arena, array, offset)
            self.copies.count_to_device(array.nbytes)
        else:
            self._queue.read(array, arena, offset)
            self.copies.count_to_host(array.nbytes)

    def _read_flag(self) -> bool:
        if not self._checks:
            return False
        flag = np.zeros(1, np.int32)
        self._queue.read(flag, self._flag)
        return bool(flag[0])

    def _launch_timed(self) -> None:
        for launch, call in zip(self._launches, self.spec.calls, strict=True):
            log.debug(
                "%s: %.1f us, %d operations, %d bytes",
                *(call.kernel, launch.run_timed() / 1e3, call.work, self.spec.bytes_of(call)),
            )

    @property
    def arena_bytes(self) -> int:
        """Size of the program's own memory for values inside it; 0 once it is released."""
        return 0 if not self.programs else self._own_bytes

    @property
    def shared_arena(self) -> SharedArena | None:
        """The arena that has the other values; None where its own memory has all."""
        return self._shared

    @property
    def weight_bytes(self) -> int:
        """Size of the weights of all programs of its partition."""
        return self._weights.size()

    def forget_weights(self) -> None:
        """Let go of the weights' bytes here; those that the device has or reads stay."""
        if self._profiling:
            return  # a profile counts them
        weights = tuple(Weight(weight.digest, memoryview(b"")) for weight in self.spec.weights)
        self.spec = replace(self.spec, weights=weights)

    def release(self) -> None:
        """Give device memory back; waits for a run under way."""
        with self._lock:
            if not self.programs:
                return
            self.programs = ()
            if not self._waits:  # the last run may go on
                with opencl_errors("waiting for the last run"):
                    self._queue.finish()
            if self._shared is not None:
                self._shared.leave(self)
            for launch in self._launches:
                launch.release()
            self._launches.clear()
            self._calls.clear()
            if self._chains is not None:
                self._chains.release()
            self._bound = None
            for part in self._parts.values():
                part.release()
            self._parts.clear()
            self._weights.drop(self.spec.weights)
            for buffer in (self._arena, self._flag):
                buffer.release()
