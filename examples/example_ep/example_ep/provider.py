"""ExampleExecutionProvider: four float32 operators in numpy, kept as bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from ctx_formats.errors import Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.onnx_model import DataType, TensorType
from example_ep import identity
from example_ep.program import OPERATORS, Program, ProgramError, Signature, Step
from ort_lite.ep import (
    Capability,
    CompiledPartition,
    EPFail,
    ExecutionProvider,
    InvalidGraph,
    Port,
    Ports,
    compare_identities,
    import_order,
    to_numpy,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import ValueInfo
    from ort_lite.ep import (
        Compatibility,
        FusedNode,
        Graph,
        GraphView,
        PartitionIo,
        Value,
        WeightsFile,
        WeightsSink,
    )


INFO = "example-ep "


class ExamplePartition(CompiledPartition):
    """A program; runs share nothing but its constants, so threads may meet."""

    def __init__(self, program: Program) -> None:
        self.program: Program | None = program

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """One numpy call per step; every result is a new array."""
        if self.program is None:
            raise EPFail("the partition is run after it was released")
        try:
            return self.program.run(inputs)
        except ValueError as exc:  # numpy's word for shapes that do not fit
            raise EPFail(f"the partition cannot take its inputs: {exc}") from exc

    def release(self) -> None:
        """Drop the constants."""
        self.program = None


class ExampleExecutionProvider(ExecutionProvider):
    """Runs what `refusal` does not refuse; the rest goes to the next EP."""

    name: ClassVar[str] = "ExampleExecutionProvider"

    def __init__(self, sum_in: str) -> None:
        self._sum_in = sum_in

    @property
    def identity(self) -> HardwareIdentity:
        """The machine and version that payloads are compiled for."""
        return identity()

    def get_capability(self, view: GraphView) -> Capability:
        """Every candidate: supported, or refused with a reason."""
        refused = {index: refusal(view.graph, index) for index in view.candidates}
        return Capability(
            supported=frozenset(index for index, reason in refused.items() if not reason),
            refused={index: reason for index, reason in refused.items() if reason},
        )

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        """One program for each partition."""
        return [ExamplePartition(self._program(one.graph)) for one in fused]

    def _program(self, graph: Graph) -> Program:
        return Program(
            inputs=tuple(map(signature, graph.inputs)),
            outputs=tuple(map(signature, graph.outputs)),
            steps=tuple(Step(n.op_type, n.inputs, n.outputs[0]) for n in graph.nodes),
            constants={name: to_numpy(tensor) for name, tensor in graph.initializers.items()},
            sum_in=self._sum_in,
        )

    # From here on: SupportsEpContext. Leave these four out, and the EP keeps no contexts.

    def export_model(self, compiled: CompiledPartition, out: BinaryIO) -> None:
        """Write the program, its constants included."""
        assert isinstance(compiled, ExamplePartition), "the core gives back what compile gave"
        if compiled.program is None:
            raise EPFail("the partition is exported after it was released")
        out.write(compiled.program.to_bytes())

    def import_model(self, payload: memoryview, io: PartitionIo) -> CompiledPartition:
        """Bytes of a producer without digests come here unchecked: trust nothing in them."""
        return self._load(payload, None, io)

    def _load(
        self, payload: memoryview, weights: memoryview | None, io: PartitionIo
    ) -> CompiledPartition:
        try:
            program = Program.from_bytes(payload, weights)
        except ProgramError as exc:
            raise InvalidGraph(f"no program: {exc}", reason=Reason.VENDOR_REJECTED) from exc
        inputs, outputs = in_order(io.inputs, program.inputs), in_order(io.outputs, program.outputs)
        return ExamplePartition(replace(program, inputs=inputs, outputs=outputs))

    def check_compatibility(self, recorded: HardwareIdentity) -> Compatibility:
        """Every field that both sides report must be equal."""
        return compare_identities(recorded, self.identity)

    def compatibility_info(self) -> str:
        """Text for the model's metadata, in a form of the vendor's choice."""
        return f"{INFO}{self.identity.sdk_version}"

    # SupportsPayloadIdentity, for a verdict on what others wrote; without it texts must be equal.

    def identity_of_payload(self, payload: memoryview) -> HardwareIdentity:  # noqa: ARG002 - a payload says nothing of it
        """No field: a program does not say who wrote it."""
        return HardwareIdentity()

    def identity_of_info(self, info: str) -> HardwareIdentity | None:
        """Read `compatibility_info` back; None for another EP's text."""
        return HardwareIdentity(sdk_version=info[len(INFO) :]) if info.startswith(INFO) else None

    # And from here on: SupportsWeightSharing. Without these two, payloads hold their constants.

    def export_shared(
        self, compiled: CompiledPartition, weights: WeightsSink, out: BinaryIO
    ) -> bool:
        """Write the program to `out` and its constants to `weights`."""
        assert isinstance(compiled, ExamplePartition), "the core gives back what compile gave"
        if compiled.program is None or not compiled.program.constants:
            return False
        places = [weights.add_weights(data) for data in compiled.program.constant_data()]
        out.write(compiled.program.to_bytes(places))
        return True

    def import_shared(
        self, payload: memoryview, weights: WeightsFile, io: PartitionIo
    ) -> CompiledPartition:
        """Load a program whose constants are in a weights file."""
        return self._load(payload, weights.data, io)


def refusal(graph: Graph, index: int) -> str:
    """Why the EP does not run a node; "" if it does."""
    node = graph.nodes[index]
    if node.domain not in ("", "ai.onnx") or node.op_type not in OPERATORS:
        return f"{node.domain or 'ai.onnx'}:{node.op_type} is not one of {', '.join(OPERATORS)}"
    for name in node.inputs:
        constant, known = graph.constant(name), graph.type_of(name)
        elem_type = known.elem_type if isinstance(known, TensorType) else None
        if (constant.data_type if constant is not None else elem_type) != DataType.FLOAT:
            return f"'{name}' is not known to be float32"
    return ""


def in_order(infos: Sequence[ValueInfo], compiled: Sequence[Signature]) -> tuple[Signature, ...]:
    """A program's inputs or outputs in the order of the node that holds it.

    Raises:
        InvalidGraph: They are not those that the node declares.
    """
    ports = [Port(frozenset((one.name,)), one.elem_type, one.dims) for one in compiled]
    return tuple(compiled[index] for index in import_order(infos, Ports.by_name(ports)))


def signature(info: ValueInfo) -> Signature:
    """A value's name, element type and dimensions; free dimensions compare equal."""
    kind = info.type
    if not isinstance(kind, TensorType) or kind.shape is None:
        return Signature(info.name, getattr(kind, "elem_type", 0), None)
    dims = tuple(dim if isinstance(dim, int) else -1 for dim in kind.shape)
    return Signature(info.name, kind.elem_type, dims)
