"""Chains of calls, each of which one launch runs: where their functions find their arguments.

An argument of such a call is a slot of a table of addresses on the device. A launch of the entry
writes the addresses of its arguments there, so that they are those that kernels see. Between
launches the driver does not know what a chain reads and writes: the memory has to stay until it has
ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Buffer
from eps.opencl.program_spec import (
    CHAIN_COUNTERS,
    ArenaSpan,
    WeightArgument,
    chain_row_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.opencl.cl.objects import Context, Queue
    from eps.opencl.program_spec import LaunchSpec, ProgramSpec
    from eps.opencl.runtime.launch import Launch

    Launcher = Callable[[int, Sequence[Buffer | int], tuple[int, int]], Launch]
    """Makes a launch of a part's entry with arguments, of so many work-items in groups."""
    Key = ArenaSpan | WeightArgument | int | None
    """Equal for arguments that are one address: a port's number is apart from the arena, since a
    tensor of the user's may take its place; None is the flag for bad indices."""

ITEMS_OF_A_CORE = 2
"""Work-items of a chain for each core. One that has waited for long leaves, and the next one goes
on instead, until none is left: another process has the core whose work they wait for."""
ADDRESS = 8
"""Bytes of an address in the table."""


class ChainedCall:
    """The arguments of a call that is part of a chain."""

    def __init__(self, chains: Chains, slots: Sequence[int], shift: int) -> None:
        """Its arguments are these slots of the table; the entry has `shift` arguments before."""
        self._chains, self._slots, self._shift = chains, slots, shift

    def set_all(self, buffers: Sequence[Buffer]) -> None:
        """Set every argument."""
        for slot, buffer in zip(self._slots, buffers, strict=True):
            self._chains.place(slot, buffer)

    def set_argument(self, index: int, buffer: Buffer) -> None:
        """As of a launch; the next run of the chain sees it."""
        self._chains.place(self._slots[index - self._shift], buffer)


class Chains:
    """All chains of one program.

    Attributes:
        calls: The calls in chains, by index.
        launches: The launch of each chain, by the index of its first call.
    """

    def __init__(
        self, spec: ProgramSpec, context: Context, queue: Queue, launcher: Launcher
    ) -> None:
        """Make the tables; addresses are placed by `place`.

        Raises:
            OpenCLError: The device has not enough memory, or the program lacks the entry.
        """
        self._queue, self._launcher = queue, launcher
        self._most, self._functions = spec.most_arguments, len(spec.functions)
        self._new: dict[int, Buffer] = {}
        ports = _ports_of_arguments(spec)
        slots: dict[Key, int] = {}
        rows = np.zeros((len(spec.calls), chain_row_size(self._most)), np.int32)
        self.calls: dict[int, ChainedCall] = {}
        numbers = {name: number for number, name in enumerate(spec.functions)}
        for begin, end in spec.chains:
            for at in range(begin, end):
                call = spec.calls[at]
                own = [slots.setdefault(key, len(slots)) for key in _keys_of(call, at, ports)]
                rows[at, : 2 + len(own)] = (numbers[call.kernel], call.tasks, *own)
                self.calls[at] = ChainedCall(self, own, shift=1)
        table = np.concatenate([np.array(spec.chains, np.int32).reshape(-1), rows.reshape(-1)])
        self._counted = len(spec.calls) * CHAIN_COUNTERS * 4
        sizes = len(slots) * ADDRESS, table.nbytes, self._counted
        self._slots, calls, self._counters = self._memory = [
            Buffer.of(context, CL_MEM_READ_WRITE, size) for size in sizes
        ]
        queue.write(calls, table)
        items = ITEMS_OF_A_CORE * max(1, context.device.max_compute_units)
        self.launches = {
            begin: launcher(part or 0, self._fill((-1 - number, *self._memory)), (items, 1))
            for number, ((begin, _), part) in enumerate(
                zip(spec.chains, spec.parts_of_chains, strict=True)
            )
        }

    def _fill(self, arguments: tuple[int | Buffer, ...]) -> list[int | Buffer]:
        """As many arguments as the entry has; the table of addresses in place of none."""
        return [*arguments, *[self._slots] * (1 + self._most - len(arguments))]

    def place(self, slot: int, buffer: Buffer) -> None:
        """Have chains find a buffer at a slot; the caller keeps it while they use it."""
        self._new[slot] = buffer

    def begin_run(self) -> None:
        """Enqueue what chains need before they run: new addresses, and counters at zero.

        Raises:
            OpenCLError: The driver refuses.
        """
        while self._new:
            first = min(self._new)
            end = first
            while end in self._new and end - first < self._most - 1:
                end += 1
            buffers = [self._new[slot] for slot in range(first, end)]
            arguments = self._fill((self._functions + first, self._slots, *buffers))
            self._launcher(0, arguments, (1, 1)).enqueue()
            for slot in range(first, end):
                del self._new[slot]
        self._queue.clear(self._counters, self._counted)

    def release(self) -> None:
        """Give the memory of tables back, and the launches."""
        for launch in self.launches.values():
            launch.release()
        for buffer in self._memory:
            buffer.release()


def _ports_of_arguments(spec: ProgramSpec) -> dict[tuple[int, int], int]:
    """For each (call, argument) that is the memory of an input or output, a number of the port."""
    sides = spec.port_uses.sides if spec.port_uses is not None else ()
    ports = [uses for side in sides for uses in side]
    return {use: number for number, uses in enumerate(ports) for use in uses or ()}


def _keys_of(
    call: LaunchSpec, at: int, ports: dict[tuple[int, int], int]
) -> list[ArenaSpan | WeightArgument | int | None]:
    keys = [ports.get((at, index), one) for index, one in enumerate(call.arguments)]
    return [*keys, *([None] if call.checks else [])]
