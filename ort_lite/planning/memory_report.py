"""Memory of a session by execution provider: weights, arena, bound tensors, peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass
from ort_lite.ep.memory_use import SupportsDeviceFigures, SupportsMemoryReport
from ort_lite.ep.other_answers import SupportsOtherAnswersReport
from ort_lite.planning.prepared_graph import PreparedGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.planning.prepared_graph import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemoryReport:
    """Memory of one device; bytes, None where the execution provider does not know them.

    Attributes:
        provider: Name of the execution provider.
        device: Device, as its identity has it.
        weights: Of the session's partitions.
        arena: Of the session's partitions: values inside them, copies of inputs and outputs.
        bound_tensors: Of OrtValues in memory of the device, of the whole process; 0 where
            they are in host memory.
        peak: The most that weights and arena had at once, and the most that bound tensors had.
        device_live: Allocated on the device by this process, for all sessions.
        device_peak: The most of it at once.
        device_total: Size of the device's memory.
        notes: Remarks of the execution provider.
    """

    provider: str
    device: str
    weights: int | None
    arena: int | None
    bound_tensors: int
    peak: int | None
    device_live: int | None = None
    device_peak: int | None = None
    device_total: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """Memory of a session.

    Attributes:
        devices: In the order of its execution providers.
        process_peak: High-water mark of the process's resident memory in bytes; None if the
            system does not report it.
    """

    devices: tuple[DeviceMemoryReport, ...]
    process_peak: int | None

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON values; sizes in bytes."""
        return {
            "devices": [
                {
                    "provider": one.provider,
                    "device": one.device,
                    "weights_bytes": one.weights,
                    "arena_bytes": one.arena,
                    "bound_tensors_bytes": one.bound_tensors,
                    "peak_bytes": one.peak,
                    "device_live_bytes": one.device_live,
                    "device_peak_bytes": one.device_peak,
                    "device_total_bytes": one.device_total,
                    "notes": list(one.notes),
                }
                for one in self.devices
            ],
            "process_peak_bytes": self.process_peak,
        }

    def __str__(self) -> str:
        """A line for each device, in bytes, with its notes below."""
        return "\n".join(line for one in self.devices for line in _lines(one))


def report_memory(
    graphs: Sequence[tuple[PreparedGraph, Sequence[ExecutionProvider]]], process_peak: int | None
) -> MemoryReport:
    """The memory of a session's partitions, one entry for each EP that runs some.

    Args:
        graphs: Of the session, each with its execution providers.
        process_peak: Of the process, in bytes; None if it is not known.
    """
    entries = []
    for prepared, eps in graphs:
        by_ep: dict[int, list[Partition]] = {}
        for partition in _all_partitions(prepared):
            by_ep.setdefault(id(partition.ep), []).append(partition)
        entries += [_report(ep, by_ep[id(ep)]) for ep in eps if id(ep) in by_ep]
    return MemoryReport(devices=tuple(entries), process_peak=process_peak)


def _all_partitions(prepared: PreparedGraph) -> Iterator[Partition]:
    for partition in prepared.partitions:
        yield partition
        for body in partition.bodies.values():
            yield from _all_partitions(body)
        others = _find_others(partition)
        if others is not None:
            yield from _all_partitions(others)


def _find_others(partition: Partition) -> PreparedGraph | None:
    """The partition once more, on the EPs that answer its runs with new shapes."""
    compiled = partition.compiled
    answers = compiled.other_answers() if isinstance(compiled, SupportsOtherAnswersReport) else None
    return answers if isinstance(answers, PreparedGraph) else None


def _report(ep: ExecutionProvider, partitions: Sequence[Partition]) -> DeviceMemoryReport:
    compiled = [partition.compiled for partition in partitions]
    uses = [one.memory_use() for one in compiled if isinstance(one, SupportsMemoryReport)]
    known = len(uses) == len(compiled)
    memory = getattr(ep, "memory", None)
    bound, most_bound = (0, 0) if memory is None else (memory.tensors.live, memory.tensors.peak)
    shared = max((use.shared_arena for use in uses), default=0)  # the same one
    most_shared = max((use.shared_peak for use in uses), default=0)
    peak = _sum([*(use.peak for use in uses), most_shared]) if known else None
    figures = ep.device_figures() if isinstance(ep, SupportsDeviceFigures) else None
    notes = list(dict.fromkeys(use.note for use in uses if use.note))
    if not known:
        notes.append("the execution provider does not report memory")
    return DeviceMemoryReport(
        provider=ep.name,
        device=ep.identity.device,
        weights=_sum(use.weights for use in uses) if known else None,
        arena=_sum([*(use.arena for use in uses), shared]) if known else None,
        bound_tensors=bound,
        peak=None if peak is None else peak + most_bound,
        device_live=None if figures is None else figures.live,
        device_peak=None if figures is None else figures.peak,
        device_total=None if figures is None else figures.total or None,
        notes=tuple(notes),
    )


def _sum(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total


def _lines(one: DeviceMemoryReport) -> list[str]:
    names = ("weights", "arena", "bound_tensors", "peak")
    sizes = ((name.replace("_", " "), getattr(one, name)) for name in names)
    texts = [f"{name} {'not known' if size is None else size}" for name, size in sizes]
    return [f"{one.provider}: {', '.join(texts)}", *(f"  {note}" for note in one.notes)]
