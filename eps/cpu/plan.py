"""Runs bound kernels in order over numbered slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from ort_lite.ep import (
    CompiledPartition,
    EPFail,
    NodeLabel,
    RuntimeException,
    SlotProgram,
    current_run,
    get_logger,
    type_string,
    verbose_level,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Node
    from eps.cpu.array_pool import ArrayPool
    from ort_lite.ep import KernelFn, MemoryUse, SlotTable, Value

log = get_logger(__name__)

EACH_NODE = verbose_level(1)
"""As in ONNX Runtime's sequential_executor.cc."""

MEMORY_NOTE = (
    "CPU: the arena has results of 64 KiB and more; smaller ones, and forms of weights that "
    "kernels keep, are not counted"
)

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
"""Exceptions of numpy, onnx.reference and kernels for values that they do not accept."""


class Plan(SlotProgram, CompiledPartition):
    """The nodes of a graph as bound kernels; runs share nothing but constants."""

    records_nodes: ClassVar[bool] = True

    def __init__(
        self, table: SlotTable, kernels: Sequence[tuple[KernelFn, Node]], pool: ArrayPool
    ) -> None:
        """Keep the schedule.

        Args:
            table: Slots of the nodes' values.
            kernels: Of each step of `table`, with its node.
            pool: The memory of large results, also of the bodies in it.
        """
        super().__init__(table)
        self._pool = pool
        self._program = [
            (fn, node, step.inputs, step.outputs, step.release)
            for (fn, node), step in zip(kernels, table.steps, strict=True)
        ]

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; see CompiledPartition.run."""
        if len(inputs) != self._input_count:
            self._refuse(len(inputs))
        # Overflow, NaN and division by zero are results in ONNX, not events.
        with np.errstate(all="ignore"):
            return copy_shared(self._compute(inputs, current_run()), inputs)

    def _run_steps(self, env: list[Value]) -> None:
        """As the base class, without a call for each step: small nodes take a microsecond."""
        for fn, node, inputs, outputs, release in self._program:
            result = call_kernel(fn, [env[slot] for slot in inputs], node)
            if type(result) is tuple:
                for slot, value in zip(outputs, result, strict=False):
                    env[slot] = value if type(value) is np.ndarray else as_value(value)
            else:
                env[outputs[0]] = result if type(result) is np.ndarray else as_value(result)
            for slot in release:
                env[slot] = None

    def _execute(self, index: int, arguments: list[Value]) -> Sequence[Value]:
        fn, node, *_ = self._program[index]
        if log.isEnabledFor(EACH_NODE):
            log.log(EACH_NODE, "Computing kernel: %s", node.name or node.op_type)
        result = call_kernel(fn, arguments, node)
        return [as_value(value) for value in (result if type(result) is tuple else (result,))]

    def _label(self, index: int) -> NodeLabel:
        _, node, inputs, *_ = self._program[index]
        values = (self._template[slot] for slot in inputs)
        return NodeLabel(
            name=node.name or f"{node.op_type}_{index}",
            op_type=node.op_type,
            provider="CPUExecutionProvider",
            input_count=len(node.inputs),
            parameters=sum(value.nbytes for value in values if isinstance(value, np.ndarray)),
        )

    def memory_use(self) -> MemoryUse:
        """See SupportsMemoryReport."""
        from ort_lite.ep import MemoryUse  # noqa: PLC0415 - lazy: rare

        arrays = [value for value in self._template if isinstance(value, np.ndarray)]
        weights = sum({id(array): array.nbytes for array in arrays}.values())
        arena, most = self._pool.size(), self._pool.peak_bytes
        return MemoryUse(weights=weights, arena=arena, peak=weights + most, note=MEMORY_NOTE)

    def release(self) -> None:
        """Drop kernels and constants."""
        self._input_count = RELEASED
        self.steps = ()
        self._program = []
        self._template = []

    def _refuse(self, count: int) -> NoReturn:
        if self._input_count == RELEASED:
            raise EPFail("CPUExecutionProvider: this partition was released")
        raise EPFail(f"CPUExecutionProvider: {count} inputs, {self._input_count} are needed")


class BodyPlan(Plan):
    """The plan of a subgraph or function body, run by a kernel of the plan around it.

    That one has set how numpy treats errors, and what it gives to its caller it owns.
    """

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, which may share memory with inputs and constants."""
        if len(inputs) != self._input_count:
            self._refuse(len(inputs))
        return self._compute(inputs, current_run())


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
        described = ", ".join(_describe_value(value) for value in arguments)
        text = str(exc) or type(exc).__name__
        raise RuntimeException(_failure(node, f"{text} (inputs: {described})")) from exc


def _failure(node: Node, message: str) -> str:
    return (
        f"Non-zero status code returned while running {node.op_type} node. "
        f"Name:'{node.name}' Status Message: {message}"
    )


def _describe_value(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{type_string(value.dtype)} {list(value.shape)}"
    return "none" if value is None else type(value).__name__


def as_value(value: Value) -> Value:
    """numpy's scalars, which rank-0 arithmetic gives, as arrays; anything else as it is."""
    return np.asarray(value) if isinstance(value, np.generic) else value


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
