"""A partition whose inputs have free dimensions: one program for each set of shapes it meets."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.runtime.device_access import CopyCounter
from eps.opencl.runtime.lookups import Lookups
from eps.opencl.runtime.new_shapes import NewShapes
from eps.opencl.runtime.partition import order_places, with_arena
from ort_lite.ep import CompiledPartition, EPFail, InvalidArgument, get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from eps.opencl.compile.shapes import Shapes
    from eps.opencl.program_spec import ProgramSpec
    from eps.opencl.runtime.device_access import DeviceAccess
    from eps.opencl.runtime.executable import Executable
    from ort_lite.ep import (
        CopyCounts,
        DeviceMemory,
        Graph,
        MemoryUse,
        OtherAnswers,
        Place,
        Value,
    )

log = get_logger(__name__)


MOST_REMEMBERED = 64
"""Shapes whose programs were given up, of which it is known."""


@dataclass(slots=True)
class _Held:
    """A program and how many runs are using it."""

    executable: Executable
    users: int = 0


@dataclass(frozen=True, slots=True)
class NewProgram:
    """A program that no payload has yet.

    Attributes:
        spec: With its weights, which the executable may let go of.
        held: Has a user more for as long as this is kept.
    """

    spec: ProgramSpec
    held: _Held


class DynamicPartition(CompiledPartition):
    """Programs by input shapes, the least recently used given up beyond a bound."""

    has_device_memory = True

    def __init__(
        self,
        graph: Graph,
        name: str,
        make: Callable[[Shapes], Executable],
        limit: int,
        orders: tuple[Sequence[int], Sequence[int]] | None = None,
        *,
        only: frozenset[Shapes] | None = None,
    ) -> None:
        """Compile nothing yet.

        Args:
            graph: The partition.
            name: For messages.
            make: Gives the program for the shapes of the inputs; several threads may be in it,
                each for other shapes.
            limit: Programs that are kept.
            orders: Graph input of each input, graph output of each output, where they are
                not in order.
            only: Shapes that there are programs for, where no others may be compiled.
        """
        self.graph = graph
        self.name = name
        self._make = make
        self._limit = limit
        self._only = only
        self._new_shapes: NewShapes | None = None
        self._access: DeviceAccess | None = None
        self._reloaded: frozenset[Shapes] = frozenset()
        self._stored: frozenset[Shapes] = frozenset()
        self._callback: Callable[[CompiledPartition], None] | None = None
        self._new: dict[Shapes, NewProgram] = {}
        ins, outs = orders or (range(len(graph.inputs)), range(len(graph.outputs)))
        self._taken = [list(ins).index(i) for i in range(len(graph.inputs))]
        self._output_order = tuple(outs)
        self._changed = threading.Condition()
        self._programs: OrderedDict[Shapes, _Held] = OrderedDict()
        self._given_up: OrderedDict[Shapes, None] = OrderedDict()
        self._lookups = Lookups()
        self._in_making: set[Shapes] = set()
        self._released = False
        self._keeps_weights = True
        self._peak = 0

    @property
    def is_closed(self) -> bool:
        """Whether no program is compiled for other shapes."""
        return self._only is not None

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; a run with new shapes compiles, or leaves them to others."""
        shapes = self._in_graph_order([tuple(value.shape) for value in inputs])
        taken = [inputs[i] for i in self._taken]
        others = self._find_others(shapes)
        if others is not None:
            results = others.run(taken)
        else:
            with self._program(shapes, in_run=True) as executable:
                results = executable.run(taken)
        return [results[i] for i in self._output_order]

    def leave_new_shapes(self) -> None:
        """Leave runs to those that `answer_by` names, with all new shapes but the first.

        They get a program when they come again, or at once where a payload keeps it, up to the
        bound.
        """
        if not self.is_closed:
            self._new_shapes = NewShapes(self.graph)

    def answer_by(self, prepare: Callable[[Graph], OtherAnswers | None]) -> None:
        """See SupportsOtherAnswers."""
        if self._new_shapes is not None:
            self._new_shapes.offer(prepare)

    def other_answers(self) -> OtherAnswers | None:
        """See SupportsOtherAnswersReport."""
        return None if self._new_shapes is None else self._new_shapes.answers

    def _find_others(self, shapes: Shapes) -> OtherAnswers | None:
        """Who answers a run with these shapes; None if their program does."""
        if self._new_shapes is None:
            return None
        with self._changed:
            made = len(self._programs) + len(self._given_up) + len(self._in_making)
            at_once = 1 if self._callback is None else self._limit
            if made < at_once or shapes in self._programs or shapes in self._stored:
                return None
        others = self._new_shapes.choose(shapes)
        if others is not None:
            with self._changed:
                self._lookups.count(self._name_shapes(shapes), "new shapes, left to others")
        return others

    def bind_to(self, access: DeviceAccess) -> None:
        """Let runs be bound to tensors of the device on which `make` makes programs."""
        self._access = access

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
        """See SupportsBoundRuns."""
        shapes = self._in_graph_order([tuple(value.shape) for value in inputs])
        ordered = order_places(places, self._output_order)
        with self._program(shapes, in_run=True) as executable:
            results = executable.run_bound([inputs[i] for i in self._taken], ordered)
        return [results[i] for i in self._output_order]

    def memory_use(self) -> MemoryUse:
        """See SupportsMemoryReport: of the programs that are kept."""
        from ort_lite.ep import MemoryUse  # noqa: PLC0415 - lazy: rare

        weights, arena = self._measure()
        note = "OpenCL: one arena for each program that is kept"
        use = MemoryUse(weights=weights, arena=arena, peak=self._peak, note=note)
        shared = None if self._access is None else self._access.arena
        return use if shared is None else with_arena(use, shared)

    def _measure(self) -> tuple[int, int]:
        """Bytes of weights and of arenas."""
        programs = self.executables()
        weights = programs[0].weight_bytes if programs else 0
        return weights, sum(one.arena_bytes for one in programs)

    def copy_counts(self) -> CopyCounts:
        """See SupportsBoundRuns."""
        return (CopyCounter() if self._access is None else self._access.copies).read()

    @property
    def memory(self) -> DeviceMemory | None:
        """See SupportsBoundRuns."""
        from eps.opencl.runtime.tensors import shared_memory  # noqa: PLC0415 - lazy: rare

        return None if self._access is None else shared_memory(self._access)

    def is_ready(self, shapes: Shapes) -> bool:
        """Whether a run with these shapes compiles nothing; see SupportsCompileByShape."""
        with self._changed:
            return self._in_graph_order(shapes) in self._programs

    def get_ready(self, shapes: Shapes) -> None:
        """Compile for inputs of these shapes; see SupportsCompileByShape."""
        self.prepare(self._in_graph_order(shapes))

    def prepare(self, shapes: Shapes) -> None:
        """Have the program for the shapes of the graph's inputs ready before a run needs it."""
        with self._program(shapes):
            pass

    def executables(self) -> tuple[Executable, ...]:
        """The programs that are kept, the least recently used first."""
        with self._changed:
            return tuple(held.executable for held in self._programs.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Shapes with a program, what runs found, and how the last program computes."""
        with self._changed:
            kept = [
                self._name_shapes(shapes) + (" (reloaded)" if shapes in self._reloaded else "")
                for shapes in self._programs
            ]
            last = next(reversed(self._programs.values()), None)
            lookups = self._lookups.notes()
        notes = f"{len(kept)} of at most {self._limit} programs: {'; '.join(kept) or 'none yet'}"
        how = last.executable.spec.notes if last is not None else ()
        return (f"{notes}; other shapes are refused" if self.is_closed else notes, *lookups, *how)

    def forget_source(self) -> None:
        """Let go of the weights that programs have copies of; the graph's are for new shapes."""
        self._keeps_weights = False
        for executable in self.executables():
            executable.forget_weights()

    @contextmanager
    def _program(self, shapes: Shapes, *, in_run: bool = False) -> Iterator[Executable]:
        held = self._take_up(shapes, in_run=in_run)
        try:
            yield held.executable
        finally:
            with self._changed:
                held.users -= 1
                self._give_up()

    def _take_up(self, shapes: Shapes, *, in_run: bool) -> _Held:
        """The program, with one user more; while one thread compiles, others run theirs."""
        self._require_known(shapes)
        with self._changed:
            self._changed.wait_for(lambda: shapes not in self._in_making)
            if self._released:
                raise EPFail(f"{self.name} is run after it was released")
            held = self._programs.get(shapes)
            if in_run:
                self._lookups.count(self._name_shapes(shapes), self._miss_of(shapes, held))
            if held is not None:
                self._programs.move_to_end(shapes)
                held.users += 1
                return held
            self._in_making.add(shapes)
        try:
            held = _Held(self._make(shapes), users=1)
            with self._changed:
                is_new = self._callback is not None and shapes not in self._stored
                if is_new:
                    held.users += 1
                    self._new[shapes] = NewProgram(held.executable.spec, held)
                if not self._keeps_weights:
                    held.executable.forget_weights()
                self._programs[shapes] = held
                self._peak = max(self._peak, sum(self._measure()))
                log.info("%s: compiled for %s", self.name, self._name_shapes(shapes))
        finally:
            with self._changed:
                self._in_making.discard(shapes)
                self._changed.notify_all()
        if is_new and self._callback is not None:
            self._callback(self)
        return held

    def _miss_of(self, shapes: Shapes, held: _Held | None) -> str:
        """Why a run has to wait for its program; "" if it is there."""
        if held is not None:
            return ""
        if shapes in self._given_up:
            again = "loaded" if shapes in self._stored else "compiled"
            return f"{again} again, since max_variants is {self._limit}"
        return "loaded from the payload" if shapes in self._stored else "compiled, new shapes"

    def note_stored(self, shapes: frozenset[Shapes]) -> None:
        """Take note of shapes whose programs `make` finds in the payload."""
        self._reloaded = self._stored = shapes

    def on_new_shapes(self, callback: Callable[[CompiledPartition], None]) -> None:
        """See SupportsNewShapes."""
        if not self.is_closed:
            self._callback = callback

    def drop_new_shapes(self) -> None:
        """See SupportsNewShapes."""
        with self.taking_new_programs():
            pass

    @contextmanager
    def taking_new_programs(self) -> Iterator[Mapping[Shapes, NewProgram]]:
        """Programs that no payload has yet, the oldest first; they are not new after it."""
        with self._changed:
            taken, self._new = self._new, {}
        try:
            yield taken
            with self._changed:
                self._stored |= taken.keys()
        finally:
            with self._changed:
                for new in taken.values():
                    new.held.users -= 1
                self._give_up()

    def _in_graph_order(self, shapes: Sequence[tuple[int, ...]]) -> Shapes:
        return tuple(shapes[i] for i in self._taken)

    def _require_known(self, shapes: Shapes) -> None:
        if self._only is None or shapes in self._only:
            return
        known = "; ".join(sorted(map(self._name_shapes, self._only))) or "none"
        raise InvalidArgument(
            f"{self.name}: a run has {self._name_shapes(shapes)}, and it was compiled with "
            f"other_shapes=refuse for these alone: {known}"
        )

    def _name_shapes(self, shapes: Shapes) -> str:
        pairs = zip(self.graph.inputs, shapes, strict=True)
        return ", ".join(f"{info.name}{list(shape)}" for info, shape in pairs)

    def _give_up(self) -> None:
        """Release programs over the bound, and all once the partition is released."""
        kept = 0 if self._released else self._limit
        for shapes in list(self._programs):
            if len(self._programs) <= kept:
                break
            if not self._programs[shapes].users:
                self._programs.pop(shapes).executable.release()
                self._given_up[shapes] = None
        while len(self._given_up) > MOST_REMEMBERED:
            self._given_up.popitem(last=False)

    def release(self) -> None:
        """Give device memory back; what still runs goes when it is done."""
        with self._changed:
            self._released = True
            self._give_up()
        if self._new_shapes is not None:
            self._new_shapes.release()
