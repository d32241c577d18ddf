"""The OpenCL execution provider."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import pyopencl as cl

from ctx_formats.onnx_model import DataType, TensorType
from eps.opencl.blueprint import draw
from eps.opencl.capability import capability
from eps.opencl.device import choose, describe_target, find_devices
from eps.opencl.dynamic import DynamicPartition
from eps.opencl.free_model import decoded, encoded, value_signatures
from eps.opencl.identity import read_identity
from eps.opencl.ir import Unsupported
from eps.opencl.partition import StaticPartition
from eps.opencl.payload import Payload, Variant, write_payload
from eps.opencl.ports import Signature, orders_of
from eps.opencl.program import build
from eps.opencl.reload import open_payload, program_of, rejected, verdict
from eps.opencl.runtime import Executable
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.execution_provider import (
    Capability,
    CompiledPartition,
    CompileRefused,
    ExecutionProvider,
    GraphView,
)
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.blueprint import Blueprint, Port
    from eps.opencl.options import OpenCLOptions
    from eps.opencl.program import Program
    from ort_lite.execution_provider import Compatibility, FusedNode, PartitionIo
    from ort_lite.graph import Graph


class OpenCLExecutionProvider(ExecutionProvider):
    """One OpenCL device; lowers, fuses and compiles partitions with kernels of its own."""

    name: ClassVar[str] = "OpenCLExecutionProvider"
    widens: ClassVar[frozenset[int]] = frozenset((DataType.FLOAT16, DataType.BFLOAT16))

    def __init__(self, options: OpenCLOptions) -> None:
        """Open the device.

        Raises:
            EPFail: It is not there.
        """
        self.options = options
        self._found = choose(find_devices(), options)
        with opencl_errors("opening the device"):
            self._context: cl.Context | None = cl.Context([self._found.device])
        self._target = describe_target(self._found)
        self._identity = read_identity(self._found)

    @property
    def identity(self) -> HardwareIdentity:
        """Platform, device, driver, and the version of the code generator."""
        return self._identity

    def get_capability(self, view: GraphView) -> Capability:
        """Nodes that lower to kernels, tried one by one."""
        return capability(view, self._target)

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        """Draw and build each partition."""
        return [self._compile(one) for one in fused]

    def _compile(self, fused: FusedNode) -> CompiledPartition:
        shapes = static_shapes(fused.graph)
        if shapes is None:
            self._require_whole(fused)
            return self._dynamic(fused.graph, fused.name)
        try:
            blueprint = draw(fused.graph, shapes, self._target)
        except Unsupported as exc:
            raise CompileRefused(fused.name, f"OpenCL: {exc}") from exc
        return StaticPartition(self._executable(blueprint), fused.name)

    def _require_whole(self, fused: FusedNode) -> None:
        """Find nodes that need a shape which another partition computes now, not in a run.

        Raises:
            CompileRefused: There are such nodes.
        """
        graph = fused.graph
        answer = capability(GraphView(graph, frozenset(range(len(graph.nodes)))), self._target)
        if answer.refused:
            reason = next(iter(answer.refused.values()))
            raise CompileRefused(fused.name, reason, answer.refused)

    def _dynamic(
        self,
        graph: Graph,
        name: str,
        orders: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> DynamicPartition:
        """A partition that compiles when it meets shapes; it keeps the device open."""
        context, target, options = self._opened(), self._target, self.options

        def make(shapes: Mapping[str, tuple[int, ...]]) -> Executable:
            try:
                blueprint = draw(graph, shapes, target)
            except Unsupported as exc:
                raise EPFail(f"{name} cannot be compiled for {dict(shapes)}: {exc}") from exc
            program = build(context, blueprint)
            return Executable(context, program, blueprint, profiling=options.profiling)

        return DynamicPartition(graph, name, make, options.max_variants, orders)

    def _executable(self, blueprint: Blueprint) -> Executable:
        return self._executable_of(build(self._opened(), blueprint), blueprint)

    def _executable_of(self, program: Program, blueprint: Blueprint) -> Executable:
        profiling = self.options.profiling
        return Executable(self._opened(), program, blueprint, profiling=profiling)

    def export_model(self, compiled: CompiledPartition, out: BinaryIO) -> None:
        """Write program binary, source, weights and the table of launches to `out`."""
        if isinstance(compiled, DynamicPartition):
            model = memoryview(encoded(compiled.graph))
            write_payload(Payload(self._identity, (), model), out)
            return
        assert isinstance(compiled, StaticPartition), "the core gives back what compile gave"
        executable = compiled.executable
        if self._target.late_binaries:
            executable.warm()
        binary = memoryview(executable.binary())
        write_payload(Payload(self._identity, (Variant(executable.blueprint, binary),)), out)

    def import_model(self, payload: memoryview, io: PartitionIo) -> CompiledPartition:
        """Load what `export_model` wrote; nothing is built from source but with `rebuild`.

        Raises:
            InvalidGraph: It is damaged, for another graph, device or driver, or refused.
        """
        context = self._opened()
        rebuild = self.options.rebuild
        found, own = open_payload(payload, self._identity, self._target.alignment, rebuild=rebuild)
        if found.model is not None:
            graph = decoded(found.model)
            orders = orders_of(io, value_signatures(graph.inputs), value_signatures(graph.outputs))
            return self._dynamic(graph, "an imported partition", orders)
        (variant,) = found.variants
        blueprint = variant.blueprint
        orders = orders_of(io, _signatures(blueprint.inputs), _signatures(blueprint.outputs))
        program = program_of(context, self._found.device, variant, own=own)
        try:
            executable = self._executable_of(program, blueprint)
        except EPFail as exc:
            raise rejected(exc) from exc
        return StaticPartition(executable, "an imported partition", orders)

    def check_compatibility(self, recorded: HardwareIdentity) -> Compatibility:
        """The verdict on a recorded identity."""
        return verdict(recorded, self._identity, rebuild=self.options.rebuild)

    def compatibility_info(self) -> str:
        """The identity as JSON on one line."""
        return json.dumps(self._identity.to_mapping(), separators=(",", ":"))

    def release(self) -> None:
        """Let go of the device; what was compiled goes on working."""
        self._context = None

    def _opened(self) -> cl.Context:
        if self._context is None:
            raise EPFail(f"{self.name} is used after it was released")
        return self._context


def _signatures(ports: Sequence[Port]) -> list[Signature]:
    return [(port.name, port.dtype, port.shape) for port in ports]


def static_shapes(graph: Graph) -> dict[str, tuple[int, ...]] | None:
    """The shape of every input; None if one has a free dimension."""
    shapes = {}
    for info in graph.inputs:
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        sizes = tuple(n for n in shape or () if isinstance(n, int) and n >= 0)
        if shape is None or len(sizes) != len(shape):
            return None
        shapes[info.name] = sizes
    return shapes
