"""Runs bound kernels in order over numbered slots."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from ort_lite.execution.run_context import NodeRun, current_run
from ort_lite.execution_provider import CompiledPartition
from ort_lite.model.tensor_values import type_string
from ort_lite.session_log import get_logger, verbose_level
from ort_lite.status import EPFail, RuntimeException

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Node
    from ort_lite.execution.parallel import Schedule
    from ort_lite.execution.run_context import RunContext
    from ort_lite.execution_provider import Value
    from ort_lite.kernel_registry import KernelFn

log = get_logger(__name__)

EACH_NODE = verbose_level(1)
"""As in ONNX Runtime's sequential_executor.cc."""

NOTHING = 0
"""The slot of omitted inputs; always None."""
UNWANTED = 1
"""The slot of omitted outputs."""
FIRST_INPUT = 2
"""Inputs of a plan lie in consecutive slots from here."""

RELEASED = -1
"""In place of the number of inputs, once a plan is released."""

KERNEL_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What numpy, onnx.reference and kernels raise for values that they cannot take."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node: its kernel, the slots it reads and fills, the slots nobody reads after it."""

    fn: KernelFn
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...]
    node: Node


class Plan(CompiledPartition):
    """A graph as a fixed schedule; runs share nothing but constants, so threads may meet."""

    records_nodes: ClassVar[bool] = True

    def __init__(
        self,
        steps: Sequence[Step],
        template: Sequence[Value],
        n_inputs: int,
        outputs: Sequence[int],
    ) -> None:
        """Keep the schedule.

        Args:
            steps: In order.
            template: A value for every slot: the constants, None elsewhere.
            n_inputs: How many slots from FIRST_INPUT on `run` fills.
            outputs: Slots that `run` gives back.
        """
        self._steps = tuple(steps)
        self._template = list(template)
        self._n_inputs = n_inputs
        self._outputs = tuple(outputs)

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; see CompiledPartition.run."""
        if len(inputs) != self._n_inputs:
            self._refuse(len(inputs))
        # Overflow, NaN and division by zero are results in ONNX, not events.
        with np.errstate(all="ignore"):
            return owned(self._computed(inputs), inputs)

    def _computed(self, inputs: Sequence[Value]) -> list[Value]:
        """The outputs, which may share memory with inputs and constants."""
        env = self._template.copy()
        env[FIRST_INPUT : FIRST_INPUT + self._n_inputs] = inputs
        context = current_run()
        if context is not None:
            self._run_watched(env, context)
        else:
            self._run_steps(env)
        return [env[slot] for slot in self._outputs]

    def _run_steps(self, env: list[Value]) -> None:
        for step in self._steps:
            result = call_kernel(step.fn, [env[slot] for slot in step.inputs], step.node)
            if type(result) is tuple:
                for slot, value in zip(step.outputs, result, strict=False):
                    env[slot] = value if type(value) is np.ndarray else as_value(value)
            else:
                env[step.outputs[0]] = result if type(result) is np.ndarray else as_value(result)
            for slot in step.release:
                env[slot] = None

    @cached_property
    def _schedule(self) -> Schedule:
        from ort_lite.execution.parallel import Schedule  # noqa: PLC0415 - lazy: rare

        return Schedule(
            [s.inputs for s in self._steps], [s.outputs for s in self._steps], self._outputs
        )

    def _run_watched(self, env: list[Value], context: RunContext) -> None:
        """As `run`, stopping where the run's options say so, each node in the profile."""
        if context.helpers is not None and self._schedule.has_choice:

            def call(index: int, arguments: list[Value]) -> Sequence[Value]:
                return self._run_step(index, arguments, context)

            self._schedule.run(context.helpers, env, call)
            return
        for index, step in enumerate(self._steps):
            results = self._run_step(index, [env[slot] for slot in step.inputs], context)
            for slot, value in zip(step.outputs, results, strict=False):
                env[slot] = value
            for slot in step.release:
                env[slot] = None

    def _run_step(self, index: int, arguments: list[Value], context: RunContext) -> Sequence[Value]:
        context.check()
        step, profiler = self._steps[index], context.profiler
        if log.isEnabledFor(EACH_NODE):
            log.log(EACH_NODE, "Computing kernel: %s", step.node.name or step.node.op_type)
        began = profiler.now() if profiler is not None else 0
        result = call_kernel(step.fn, arguments, step.node)
        results = [as_value(v) for v in (result if type(result) is tuple else (result,))]
        if profiler is not None:
            node = step.node
            profiler.node(
                NodeRun(
                    name=node.name or f"{node.op_type}_{index}",
                    op_type=node.op_type,
                    provider="CPUExecutionProvider",
                    index=index,
                    start=began,
                    inputs=arguments[: len(node.inputs)],
                    outputs=results,
                    parameters=self._constant_bytes(step),
                )
            )
        return results

    def _constant_bytes(self, step: Step) -> int:
        values = (self._template[slot] for slot in step.inputs)
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))

    def release(self) -> None:
        """Drop kernels and constants."""
        self._n_inputs = RELEASED
        self._steps = ()
        self._template = []

    def _refuse(self, given: int) -> NoReturn:
        if self._n_inputs == RELEASED:
            raise EPFail("CPUExecutionProvider: this partition was released")
        raise EPFail(f"CPUExecutionProvider: {given} inputs, {self._n_inputs} are needed")


class BodyPlan(Plan):
    """The plan of a subgraph or function body, run by a kernel of the plan around it.

    That one has set how numpy treats errors, and what it gives to its caller it owns.
    """

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, which may share memory with inputs and constants."""
        if len(inputs) != self._n_inputs:
            self._refuse(len(inputs))
        return self._computed(inputs)


def call_kernel(fn: KernelFn, arguments: Sequence[Value], node: Node) -> Value:
    """`fn(*arguments)`; what it raises names the node.

    Raises:
        RuntimeException: With ONNX Runtime's text, and what the kernel was given.
    """
    try:
        return fn(*arguments)
    except RuntimeException as exc:  # a node inside a body
        raise RuntimeException(_failure(node, exc.message)) from exc
    except KERNEL_ERRORS as exc:
        given = ", ".join(_described(value) for value in arguments)
        text = str(exc) or type(exc).__name__
        raise RuntimeException(_failure(node, f"{text} (inputs: {given})")) from exc


def _failure(node: Node, message: str) -> str:
    return (
        f"Non-zero status code returned while running {node.op_type} node. "
        f"Name:'{node.name}' Status Message: {message}"
    )


def _described(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{type_string(value.dtype)} {list(value.shape)}"
    return "none" if value is None else type(value).__name__


def as_value(value: Value) -> Value:
    """numpy's scalars, which rank-0 arithmetic gives, as arrays; anything else as it is."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def owned(values: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
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
