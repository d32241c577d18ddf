"""Runs bound kernels in order over numbered slots."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from eps.cpu.bound_outputs import (
    CopyTally,
    choose_offers,
    copy_shared,
    find_caches,
    settle_offers,
)
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
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Node
    from eps.cpu.array_pool import ArrayPool
    from eps.cpu.arrays import Array
    from ort_lite.ep import CopyCounts, KernelFn, MemoryUse, Place, SlotTable, Value

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
    has_device_memory: ClassVar[bool] = False
    memory: ClassVar[None] = None

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
        self._makers = {
            slot: index for index, step in enumerate(table.steps) for slot in step.outputs
        }
        nodes = [node for _, node in kernels]
        self._caches = find_caches(nodes, table.steps, table.input_count, table.outputs)
        self._tally = CopyTally()

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; see CompiledPartition.run."""
        if len(inputs) != self._input_count:
            self._refuse(len(inputs))
        # Overflow, NaN and division by zero are results in ONNX, not events.
        with np.errstate(all="ignore"):
            return copy_shared(self._compute(inputs, current_run()), inputs)

    def run_body(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """See SupportsBodyRuns: the plan around it has set how numpy treats errors.

        That one also owns what it gives to its caller.
        """
        if len(inputs) != self._input_count:
            self._refuse(len(inputs))
        return self._compute(inputs, current_run())

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
        """See SupportsBoundRuns: kernels write large outputs to arrays where these are bound."""
        context = current_run()
        offers = choose_offers(inputs, places, self._caches.sources)
        if not offers or (context is not None and context.helpers is not None):
            results = self.run(inputs)
        else:
            if len(inputs) != self._input_count:
                self._refuse(len(inputs))
            of_steps = self._by_steps(offers)
            with np.errstate(all="ignore"):  # as in `run`
                values = self._compute_with(inputs, context, partial(self._execute_to, of_steps))
            results = settle_offers(values, offers, inputs)
        self._tally.count(results, places)
        return results

    def _by_steps(self, offers: Mapping[int, Array]) -> dict[int, list[Array]]:
        """Places by the step that computes their outputs, in the order of its outputs."""
        of_slots = {self.outputs[number]: place for number, place in offers.items()}
        steps = {self._makers[slot] for slot in of_slots if slot in self._makers}
        return {
            index: [of_slots[slot] for slot in self.steps[index].outputs if slot in of_slots]
            for index in steps
            if self._caches.slots.get(index, frozenset()) <= of_slots.keys()
        }

    def _execute_to(
        self, offers: Mapping[int, Sequence[Array]], index: int, arguments: list[Value]
    ) -> Sequence[Value]:
        """As `_execute`; its kernel may use the memory that is offered to a step."""
        if index not in offers:
            return self._execute(index, arguments)
        with self._pool.offering(offers[index]):
            return self._execute(index, arguments)

    def copy_counts(self) -> CopyCounts:
        """See SupportsBoundRuns: outputs that the caller has to copy to their places."""
        return self._tally.read()

    def _run_steps(self, env: list[Value]) -> None:
        """As the base class, without a call for each step: small nodes take a microsecond."""
        for fn, node, inputs, outputs, release in self._program:
            arguments = [env[slot] for slot in inputs]
            try:
                result = fn(*arguments)
            except (RuntimeException, *KERNEL_ERRORS) as exc:
                raise _name_node(exc, node, arguments) from exc
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
        try:
            result = fn(*arguments)
        except (RuntimeException, *KERNEL_ERRORS) as exc:
            raise _name_node(exc, node, arguments) from exc
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
    """The plan of a function body, and of subgraphs in it: always run by a kernel of another."""

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs, which may share memory with inputs and constants."""
        return self.run_body(inputs)


def _name_node(error: Exception, node: Node, arguments: Sequence[Value]) -> RuntimeException:
    """An error of a kernel with ONNX Runtime's text, the node, and what the kernel was given."""
    if isinstance(error, RuntimeException):  # of a node inside a body
        return RuntimeException(_failure(node, error.message))
    described = ", ".join(_describe_value(value) for value in arguments)
    text = str(error) or type(error).__name__
    return RuntimeException(_failure(node, f"{text} (inputs: {described})"))


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
