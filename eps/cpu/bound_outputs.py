"""Outputs of a plan: arrays of the caller's own, or memory that the caller has bound to them."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.array_pool import LEAST_BYTES
from ort_lite.ep import FIRST_INPUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Node
    from eps.cpu.arrays import Array
    from ort_lite.ep import CopyCounts, Place, SlotStep, Value


def choose_offers(
    inputs: Sequence[Value], places: Sequence[Place], in_place: Mapping[int, int]
) -> dict[int, Array]:
    """By number of an output the array that its kernel may use as memory for the result.

    Small results do not come from the pool. Memory that two places share, or an input and a place,
    is left out: kernels read inputs and earlier results after they have asked for memory.

    Args:
        inputs: Of the run.
        places: Of the outputs.
        in_place: By number of an output that of the input whose memory it may have.
    """
    arrays = [(n, value) for n, value in enumerate(inputs) if isinstance(value, np.ndarray)]
    offers: dict[int, Array] = {}
    earlier: list[Array] = []
    for number, place in enumerate(places):
        if not isinstance(place, np.ndarray) or place.nbytes < LEAST_BYTES:
            continue
        own = in_place.get(number)
        others = [array for n, array in arrays if n != own or not _is_same_memory(array, place)]
        if place.flags.carray and not any(
            np.may_share_memory(place, other) for other in (*others, *earlier)
        ):
            offers[number] = place
        earlier.append(place)
    return offers


CACHES = {("com.microsoft", "GroupQueryAttention"): {1: 3, 2: 4}}
"""Operators whose kernels write some outputs over inputs: output to input, present to past.

Such a kernel asks for the memory of these outputs in this order, and for no other of their shape
before. It gets all of them or none: a present key in the memory of the past value would be wrong.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePorts:
    """Outputs of a plan that may have the memory of inputs.

    Attributes:
        sources: By number of an output that of the input.
        slots: By index of a step the slots of its outputs that are among them.
    """

    sources: Mapping[int, int]
    slots: Mapping[int, frozenset[int]]


def find_caches(
    nodes: Sequence[Node], steps: Sequence[SlotStep], input_count: int, outputs: Sequence[int]
) -> CachePorts:
    """The outputs that may have the memory of inputs which nothing else reads.

    Args:
        nodes: Of a plan.
        steps: The slots that they read and fill.
        input_count: Of the plan.
        outputs: Slots of its outputs.
    """
    reads = Counter(slot for step in steps for slot in step.inputs)
    inputs = range(FIRST_INPUT, FIRST_INPUT + input_count)
    sources: dict[int, int] = {}
    slots: dict[int, frozenset[int]] = {}
    for index, (node, step) in enumerate(zip(nodes, steps, strict=True)):
        ports = CACHES.get((node.domain, node.op_type))
        if ports is None or max(ports) >= len(step.outputs):
            continue
        pairs = [(step.outputs[to], step.inputs[source]) for to, source in ports.items()]
        if all(
            made in outputs and read in inputs and reads[read] == 1 and read not in outputs
            for made, read in pairs
        ):
            sources |= {outputs.index(made): read - FIRST_INPUT for made, read in pairs}
            slots[index] = frozenset(made for made, _ in pairs)
    return CachePorts(sources=sources, slots=slots)


def settle_offers(
    values: Sequence[Value], offers: Mapping[int, Array], inputs: Sequence[Value]
) -> list[Value]:
    """Outputs, those that kernels wrote to their places as these, none in the place of another.

    Args:
        values: As kernels gave them; one may be in memory that was offered for another.
        offers: Place by number of the output.
        inputs: Of the run.
    """
    at_place = {n for n, place in offers.items() if _is_same_memory(values[n], place)}
    others = [value for n, value in enumerate(values) if n not in at_place]
    owned = iter(copy_shared(others, [*inputs, *offers.values()]))
    return [offers[n] if n in at_place else next(owned) for n in range(len(values))]


def _is_same_memory(value: Value, place: Array) -> bool:
    return (
        isinstance(value, np.ndarray)
        and (value.shape, value.dtype) == (place.shape, place.dtype)
        and value.flags.carray
        and value.ctypes.data == place.ctypes.data
    )


class CopyTally:
    """Counts outputs that are not at their places; several threads may."""

    def __init__(self) -> None:
        """Start at 0."""
        self._lock = threading.Lock()
        self._outputs = self._bytes = 0

    def count(self, results: Sequence[Value], places: Sequence[Place]) -> None:
        """Count those of a run."""
        for value, place in zip(results, places, strict=True):
            if isinstance(place, np.ndarray) and value is not place:
                with self._lock:
                    self._outputs += 1
                    self._bytes += place.nbytes

    def read(self) -> CopyCounts:
        """The counts so far."""
        from ort_lite.ep import CopyCounts  # noqa: PLC0415 - lazy: rare

        with self._lock:
            return CopyCounts(to_host=self._outputs, bytes_to_host=self._bytes)


def copy_shared(values: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
    """`values` such that none shares memory with an input, a constant or another of them.

    Constants are read-only arrays. Views of a result that is handed out nowhere else need no
    copy. Arrays are C-contiguous afterwards.
    """
    taken: set[int] = set()
    for value in inputs:
        _note_owners(value, taken)
    return [_own(value, taken) for value in values]


def _note_owners(value: Value, taken: set[int]) -> None:
    if isinstance(value, np.ndarray):
        taken.add(id(_owner(value)))
    elif isinstance(value, list):
        for item in value:
            _note_owners(item, taken)


def _own(value: Value, taken: set[int]) -> Value:
    if isinstance(value, np.ndarray):
        owner = id(_owner(value))
        if owner in taken or not value.flags.carray:
            value = value.copy()
            owner = id(value)
        taken.add(owner)
        return value
    if isinstance(value, list):
        return [_own(item, taken) for item in value]
    return value


def _owner(array: Value) -> Value:
    """The array at the end of the chain of views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
