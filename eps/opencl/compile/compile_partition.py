"""From a partition and the shapes of its inputs to a spec; not on the way of a reload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.codegen.chains import find_chains
from eps.opencl.compile.codegen.emit import emit_program
from eps.opencl.compile.codegen.generate import generate_kernels
from eps.opencl.compile.codegen.join_launches import join_launches
from eps.opencl.compile.fuse import fuse_pointwise
from eps.opencl.compile.ir import Unsupported
from eps.opencl.compile.layout import assign_layouts
from eps.opencl.compile.lower_graph import lower_graph
from eps.opencl.compile.memory_plan import MemoryPlan, nbytes, plan_memory
from eps.opencl.compile.port_uses import find_port_uses
from eps.opencl.program_spec import (
    ArenaFill,
    ArenaSpan,
    LaunchSpec,
    ProgramPort,
    ProgramSpec,
    Weight,
    WeightArgument,
    weight_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.layout import PlacedGraph
    from eps.opencl.compile.views import Storage, View
    from eps.opencl.custom.operators import CustomKernels
    from eps.opencl.target import Target
    from ort_lite.ep import Graph

BUILD_OPTIONS = "-cl-mad-enable -w"
EXACT_DIVISION = " -cl-fp32-correctly-rounded-divide-sqrt"
"""Without it a GPU may get the last bits of quotients and square roots wrong, and what it quantises
off by one (OpenCL C, "Relative Error as ULPs")."""
"""No warnings: PoCL writes to stderr of each vector that is longer than a register."""
MAX_ELEMENTS = (1 << 31) - (1 << 21)
"""Of a tensor: 32-bit indices reach them, and a step of a loop beyond."""


def schedule_partition(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], custom: CustomKernels | None = None
) -> PlacedGraph:
    """Steps and places of a partition for inputs of the given shapes.

    Raises:
        Unsupported: With these shapes a node is not supported after all.
    """
    return assign_layouts(fuse_pointwise(lower_graph(graph, shapes, custom)))


def compile_partition(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], target: Target
) -> ProgramSpec:
    """Compile a partition for inputs of the given shapes.

    Raises:
        Unsupported: With these shapes a node is not supported after all.
    """
    lowered = lower_graph(graph, shapes, target.custom)
    schedule = assign_layouts(fuse_pointwise(lowered))
    kernels = [kernel for step in schedule.steps for kernel in generate_kernels(step, target)]
    if target.groups is None:
        kernels = join_launches(kernels)
    largest = max((b.size for kernel in kernels for b in kernel.operands), default=0)
    if largest > MAX_ELEMENTS:
        raise Unsupported(f"a tensor of {largest} elements, more than 32-bit indices reach")
    plan = plan_memory(kernels, schedule.inputs, schedule.outputs, target.alignment)
    entry = target.one_entry and bool(kernels)
    chains = find_chains(kernels) if entry else ()
    emitted = emit_program(kernels, target, entry=entry, chains=chains)
    weights = list(map(_weight, plan.constants))
    distinct = {weight.digest: weight for weight in weights}
    order = {digest: index for index, digest in enumerate(distinct)}
    constants = {
        id(buffer): WeightArgument(order[weight.digest])
        for buffer, weight in zip(plan.constants, weights, strict=True)
    }
    return ProgramSpec(
        source=emitted.source,
        options=build_options(target),
        calls=tuple(
            _call(k, n, plan, constants) for k, n in zip(kernels, emitted.names, strict=True)
        ),
        arena=plan.arena,
        kept=plan.kept,
        weights=tuple(distinct.values()),
        inputs=_ports([info.name for info in graph.inputs], schedule.inputs, plan),
        outputs=_outputs(graph, schedule, plan),
        fills=tuple(ArenaFill(ArenaSpan(at, size), value) for at, size, value in plan.fills),
        entry=entry,
        parts=emitted.parts,
        chains=emitted.chains,
        rewritings=lowered.notes,
        port_uses=find_port_uses(kernels, schedule.inputs, schedule.outputs),
        tuned={
            k.problem: target.tuned[k.problem]
            for k in kernels
            if k.problem is not None and k.problem in target.tuned
        },
    )


def build_options(target: Target) -> str:
    """Options of the driver's compiler."""
    return BUILD_OPTIONS + (EXACT_DIVISION if target.asks_for_exact_division else "")


def _call(
    kernel: Kernel, name: str, plan: MemoryPlan, constants: Mapping[int, WeightArgument]
) -> LaunchSpec:
    arguments = (
        ArenaSpan(plan.places[id(buffer)], nbytes(buffer))
        if buffer.constant is None
        else constants[id(buffer)]
        for buffer in kernel.operands
    )
    return LaunchSpec(
        kernel=name,
        tasks=kernel.tasks,
        group=kernel.group,
        arguments=tuple(arguments),
        checks=kernel.checks,
        work=kernel.work,
    )


def _weight(buffer: Storage) -> Weight:
    assert buffer.constant is not None, "the plan lists constants"
    flat = np.ascontiguousarray(buffer.constant).reshape(-1).view(np.uint8)
    return weight_of(flat.data)


def _ports(
    names: Sequence[str], views: Sequence[View], plan: MemoryPlan
) -> tuple[ProgramPort, ...]:
    return tuple(
        ProgramPort(
            name=name,
            dtype=view.buffer.dtype,
            shape=view.shape,
            offset=plan.places[id(view.buffer)]
            + view.offset * int(np.dtype(view.buffer.dtype).itemsize),
        )
        for name, view in zip(names, views, strict=True)
    )


def _outputs(graph: Graph, schedule: PlacedGraph, plan: MemoryPlan) -> tuple[ProgramPort, ...]:
    return _ports([info.name for info in graph.outputs], schedule.outputs, plan)
