"""Runs from and to tensors of devices: what stays on a device, and who gets a copy.

A value that the next partition reads on the same device stays there. Where a partition in host
memory reads it, too, it is copied to the host once for all of them. Places that a partition did
not write to itself are filled when the run has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.ep.device_tensors import DeviceMemory, DeviceTensor
from ort_lite.execution.fill_place import fill_place
from ort_lite.execution.slots import FIRST_INPUT, UNWANTED
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.device_tensors import Place
    from ort_lite.ep.interface import Runnable, Value
    from ort_lite.execution.slots import PartitionProgram, SlotStep

    Array = np.ndarray[Any, np.dtype[Any]]


def run_bound(
    program: PartitionProgram, values: Sequence[Value], places: Sequence[Place]
) -> list[Value]:
    """Compute the outputs of a graph, each at its place.

    Args:
        program: The graph's partitions.
        values: Inputs: arrays and device tensors.
        places: Of each output, as in `SupportsBoundRuns.run_bound`.

    Raises:
        InvalidArgument: An output has another type or shape than its place.
        EPFail: A partition failed.
    """
    run = BoundRun(program, values, places)
    return run.settle(program.run_with(run.execute, values))


class BoundRun:
    """One run of the partitions of a graph whose outputs have places."""

    def __init__(
        self, program: PartitionProgram, inputs: Sequence[Value], places: Sequence[Place]
    ) -> None:
        """Find the place of every value that a partition makes.

        A decoder has dozens of tensors and one partition, so that no function is called for each
        of them here; see `_Overlaps` for graphs of several partitions.

        Args:
            program: The graph's partitions.
            inputs: Of the graph.
            places: Of each output of the graph.
        """
        steps = program.steps
        self._partitions, self._steps = program.partitions, steps
        self._copied, self._names = program.copied, program.output_names
        self._places_of_outputs = places
        self._memories = [_memory_of(partition.runnable) for partition in self._partitions]
        self._places: dict[int, Place] = {}
        if len(steps) > 1:
            for step, memory in zip(steps, self._memories, strict=True):
                if memory is not None:
                    readers = self._slots_read_on(memory, steps)
                    self._places |= {slot: memory for slot in step.outputs if slot in readers}
        self._on_host: dict[int, tuple[DeviceTensor, Array]] = {}
        lone = len(steps) == 1 and not any(self._copied)  # nothing runs after its outputs are there
        overlaps = None if lone else _Overlaps(inputs, steps, program.outputs)
        arrays: list[Array] = []
        for slot, place in zip(program.outputs, places, strict=True):
            if isinstance(place, np.ndarray):
                is_shared = any(np.may_share_memory(place, other) for other in arrays)
                arrays.append(place)
                if is_shared:
                    continue
            if place is None or (overlaps is not None and overlaps.is_read_later(place, slot)):
                continue
            self._places[slot] = place

    def _slots_read_on(self, memory: DeviceMemory, steps: Sequence[SlotStep]) -> set[int]:
        return {
            slot
            for step, other in zip(steps, self._memories, strict=True)
            if other is not None and other.reaches(memory)
            for slot in step.inputs
        }

    def execute(self, index: int, arguments: list[Value]) -> Sequence[Value]:
        """Run one partition, with every argument where it can read it.

        Raises:
            EPFail: It failed.
        """
        partition, memory = self._partitions[index], self._memories[index]
        arguments = [
            value
            if type(value) is np.ndarray
            or (memory is not None and getattr(value, "memory", None) is memory)
            else self._bring(value, memory)
            for value in arguments
        ]
        if not hasattr(partition.runnable, "run_bound"):
            results = partition.runnable.run(arguments)
        else:
            places = self._places_of(self._steps[index].outputs, memory)
            results = partition.runnable.run_bound(arguments, places)
        if len(results) != len(partition.outputs):
            raise EPFail(
                f"a partition gave {len(results)} outputs, {len(partition.outputs)} are expected"
            )
        return results

    def _places_of(self, slots: Sequence[int], memory: DeviceMemory | None) -> list[Place]:
        """Places that the maker of outputs can write to; a call of Python for others alone."""
        places: list[Place] = []
        for slot in slots:
            place = None if slot == UNWANTED else self._places.get(slot)
            if not (
                place is None
                or type(place) is np.ndarray
                or getattr(place, "memory", place) is memory
            ):
                place = _reachable(place, memory)
            places.append(place)
        return places

    def settle(self, values: Sequence[Value]) -> list[Value]:
        """Every output at its place.

        Args:
            values: Outputs as partitions gave them.

        Raises:
            InvalidArgument: A value has another type or shape than its place.
        """
        settled = list(values)
        # An input that is an output is copied before another output overwrites it.
        for first in (True, False):
            for number, copied in enumerate(self._copied):
                value, place = values[number], self._places_of_outputs[number]
                if copied is first and (place is None or value is not place):
                    name = self._names[number]
                    settled[number] = self._settle(name, value, place, shared=copied)
        return settled

    def _settle(self, name: str, value: Value, place: Place, *, shared: bool) -> Value:
        if place is None:
            if isinstance(value, DeviceTensor):
                return self._bring(value, None).copy() if shared else self._bring(value, None)
            return value.copy() if shared and isinstance(value, np.ndarray) else value
        if isinstance(place, DeviceMemory):
            if isinstance(value, DeviceTensor) and place.reaches(value.memory) and not shared:
                return value
            if not isinstance(value, np.ndarray | DeviceTensor):
                return value  # a sequence or a map stays in host memory
            place = place.allocate(value.shape, value.dtype, zeros=False)
        fill_place(place, value, f"output {name}")
        return place

    def _bring(self, value: Value, memory: DeviceMemory | None) -> Value:
        """A value that a partition can read: in its memory, or in host memory."""
        if not isinstance(value, DeviceTensor):
            return value
        if memory is not None and memory.reaches(value.memory):
            return value
        held = self._on_host.get(id(value))
        if held is None:
            held = self._on_host[id(value)] = value, value.numpy()
        return held[1]


class _Overlaps:
    """Inputs of a run that share memory with places of its outputs, as a cache of keys does."""

    def __init__(
        self, inputs: Sequence[Value], steps: Sequence[SlotStep], outputs: Sequence[int]
    ) -> None:
        self._inputs, self._steps = inputs, steps
        self._makers = {slot: n for n, step in enumerate(steps) for slot in step.outputs}
        self._outputs = frozenset(outputs)
        slots = range(FIRST_INPUT, FIRST_INPUT + len(inputs))
        self._returns_inputs = not self._outputs.isdisjoint(slots)
        self._tensors: dict[int, list[int]] | None = None

    def is_read_later(self, place: Place, slot: int) -> bool:
        """Whether memory that one partition writes to is an input that is read after that."""
        maker = self._makers.get(slot)
        if maker == len(self._steps) - 1 and not self._returns_inputs:
            return False
        shared = self._slots_in(place)
        if not shared:
            return False
        if maker is None or not self._outputs.isdisjoint(shared):
            return True
        later = (step.inputs for step in self._steps[maker + 1 :])
        return any(read in shared for reads in later for read in reads)

    def _slots_in(self, place: Place) -> list[int]:
        """Slots of the inputs that share memory with a place."""
        inputs = enumerate(self._inputs, FIRST_INPUT)
        if isinstance(place, np.ndarray):
            return [
                slot
                for slot, value in inputs
                if isinstance(value, np.ndarray) and np.may_share_memory(place, value)
            ]
        if not isinstance(place, DeviceTensor):
            return []
        if self._tensors is None:
            self._tensors = {}
            for slot, value in inputs:
                if isinstance(value, DeviceTensor):
                    self._tensors.setdefault(value.data_ptr(), []).append(slot)
        return self._tensors.get(place.data_ptr(), [])


def _reachable(place: Place, memory: DeviceMemory | None) -> Place:
    """The place of an output if its maker can write there; None for one on another device."""
    if place is None or memory is None or isinstance(place, np.ndarray):
        return place
    target = place.memory if isinstance(place, DeviceTensor) else place
    return place if target is memory or memory.reaches(target) else None


def _memory_of(runnable: Runnable) -> DeviceMemory | None:
    memory: DeviceMemory | None = getattr(runnable, "memory", None)
    return memory
