"""A partition whose inputs have free dimensions: one program for each set of shapes it meets."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ort_lite.execution_provider import CompiledPartition
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from eps.opencl.runtime import Executable
    from ort_lite.execution_provider import Value
    from ort_lite.graph import Graph

    Shapes = tuple[tuple[int, ...], ...]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Held:
    """A program and how many runs are using it."""

    executable: Executable
    users: int = 0


class DynamicPartition(CompiledPartition):
    """Programs by input shapes, the least recently used given up beyond a bound."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        make: Callable[[Mapping[str, tuple[int, ...]]], Executable],
        limit: int,
        orders: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        """Compile nothing yet.

        Args:
            graph: The partition.
            name: For messages.
            make: Compiles for the shape of every input.
            limit: Programs that are kept.
            orders: Graph input of each input, graph output of each output, where they are
                not in order.
        """
        self.graph = graph
        self.name = name
        self._make = make
        self._limit = limit
        ins, outs = orders or (range(len(graph.inputs)), range(len(graph.outputs)))
        self._taken = [list(ins).index(i) for i in range(len(graph.inputs))]
        self._given = tuple(outs)
        self._lock = threading.Lock()
        self._programs: OrderedDict[Shapes, _Held] = OrderedDict()
        self._released = False

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; the first run with new shapes compiles."""
        values = [inputs[i] for i in self._taken]
        with self._program(tuple(tuple(value.shape) for value in values)) as executable:
            found = executable.run(values)
        return [found[i] for i in self._given]

    def executables(self) -> tuple[Executable, ...]:
        """The programs that are kept, the least recently used first."""
        with self._lock:
            return tuple(held.executable for held in self._programs.values())

    @contextmanager
    def _program(self, shapes: Shapes) -> Iterator[Executable]:
        with self._lock:
            held = self._programs.get(shapes) or self._compiled(shapes)
            self._programs.move_to_end(shapes)
            held.users += 1
        try:
            yield held.executable
        finally:
            with self._lock:
                held.users -= 1
                self._give_up()

    def _compiled(self, shapes: Shapes) -> _Held:
        if self._released:
            raise EPFail(f"{self.name} is run after it was released")
        named = {info.name: s for info, s in zip(self.graph.inputs, shapes, strict=True)}
        held = self._programs[shapes] = _Held(self._make(named))
        log.info("%s: compiled for %s; %d programs", self.name, named, len(self._programs))
        return held

    def _give_up(self) -> None:
        """Release programs over the bound, and all once the partition is released."""
        kept = 0 if self._released else self._limit
        for shapes in list(self._programs):
            if len(self._programs) <= kept:
                break
            if not self._programs[shapes].users:
                self._programs.pop(shapes).executable.release()

    def release(self) -> None:
        """Give device memory back; what still runs goes when it is done."""
        with self._lock:
            self._released = True
            self._give_up()
