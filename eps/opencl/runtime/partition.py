"""A compiled partition whose inputs have fixed shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ort_lite.ep import CompiledPartition, EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.runtime.arena import SharedArena
    from eps.opencl.runtime.device_access import DeviceAccess
    from eps.opencl.runtime.executable import Executable
    from ort_lite.ep import CopyCounts, DeviceMemory, MemoryUse, Place, Value


def order_places(places: Sequence[Place], output_order: Sequence[int]) -> list[Place]:
    """Places in the program's order, of those in the order of the node."""
    ordered: list[Place] = [None] * len(places)
    for place, port in zip(places, output_order, strict=True):
        ordered[port] = place
    return ordered


def with_arena(use: MemoryUse, arena: SharedArena) -> MemoryUse:
    """A partition's memory with the arena that it shares."""
    note = "OpenCL: the arena is shared by the sessions with session.use_env_allocators"
    return replace(use, shared_arena=arena.size, shared_peak=arena.peak, note=note)


class StaticPartition(CompiledPartition):
    """One program; threads take turns."""

    has_device_memory = True

    def __init__(
        self,
        executable: Executable,
        name: str,
        access: DeviceAccess,
        orders: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        """Take over the executable.

        Args:
            executable: What runs.
            name: For messages.
            access: The device.
            orders: Port of each input and of each output, where they are not in order.
        """
        self.executable = executable
        self.name = name
        self._access = access
        ports = executable.spec.inputs, executable.spec.outputs
        ins, outs = orders or (range(len(ports[0])), range(len(ports[1])))
        self._taken = [list(ins).index(i) for i in range(len(ports[0]))]
        self._output_order = tuple(outs)
        self._types = tuple(np.dtype(port.dtype) for port in ports[0])

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, in the order of the node."""
        results = self.executable.run(self._require_ports(inputs))
        return [results[i] for i in self._output_order]

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
        """See SupportsBoundRuns."""
        ordered = order_places(places, self._output_order)
        results = self.executable.run_bound(self._require_ports(inputs), ordered)
        return [results[i] for i in self._output_order]

    def memory_use(self) -> MemoryUse:
        """See SupportsMemoryReport."""
        from ort_lite.ep import MemoryUse  # noqa: PLC0415 - lazy: rare

        weights, arena = self.executable.weight_bytes, self.executable.arena_bytes
        use = MemoryUse(weights=weights, arena=arena, peak=weights + arena)
        shared = self.executable.shared_arena
        return use if shared is None else with_arena(use, shared)

    def copy_counts(self) -> CopyCounts:
        """See SupportsBoundRuns."""
        return self._access.copies.read()

    @property
    def memory(self) -> DeviceMemory:
        """See SupportsBoundRuns."""
        from eps.opencl.runtime.tensors import shared_memory  # noqa: PLC0415 - lazy: rare

        return shared_memory(self._access)

    def _require_ports(self, inputs: Sequence[Value]) -> list[Value]:
        """The values in the program's order.

        Raises:
            EPFail: One is not what the program was compiled for.
        """
        values = [inputs[i] for i in self._taken]
        for port, dtype, value in zip(
            self.executable.spec.inputs, self._types, values, strict=True
        ):
            if value.shape != port.shape or value.dtype != dtype:
                raise EPFail(
                    f"{self.name}: '{port.name}' is {value.dtype}{list(value.shape)}, compiled "
                    f"for {port.dtype}{list(port.shape)}"
                )
        return values

    @property
    def notes(self) -> tuple[str, ...]:
        """How some operations are computed."""
        return self.executable.spec.notes

    def forget_source(self) -> None:
        """Let go of the weights that the device has copies of."""
        self.executable.forget_weights()

    def release(self) -> None:
        """Give device memory back."""
        self.executable.release()
