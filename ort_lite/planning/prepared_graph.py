"""A graph whose every node has a compiled home: its partitions, and how they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field, replace
from ort_lite.execution.run_context import NodeLabel
from ort_lite.execution.signature import Signature
from ort_lite.execution.slots import PartitionProgram, PartitionStep
from ort_lite.model.tensor_values import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Tensor
    from ort_lite.ep.device_tensors import Place
    from ort_lite.ep.interface import CompiledPartition, ExecutionProvider, Runnable, Value
    from ort_lite.model.graph import Graph
    from ort_lite.planning.empty_runs import EmptyRuns
    from ort_lite.planning.shape_plans import ShapePlans
    from ort_lite.planning.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of a prepared graph.

    Attributes:
        nodes: Indices in the prepared graph.
        graph: The partition as a graph of its own, fused as its EP asked for it.
        bodies: Prepared bodies of the control flow in it, for an EP that asked for them.
        inputs: Names in the order in which `compiled` takes them.
        outputs: Names in the order in which `compiled` gives them.
        origin: "compiled", or "context" when it came out of an EPContext node.
        empty: Answers runs with an input that has no elements; None where `compiled` does, or
            there cannot be such an input.
    """

    ep: ExecutionProvider
    name: str
    nodes: tuple[int, ...]
    graph: Graph
    compiled: CompiledPartition
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: Mapping[tuple[int, str], PreparedGraph] = field(default_factory=dict)
    origin: str = "compiled"
    empty: EmptyRuns | None = None

    @property
    def runnable(self) -> Runnable:
        """The object that computes the outputs, for inputs of any size."""
        if self.empty is None:
            return self.compiled
        from ort_lite.planning.empty_runs import GuardedPartition  # noqa: PLC0415 - lazy: rare

        return GuardedPartition(self.compiled, self.empty)

    def step(self) -> PartitionStep:
        """The partition as a step of the graph's program."""
        label = NodeLabel(name=self.name, op_type=self.name, provider=self.ep.name)
        return PartitionStep(
            runnable=self.runnable,
            inputs=self.inputs,
            outputs=self.outputs,
            label=None if self.compiled.records_nodes else label,
        )

    def release(self) -> None:
        """Release the compiled form, bodies first."""
        for body in self.bodies.values():
            body.release()
        self.compiled.release()
        if self.empty is not None:
            self.empty.release()


class PreparedGraph:
    """A graph whose every node has a compiled home; many threads may run it at once.

    Attributes:
        graph: What was prepared.
        partitions: In the order in which they run.
        refusals: Node index to {EP name: reason}, for nodes that some EP declined.
        watch: Over files that partitions have mapped and others may write to, if any.
        specialized: Plans that run in place of the partitions for some input shapes; None without.
    """

    def __init__(
        self,
        graph: Graph,
        partitions: Sequence[Partition],
        refusals: Mapping[int, Mapping[str, str]],
        watch: Watch | None = None,
    ) -> None:
        self.graph = graph
        self.partitions = tuple(partitions)
        self.refusals = dict(refusals)
        self.watch = watch
        self.specialized: ShapePlans | None = None
        self._program = PartitionProgram(
            [info.name for info in (*graph.inputs, *graph.overridable)] + list(graph.captured),
            [part.step() for part in partitions],
            [info.name for info in graph.outputs],
            _constants(graph, partitions),
        )

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Inputs, overridable initializers, captured values, in this order, to outputs.

        Raises:
            InvalidGraph: A mapped file has changed, so that the outputs may be wrong.
        """
        if self.specialized is not None:
            plan = self.specialized.find(inputs)
            if plan is not None:
                return plan.run(inputs)
        if self._program.hands_on:
            return self.run_bound(inputs, (None,) * len(self._program.outputs))
        if self.watch is None:
            return self._program.run(inputs)
        self.watch.require_unchanged()
        outputs = self._program.run(inputs)
        self.watch.require_unchanged()
        return outputs

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
        """As `run`, from and to tensors of devices.

        Args:
            inputs: Arrays and device tensors.
            places: Of each output, as in `SupportsBoundRuns.run_bound`.

        Raises:
            InvalidGraph: As `run`.
            InvalidArgument: An output has another type or shape than its place.
        """
        from ort_lite.execution.bound_runs import run_bound  # noqa: PLC0415 - lazy: rare

        if self.watch is None:
            return run_bound(self._program, inputs, places)
        self.watch.require_unchanged()
        outputs = run_bound(self._program, inputs, places)
        self.watch.require_unchanged()
        return outputs

    def signature(self, weights: Mapping[str, Tensor]) -> Signature:
        """Inputs and outputs of a session that runs this graph.

        Args:
            weights: The model's initializers, among them those that a run may override.
        """
        return Signature.of(self.graph, weights)

    def forget_weights(self, stripped: dict[Graph, Graph] | None = None) -> None:
        """Let go of the weights that no compiled partition reads; nothing is written after it.

        Args:
            stripped: See `Graph.without_constants`.
        """
        stripped = {} if stripped is None else stripped
        for partition in self.partitions:
            partition.compiled.forget_source()
            for body in partition.bodies.values():
                body.forget_weights(stripped)
        self.partitions = tuple(
            replace(part, graph=part.graph.without_constants(stripped)) for part in self.partitions
        )
        self.graph = self.graph.without_constants(stripped)

    def release(self) -> None:
        """Release every partition and stop watching its files."""
        if self.specialized is not None:
            self.specialized.release()
        for partition in self.partitions:
            partition.release()
        if self.watch is not None:
            self.watch.close()


def _constants(graph: Graph, partitions: Sequence[Partition]) -> dict[str, Value]:
    """Values of graph outputs, and of partition inputs, that are constants."""
    names = [info.name for info in graph.outputs]
    names += [name for part in partitions for name in part.inputs]
    constants: dict[str, Value] = {}
    for name in dict.fromkeys(names):
        constant = graph.constant(name) if graph.producer(name) is None else None
        if constant is not None:
            constants[name] = to_numpy(constant)
    return constants
