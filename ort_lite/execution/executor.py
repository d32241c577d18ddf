"""Runs a prepared graph: steps in order over numbered slots, values released at last use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.execution.run_context import NodeRun, current_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.execution.parallel import Schedule
    from ort_lite.execution.run_context import RunContext
    from ort_lite.execution_provider import Runnable, Value


@dataclass(frozen=True, slots=True)
class Step:
    """One partition in the order of execution.

    Attributes:
        release: Slots that no later step and no output reads.
    """

    runnable: Runnable
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...]
    label: Label


@dataclass(frozen=True, slots=True)
class Label:
    """What a profile calls a partition.

    Attributes:
        records_nodes: Whether the partition adds its nodes to the profile itself.
    """

    name: str = ""
    provider: str = ""
    records_nodes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A partition with the names of what it reads and makes, before slots are numbered."""

    runnable: Runnable
    inputs: Sequence[str]
    outputs: Sequence[str]
    label: Label = field(default_factory=Label)


class Plan:
    """A fixed schedule; it holds no state of a run, so many threads may run it at once."""

    def __init__(
        self,
        inputs: Sequence[str],
        steps: Sequence[PlannedStep],
        outputs: Sequence[str],
        constants: Mapping[str, Value],
    ) -> None:
        """Number the slots.

        Args:
            inputs: Names in the order in which `run` takes them.
            steps: In an order in which they can run.
            outputs: Names in the order in which `run` gives them; an input, a constant or
                the same name twice is allowed.
            constants: Values that outputs or steps use without anyone making them.
        """
        slots: dict[str, int] = {}
        for name in (*inputs, *constants, *(n for step in steps for n in step.outputs)):
            slots.setdefault(name, len(slots))
        self._constants = tuple((slots[name], value) for name, value in constants.items())
        self._count = len(slots)
        self._inputs = tuple(slots[name] for name in inputs)
        self._outputs = tuple(slots[name] for name in outputs)
        made = {slots[name] for step in steps for name in step.outputs}
        seen: set[int] = set()
        copied = []
        for slot in self._outputs:
            copied.append(slot not in made or slot in seen)
            seen.add(slot)
        self._copied = tuple(copied)
        self._steps = _with_releases(steps, slots, set(self._outputs))
        self._single = self._as_single()

    @cached_property
    def _schedule(self) -> Schedule:
        from ort_lite.execution.parallel import Schedule  # noqa: PLC0415 - lazy: rare

        return Schedule(
            [s.inputs for s in self._steps], [s.outputs for s in self._steps], self._outputs
        )

    def run(self, values: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs from the inputs; outputs alias nothing that outlives the run."""
        context = current_run()
        if context is not None and context.profiler is not None:
            # onnxruntime 1.31 calls it so in ORT_PARALLEL, too.
            with context.profiler.span("SequentialExecutor::Execute"):
                return self._run(values, context)
        if self._single is not None and context is None:
            return self._single.run(values)
        return self._run(values, context)

    def _run(self, values: Sequence[Value], context: RunContext | None) -> Sequence[Value]:
        env: list[Value] = [None] * self._count
        for slot, value in self._constants:
            env[slot] = value
        for slot, value in zip(self._inputs, values, strict=True):
            env[slot] = value
        helpers = context.helpers if context is not None else None
        if helpers is not None and self._schedule.has_choice:

            def call(index: int, arguments: list[Value]) -> Sequence[Value]:
                return _run_step(index, self._steps[index], arguments, context)

            self._schedule.run(helpers, env, call)
        else:
            for index, step in enumerate(self._steps):
                results = _run_step(index, step, [env[slot] for slot in step.inputs], context)
                for slot, value in zip(step.outputs, results, strict=True):
                    env[slot] = value
                for slot in step.release:
                    env[slot] = None
        return [
            _copy(env[slot]) if copied else env[slot]
            for slot, copied in zip(self._outputs, self._copied, strict=True)
        ]

    def _as_single(self) -> Runnable | None:
        """The only partition, where it takes and gives exactly what the graph does."""
        if len(self._steps) != 1 or self._constants or any(self._copied):
            return None
        step = self._steps[0]
        exact = step.inputs == self._inputs and step.outputs == self._outputs
        return step.runnable if exact else None


def _run_step(
    index: int, step: Step, arguments: list[Value], context: RunContext | None
) -> Sequence[Value]:
    if context is None:
        return step.runnable.run(arguments)
    context.check()
    profiler = context.profiler
    if profiler is None or step.label.records_nodes:
        return step.runnable.run(arguments)
    began = profiler.now()
    results = step.runnable.run(arguments)
    label = step.label
    profiler.node(
        NodeRun(
            name=label.name,
            op_type=label.name,
            provider=label.provider,
            index=index,
            start=began,
            inputs=arguments,
            outputs=results,
        )
    )
    return results


def _with_releases(
    steps: Sequence[PlannedStep], slots: Mapping[str, int], kept: set[int]
) -> tuple[Step, ...]:
    numbered = []
    later = set(kept)
    for step in reversed(steps):
        ins = tuple(slots[name] for name in step.inputs)
        outs = tuple(slots[name] for name in step.outputs)
        release = tuple(sorted({*ins, *outs} - later))
        later.update(ins)
        numbered.append(Step(step.runnable, ins, outs, release, step.label))
    return tuple(reversed(numbered))


def _copy(value: Value) -> Value:
    """A value of the caller's own, for an output that is an input, a constant or a twin."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
