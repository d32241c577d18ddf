"""The memory of a model's inputs and outputs: the host's, or that of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.providers.memory_info import OrtMemoryInfo, info_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.device_tensors import DeviceMemory
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.planning.prepared_graph import Partition


def input_memories(
    partitions: Sequence[Partition], names: Sequence[str]
) -> list[DeviceMemory | None]:
    """For each input the memory that every partition reads it from; None for host memory."""
    agreed = []
    for name in names:
        memories = [_memory_of(one) for one in partitions if name in one.inputs]
        first = memories[0] if memories else None
        agree = first is not None and all(m is not None and m.reaches(first) for m in memories)
        agreed.append(first if agree else None)
    return agreed


def output_memories(
    partitions: Sequence[Partition], inputs: Sequence[str], names: Sequence[str]
) -> list[DeviceMemory | None]:
    """For each output the memory of the partition that computes it; None for host memory.

    Args:
        partitions: Of the graph.
        inputs: Names of the graph's inputs, one of which may be an output.
        names: Of the outputs.
    """
    made = {name: _memory_of(one) for one in partitions for name in one.outputs}
    made.update(zip(inputs, input_memories(partitions, inputs), strict=True))
    return [made.get(name) for name in names]


def infos_of(memories: Sequence[DeviceMemory | None]) -> list[OrtMemoryInfo]:
    """The memories in onnxruntime's form."""
    return [OrtMemoryInfo() if one is None else info_of(one.place) for one in memories]


def first_readers(
    partitions: Sequence[Partition], names: Sequence[str]
) -> list[ExecutionProvider | None]:
    """For each input the execution provider that reads it first; None if nothing does."""
    return [next((one.ep for one in partitions if name in one.inputs), None) for name in names]


def _memory_of(partition: Partition) -> DeviceMemory | None:
    memory: DeviceMemory | None = getattr(partition.compiled, "memory", None)
    return memory
