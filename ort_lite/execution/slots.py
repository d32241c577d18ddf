"""Programs over numbered slots: steps in a fixed order, each value released at its last use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from ort_lite.execution.run_context import NodeRun, current_run
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.ep.device_tensors import CopyCounts
    from ort_lite.ep.interface import Runnable, Value
    from ort_lite.execution.parallel import StepSchedule
    from ort_lite.execution.run_context import NodeLabel, RunContext

NOTHING = 0
"""The slot of omitted inputs; always None."""
UNWANTED = 1
"""The slot of omitted outputs."""
FIRST_INPUT = 2
"""The inputs of a program have consecutive slots from here."""


class NamedStep(Protocol):
    """A step whose values have names; the name "" is an omitted input or output."""

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the values that it reads."""
        ...

    @property
    def outputs(self) -> Sequence[str]:
        """Names of the values that it makes."""
        ...


@dataclass(frozen=True, slots=True)
class SlotStep:
    """The slots that a step reads and fills.

    Attributes:
        release: Those of them that no later step and no output reads.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTable:
    """Steps and the slots of their values.

    Attributes:
        template: A value for every slot: the constants, None elsewhere.
        input_count: How many slots from FIRST_INPUT on a run fills.
        steps: In an order in which they can run.
        outputs: The slots that a run returns; one may occur twice, or be an input or a constant.
    """

    template: Sequence[Value]
    input_count: int
    steps: tuple[SlotStep, ...]
    outputs: tuple[int, ...]


def number_slots(
    inputs: Sequence[str],
    steps: Sequence[NamedStep],
    outputs: Sequence[str],
    constants: Mapping[str, Value],
) -> SlotTable:
    """Give every value a slot.

    Args:
        inputs: Distinct names in the order in which a run takes them.
        steps: In an order in which they can run.
        outputs: Names in the order in which a run returns them.
        constants: Values that outputs or steps use and no step makes.
    """
    slots = {"": NOTHING}
    for name in (*inputs, *constants, *(name for step in steps for name in step.outputs)):
        slots.setdefault(name, FIRST_INPUT - 1 + len(slots))
    template: list[Value] = [None] * (FIRST_INPUT - 1 + len(slots))
    for name, value in constants.items():
        template[slots[name]] = value
    return SlotTable(
        template=template,
        input_count=len(inputs),
        steps=_with_releases(steps, slots, outputs),
        outputs=tuple(slots[name] for name in outputs),
    )


def _with_releases(
    steps: Sequence[NamedStep], slots: Mapping[str, int], kept: Sequence[str]
) -> tuple[SlotStep, ...]:
    numbered = []
    later = {"", *kept}
    for step in reversed(steps):
        release = dict.fromkeys(
            slots[name] for name in (*step.inputs, *step.outputs) if name not in later
        )
        later.update(step.inputs)
        outputs = tuple(slots[name] if name else UNWANTED for name in step.outputs)
        if UNWANTED in outputs:
            release[UNWANTED] = None
        numbered.append(
            SlotStep(tuple(slots[name] for name in step.inputs), outputs, tuple(release))
        )
    return tuple(reversed(numbered))


class SlotProgram(ABC):
    """Runs the steps of a table; it holds no state of a run, so many threads may run it at once.

    Attributes:
        steps: Slots of each step.
        outputs: Slots that a run returns.
    """

    def __init__(self, table: SlotTable) -> None:
        """A program of `table`."""
        self._template = list(table.template)
        self._input_count = table.input_count
        self.steps = table.steps
        self.outputs = table.outputs

    @abstractmethod
    def _execute(self, index: int, arguments: list[Value]) -> Sequence[Value]:
        """The results of a step, given what it reads."""

    @abstractmethod
    def _label(self, index: int) -> NodeLabel | None:
        """Name of a step in a profile; None if the step adds its nodes itself."""

    def _compute(self, inputs: Sequence[Value], context: RunContext | None) -> list[Value]:
        """The outputs, which may share memory with inputs, constants and each other.

        Args:
            inputs: As many as the program takes.
            context: Its threads run steps that do not wait for each other at the same time.
        """
        env = self._template.copy()
        env[FIRST_INPUT : FIRST_INPUT + self._input_count] = inputs
        if context is None:
            self._run_steps(env)
        elif context.helpers is not None and self._schedule.has_choice:
            self._schedule.run(context.helpers, env, partial(self._execute_watched, context))
        else:
            self._run_in_order(env, partial(self._execute_watched, context))
        return [env[slot] for slot in self.outputs]

    def _compute_with(
        self,
        inputs: Sequence[Value],
        context: RunContext | None,
        execute: Callable[[int, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """As `_compute`, with `execute` for each step, in order.

        Args:
            inputs: As many as the program takes.
            context: Of the run.
            execute: Called with the index of a step and what it reads.
        """
        env = self._template.copy()
        env[FIRST_INPUT : FIRST_INPUT + self._input_count] = inputs
        if context is not None:
            execute = partial(self._execute_watched, context, execute=execute)
        self._run_in_order(env, execute)
        return [env[slot] for slot in self.outputs]

    def _run_steps(self, env: list[Value]) -> None:
        """Run every step of a run that has no options and no profiler."""
        self._run_in_order(env, self._execute)

    def _run_in_order(
        self, env: list[Value], execute: Callable[[int, list[Value]], Sequence[Value]]
    ) -> None:
        for index, step in enumerate(self.steps):
            results = execute(index, [env[slot] for slot in step.inputs])
            for slot, value in zip(step.outputs, results, strict=False):
                env[slot] = value
            for slot in step.release:
                env[slot] = None

    def _execute_watched(
        self,
        context: RunContext,
        index: int,
        arguments: list[Value],
        execute: Callable[[int, list[Value]], Sequence[Value]] | None = None,
    ) -> Sequence[Value]:
        """As `execute`, unless the run was terminated; the step goes into the profile."""
        context.check()
        execute = execute or self._execute
        profiler = context.profiler
        label = self._label(index) if profiler is not None else None
        if profiler is None or label is None:
            return execute(index, arguments)
        before = self._copy_counts(index)
        start = profiler.now()
        results = execute(index, arguments)
        profiler.node(
            NodeRun(
                label=label,
                index=index,
                start=start,
                inputs=arguments[: label.input_count],
                outputs=results,
                copies=(before, self._copy_counts(index)),
            )
        )
        return results

    def _copy_counts(self, index: int) -> CopyCounts | None:  # noqa: ARG002 - of one step
        """Copies to and from a device that the EP of a step made so far; None without such."""
        return None

    @cached_property
    def _schedule(self) -> StepSchedule:
        from ort_lite.execution.parallel import StepSchedule  # noqa: PLC0415 - lazy: rare

        return StepSchedule(
            [s.inputs for s in self.steps], [s.outputs for s in self.steps], self.outputs
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStep:
    """A partition with the names of what it reads and makes.

    Attributes:
        label: What a profile calls it; None if it adds its nodes to the profile itself.
    """

    runnable: Runnable
    inputs: Sequence[str]
    outputs: Sequence[str]
    label: NodeLabel | None = None


class PartitionProgram(SlotProgram):
    """The partitions of a prepared graph.

    Attributes:
        partitions: In the order in which they run.
        output_names: Of the graph.
        copied: For each output whether it is an input, a constant or another output, too.
        hands_on: Whether partitions may leave on a device what others read there.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        partitions: Sequence[PartitionStep],
        outputs: Sequence[str],
        constants: Mapping[str, Value],
    ) -> None:
        """Number the slots; see `number_slots`."""
        super().__init__(number_slots(inputs, partitions, outputs, constants))
        self.partitions = tuple(partitions)
        self.output_names = outputs
        made = {slot for step in self.steps for slot in step.outputs}
        fetched: set[int] = set()
        copied = []
        for slot in self.outputs:
            copied.append(slot not in made or slot in fetched)
            fetched.add(slot)
        self.copied = tuple(copied)
        self._single = self._as_single()
        self.hands_on = self._single is None and _hands_on(partitions)

    def run_with(
        self, execute: Callable[[int, list[Value]], Sequence[Value]], values: Sequence[Value]
    ) -> list[Value]:
        """The outputs as partitions gave them, where `execute` runs each partition.

        Args:
            execute: Called with the index of a partition and what it reads, in order.
            values: The inputs.
        """
        if len(values) != self._input_count:
            raise ValueError(f"{len(values)} inputs, {self._input_count} are needed")
        context = current_run()
        if context is None or context.profiler is None:
            return self._compute_with(values, context, execute)
        with context.profiler.span("SequentialExecutor::Execute"):
            return self._compute_with(values, context, execute)

    def run(self, values: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs from the inputs; outputs alias nothing that outlives the run."""
        context = current_run()
        if context is not None and context.profiler is not None:
            # onnxruntime 1.31 calls it so in ORT_PARALLEL, too.
            with context.profiler.span("SequentialExecutor::Execute"):
                return self._own_outputs(values, context)
        if self._single is not None and context is None:
            return self._single.run(values)
        return self._own_outputs(values, context)

    def _own_outputs(self, values: Sequence[Value], context: RunContext | None) -> list[Value]:
        if len(values) != self._input_count:
            raise ValueError(f"{len(values)} inputs, {self._input_count} are needed")
        return [
            _copy(value) if copied else value
            for value, copied in zip(self._compute(values, context), self.copied, strict=True)
        ]

    def _execute(self, index: int, arguments: list[Value]) -> Sequence[Value]:
        partition = self.partitions[index]
        results = partition.runnable.run(arguments)
        if len(results) != len(partition.outputs):
            raise EPFail(
                f"a partition gave {len(results)} outputs, {len(partition.outputs)} are expected"
            )
        return results

    def _label(self, index: int) -> NodeLabel | None:
        return self.partitions[index].label

    def _copy_counts(self, index: int) -> CopyCounts | None:
        count = getattr(self.partitions[index].runnable, "copy_counts", None)
        return None if count is None else count()

    def _as_single(self) -> Runnable | None:
        """The only partition, where it takes and gives exactly what the graph does."""
        if len(self.steps) != 1 or any(self.copied):
            return None
        (step,) = self.steps
        inputs = tuple(range(FIRST_INPUT, FIRST_INPUT + self._input_count))
        exact = step.inputs == inputs and step.outputs == self.outputs
        return self.partitions[0].runnable if exact else None


def _hands_on(partitions: Sequence[PartitionStep]) -> bool:
    """Whether a partition reads what another one makes, and both know memory of devices."""
    bound = [p for p in partitions if getattr(p.runnable, "has_device_memory", False)]
    if len(bound) < 2:
        return False
    made = {name for p in bound for name in p.outputs}
    return any(name in made for p in bound for name in p.inputs)


def _copy(value: Value) -> Value:
    """A value of the caller's own, for an output that is an input, a constant or a twin."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
