"""From partitions and payloads to programs on one open device."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.shapes import sizes_of, static_shapes
from eps.opencl.payload.import_payload import driver_refusal, programs_of
from eps.opencl.runtime.device_access import DeviceAccess
from eps.opencl.runtime.device_memory import DeviceWeights
from eps.opencl.runtime.executable import Executable
from eps.opencl.runtime.launch import GroupTooLarge
from eps.opencl.runtime.partition import StaticPartition
from eps.opencl.runtime.program import build_parts, warm_up_compiler
from eps.opencl.runtime.room import needed_memory, require_room
from ort_lite.ep import (
    CompiledPartition,
    CompileRefused,
    EPFail,
    GraphView,
    Ports,
    get_logger,
    import_order,
    onnx_data_type,
)
from ort_lite.ep import Port as ModelPort

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.cl.program import Program
    from eps.opencl.compile.inside_shapes import InsideShapes
    from eps.opencl.compile.shapes import Shapes
    from eps.opencl.options import OpenCLOptions
    from eps.opencl.payload.format import ProgramPayload, ProgramVariant, StoredGraph
    from eps.opencl.program_spec import ProgramPort, ProgramSpec
    from eps.opencl.runtime.build_processes import BuildProcesses
    from eps.opencl.runtime.device import ListedDevice
    from eps.opencl.runtime.dynamic import DynamicPartition
    from eps.opencl.target import Target
    from eps.opencl.tuning.tune import Progress
    from ort_lite.ep import FusedNode, Graph, PartitionIo

log = get_logger(__name__)

IMPORTED = "an imported partition"
MANY_NODES = 50
"""Nodes of a partition for which processes are started before its program is generated."""
DIFFERENT_NODES = 15
"""Nodes of different operators or shapes for each such process: equal ones share a function, and a
program of few functions is not divided. A decoder of any depth has 18."""


class Builder:
    """One device with its OpenCL context; partitions that it makes keep it open."""

    def __init__(
        self,
        listed: ListedDevice,
        target: Target,
        options: OpenCLOptions,
        identity: HardwareIdentity,
    ) -> None:
        """Open the device; `identity` is its.

        Raises:
            EPFail: The driver does not let it.
        """
        if options.context or options.command_queue:
            from eps.opencl.runtime.user_context import open_for_user  # noqa: PLC0415 - lazy: rare

            self.access = open_for_user(listed, options)
        else:
            self.access = DeviceAccess(listed)
        self._context = self.access.context
        self._target = target
        self._options = options
        self._sizes: list[dict[str, int]] = [{} for _ in options.reshape]
        self._inside: InsideShapes | None = None
        self._inside_sets: tuple[InsideShapes, ...] = ()
        self._identity = identity
        self._planned: WeakKeyDictionary[Graph, ProgramSpec] = WeakKeyDictionary()

    def learn_sizes(self, graph: Graph) -> InsideShapes:
        """Note which sizes `reshape_input` gives the named dimensions of a whole model.

        A partition in the middle of it has inputs with those names for dimensions, or with
        shapes that follow from them.

        Returns:
            The sizes of the first set of shapes, to try nodes with.

        Raises:
            InvalidArgument: A shape is not one that the input can have.
        """
        from eps.opencl.compile.inside_shapes import InsideShapes  # noqa: PLC0415 - lazy: reload

        for known, shapes in zip(self._sizes, self._options.reshape, strict=True):
            known.update(sizes_of(graph, shapes))
        pairs = list(zip(self._sizes, self._options.reshape, strict=True))
        sets = tuple(InsideShapes(graph, *pair, samples=False) for pair in pairs)
        inside = InsideShapes(graph, *pairs[0]) if pairs else InsideShapes(graph)
        if self._inside is None or not graph.is_body:
            self._inside, self._inside_sets = inside, sets
        return inside

    def share_arena(self) -> None:
        """Have programs use the arena of the context, in turns with those of other sessions."""
        from eps.opencl.runtime.arena import shared_arena  # noqa: PLC0415 - lazy: rare

        self.access.arena = shared_arena(self._context)

    def expect_compile(self, nodes: int) -> None:
        """Have the driver's compiler ready by the time that `compile_fused` needs it.

        Args:
            nodes: How many are to be compiled. Of many, other processes will compile the kernels.
        """
        if not self._builds_in_processes(nodes):
            warm_up_compiler(self._context)

    def _builds_in_processes(self, nodes: int) -> bool:
        return nodes >= MANY_NODES and self._target.builds_at_once > 1

    def _start_processes(self, graph: Graph) -> AbstractContextManager[BuildProcesses | None]:
        """Processes that run the driver's compiler, for as long as the context manager is open."""
        if not self._builds_in_processes(len(graph.nodes)):
            return nullcontext()
        from eps.opencl.runtime.build_processes import BuildProcesses  # noqa: PLC0415 - lazy: reload

        count = max(1, _count_different_nodes(graph) // DIFFERENT_NODES)
        return BuildProcesses(self.access.listed, min(count, self._target.builds_at_once))

    def require_room(self, graphs: Sequence[Graph]) -> None:
        """Refuse partitions whose programs do not fit on the device together.

        Programs of partitions without free dimensions are generated, and taken by
        `compile_fused`. With tuning it generates others, of about the same size.

        Raises:
            EPFail: They do not fit.
        """
        needs = []
        for graph in graphs:
            specs = self._plan(graph)
            if specs:
                needs.append(needed_memory(specs, self._new_weights(), self.access.arena))
        if needs:
            require_room(self._context, needs)

    def _plan(self, graph: Graph) -> list[ProgramSpec]:
        """The program of a partition; none where a dimension is free, or a node not supported."""
        from eps.opencl.compile.compile_partition import compile_partition  # noqa: PLC0415 - lazy: reload
        from eps.opencl.compile.ir import Unsupported  # noqa: PLC0415 - lazy: reload

        shapes = static_shapes(graph)
        if shapes is None:
            return []
        try:
            spec = compile_partition(graph, shapes, self._target)
        except Unsupported:
            return []  # the compile says which node it is
        self._planned[graph] = spec
        return [spec]

    def require_room_to_import(self, payloads: Sequence[tuple[ProgramPayload, bool]]) -> None:
        """Refuse payloads whose programs do not fit on the device together.

        Args:
            payloads: Each with whether its weights are in a file that others use.

        Raises:
            EPFail: They do not fit.
        """
        limit = self._options.max_variants
        needs = [
            needed_memory(
                [variant.spec for variant in payload.variants[:limit]],
                self._new_weights(shared=shared),
                self.access.arena,
            )
            for payload, shared in payloads
            if payload.variants
        ]
        if needs:
            require_room(self._context, needs)

    def compile_fused(self, fused: FusedNode) -> CompiledPartition:
        """The partition, with programs for every set of shapes that is known now.

        Raises:
            CompileRefused: Some of its nodes, or all, have no kernels after all.
            EPFail: The driver fails.
        """
        graph = fused.graph
        shapes = static_shapes(graph)
        if shapes is None:
            from eps.opencl.compile.compile_ahead import prepare, shapes_to_compile  # noqa: PLC0415 - lazy: rare
            from eps.opencl.runtime.dynamic import DynamicPartition  # noqa: PLC0415 - lazy: rare

            self._require_whole(fused)
            make = self._shape_compiler(graph, fused.name, self._new_weights(), self._tune_target)
            shape_sets = shapes_to_compile(fused, self._options, self._inside_sets)
            partition = DynamicPartition(
                graph,
                fused.name,
                make,
                self._options.max_variants,
                only=frozenset(shape_sets) if self._options.refuses_others else None,
            )
            self._connect(partition)
            prepare(partition, shape_sets, fused.progress)
            return partition
        from eps.opencl.compile.ir import Unsupported  # noqa: PLC0415 - lazy: reload

        try:
            target = self._tune_target(graph, shapes, fused.progress)
            executable = self._compile_executable(graph, shapes, target, self._new_weights(), fused)
        except Unsupported as exc:
            raise CompileRefused(fused.name, f"OpenCL: {exc}") from exc
        return StaticPartition(executable, fused.name, self.access)

    def _connect(self, partition: DynamicPartition) -> None:
        """Connect a new partition to the device; a GPU's runs would take others far too long."""
        partition.bind_to(self.access)
        if self._options.other_shapes == "auto" and self.access.listed.kind == "CPU":
            partition.leave_new_shapes()

    def _require_whole(self, fused: FusedNode) -> None:
        """Find nodes that need a shape which another partition computes now, not in a run.

        Raises:
            CompileRefused: There are such nodes.
        """
        from eps.opencl.compile.capability import capability  # noqa: PLC0415 - lazy: reload

        graph = fused.graph
        nodes = frozenset(range(len(graph.nodes)))
        answer = capability(GraphView(graph, nodes), self._target, self._inside)
        if answer.refused:
            reason = next(iter(answer.refused.values()))
            raise CompileRefused(fused.name, reason, answer.refused)

    def import_partition(
        self, payload: ProgramPayload, io: PartitionIo, *, own: bool, shared: bool
    ) -> CompiledPartition:
        """The partition of a payload that was made for this device.

        Args:
            payload: Checked.
            io: As the EPContext node declares it.
            own: Whether its binaries are of this driver; else its source is built.
            shared: Whether its weights are in a file that other partitions use.

        Raises:
            InvalidGraph: It is for another graph, or the driver refuses it.
        """
        weights = self._new_weights(shared=shared)
        if payload.model is not None:
            return self._import_dynamic(payload, payload.model, io, weights, own=own)
        (variant,) = payload.variants
        spec = variant.spec
        orders = (
            import_order(io.inputs, _model_ports(spec.inputs)),
            import_order(io.outputs, _model_ports(spec.outputs)),
        )
        executable = self._load_executable(variant, weights, own=own)
        return StaticPartition(executable, IMPORTED, self.access, orders)

    def _import_dynamic(
        self,
        payload: ProgramPayload,
        model: StoredGraph,
        io: PartitionIo,
        weights: DeviceWeights,
        *,
        own: bool,
    ) -> DynamicPartition:
        """Programs of the payload are loaded now, up to the bound, and again after it."""
        from eps.opencl.payload.dynamic_payload import restore_graph, value_ports  # noqa: PLC0415 - lazy: rare
        from eps.opencl.runtime.dynamic import DynamicPartition  # noqa: PLC0415 - lazy: rare

        graph, custom = restore_graph(model)
        orders = (
            import_order(io.inputs, value_ports(graph.inputs)),
            import_order(io.outputs, value_ports(graph.outputs)),
        )
        kept = {_shapes_of(v.spec, graph): v for v in payload.variants}
        recorded = {p: t for v in payload.variants for p, t in v.spec.tuned.items()}
        target = replace(self._target, tuned=recorded, custom=custom)
        compiled = self._shape_compiler(graph, IMPORTED, weights, lambda *_: target)

        def make(shapes: Shapes) -> Executable:
            variant = kept.get(shapes)
            return (
                compiled(shapes)
                if variant is None
                else self._load_executable(variant, weights, own=own)
            )

        only = None if model.whole else frozenset(kept)
        partition = DynamicPartition(
            graph,
            IMPORTED,
            make,
            self._options.max_variants,
            orders,
            only=only,
        )
        self._connect(partition)
        partition.note_stored(frozenset(kept))
        for shapes in list(kept)[: self._options.max_variants]:
            partition.prepare(shapes)
        return partition

    def _tune_target(
        self,
        graph: Graph,
        shapes: Mapping[str, tuple[int, ...]],
        progress: Progress | None = None,
    ) -> Target:
        """The target, with measured tilings for `graph` where the options ask for them."""
        options = self._options
        if options.tuning == "off":
            return self._target
        from eps.opencl.tuning.cache import TuningCache, tuning_folder  # noqa: PLC0415 - lazy: rare
        from eps.opencl.tuning.tune import Tuner  # noqa: PLC0415 - lazy: rare

        cache = TuningCache(tuning_folder(options.tuning_cache), self._identity)
        return Tuner(self._context, cache, options.tuning).tune_target(
            graph, shapes, self._target, progress
        )

    def _shape_compiler(
        self,
        graph: Graph,
        name: str,
        weights: DeviceWeights,
        target_for: Callable[[Graph, Mapping[str, tuple[int, ...]]], Target],
    ) -> Callable[[Shapes], Executable]:
        """Compiles a partition for the shapes of its inputs."""
        names = [info.name for info in graph.inputs]

        def make(shapes: Shapes) -> Executable:
            from eps.opencl.compile.ir import Unsupported  # noqa: PLC0415 - lazy: reload

            named = dict(zip(names, shapes, strict=True))
            try:
                return self._compile_executable(graph, named, target_for(graph, named), weights)
            except Unsupported as exc:
                raise EPFail(f"{name} cannot be compiled for {named}: {exc}") from exc

        return make

    def _compile_executable(
        self,
        graph: Graph,
        shapes: Mapping[str, tuple[int, ...]],
        target: Target,
        weights: DeviceWeights,
        fused: FusedNode | None = None,
    ) -> Executable:
        """Compiled; in smaller work-groups where a kernel needs too many registers for large ones.

        Raises:
            EPFail: The driver fails.
            Unsupported: A node is not supported with these shapes.
        """
        from eps.opencl.compile.codegen.group_tiling import in_smaller_groups  # noqa: PLC0415 - lazy: reload
        from eps.opencl.compile.compile_partition import compile_partition  # noqa: PLC0415 - lazy: reload

        try:
            with self._start_processes(graph) as processes:
                planned = self._planned.pop(graph, None) if target is self._target else None
                spec = planned or compile_partition(graph, shapes, target)
                return self._build_executable(spec, weights, fused, processes)
        except GroupTooLarge as exc:
            smaller = in_smaller_groups(target, exc.most)
            if smaller is None:
                raise
            log.info("%s: compiled once more, for smaller ones", exc.message)
        return self._compile_executable(graph, shapes, smaller, weights, fused)

    def _load_executable(
        self, variant: ProgramVariant, weights: DeviceWeights, *, own: bool
    ) -> Executable:
        """A program that a payload holds.

        Raises:
            InvalidGraph: The driver refuses it.
        """

        def load() -> list[Program]:
            return programs_of(self._context, variant, own=own)

        try:
            spec = variant.spec if own else replace(variant.spec, parts=())
            return self._new_executable(load, spec, weights)
        except EPFail as exc:
            raise driver_refusal(exc) from exc

    def _build_executable(
        self,
        spec: ProgramSpec,
        weights: DeviceWeights,
        fused: FusedNode | None = None,
        processes: BuildProcesses | None = None,
    ) -> Executable:
        """A newly generated program, every kernel compiled; reports progress to `fused`."""
        executable = self._new_executable(
            lambda: build_parts(self._context, spec, processes), spec, weights
        )
        with ExitStack() as undo:
            undo.callback(executable.release)
            if self._target.late_binaries:
                executable.warm(_report_kernels(fused) if fused is not None else None)
            undo.pop_all()
        return executable

    def _new_weights(self, *, shared: bool = False) -> DeviceWeights:
        chosen, alignment = self._options.weights, self._target.alignment
        automatic = chosen == "auto"
        mapped = chosen == "map" or (shared and automatic)
        return DeviceWeights(self._context, alignment, mapped=mapped, maps_streams=automatic)

    def _new_executable(
        self,
        make_programs: Callable[[], Sequence[Program]],
        spec: ProgramSpec,
        weights: DeviceWeights,
    ) -> Executable:
        profiling = self._options.profiling
        return Executable(
            self.access,
            make_programs,
            spec,
            weights,
            profiling=profiling,
        )


def _count_different_nodes(graph: Graph) -> int:
    """How many nodes differ in operator, or in the types of their inputs or outputs."""

    def describe(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(str(graph.type_of(name)) for name in names)

    nodes = graph.nodes
    return len({(n.domain, n.op_type, describe(n.inputs), describe(n.outputs)) for n in nodes})


def _report_kernels(fused: FusedNode) -> Callable[[int, int], None] | None:
    """Tells whoever compiles `fused` how many of its kernels are done."""
    progress = fused.progress
    if progress is None:
        return None
    return lambda done, total: progress(f"kernels of {fused.name}", done, total)


def _model_ports(ports: Sequence[ProgramPort]) -> Ports:
    return Ports.by_name(
        [
            ModelPort(frozenset((port.name,)), onnx_data_type(np.dtype(port.dtype)), port.shape)
            for port in ports
        ]
    )


def _shapes_of(spec: ProgramSpec, graph: Graph) -> Shapes:
    """Of the graph's inputs, in order.

    Raises:
        InvalidGraph: The program is for another graph.
    """
    order = import_order(graph.inputs, _model_ports(spec.inputs))
    return tuple(spec.inputs[i].shape for i in order)
