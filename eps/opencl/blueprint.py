"""Everything about a compiled partition but the driver's program: plain values, no device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.codegen.select import kernels_of
from eps.opencl.codegen.source import write_source
from eps.opencl.fuse import fuse
from eps.opencl.ir import Unsupported
from eps.opencl.layout import lay_out
from eps.opencl.plan import MemoryPlan, nbytes, plan_memory
from eps.opencl.trace import trace
from eps.opencl.weights import Weight, weight_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.codegen.kernel import Kernel
    from eps.opencl.device import Target
    from eps.opencl.layout import Schedule
    from eps.opencl.views import Buffer, View
    from ort_lite.graph import Graph

BUILD_OPTIONS = "-cl-mad-enable"
MAX_ELEMENTS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the arena, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Constant:
    """One of a blueprint's weights."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One kernel launch.

    Attributes:
        kernel: Name in the source.
        tasks: Global size; the local size is 1.
        arguments: Buffers in the order of the parameters.
        checks: Whether the flag for bad indices is a last argument.
        work: Floating-point operations, for reports.
    """

    kernel: str
    tasks: int
    arguments: tuple[Place | Constant, ...]
    checks: bool = False
    work: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """An input or output: row-major at `offset` bytes of the arena."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * int(np.dtype(self.dtype).itemsize)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A program's source, its calls, and the memory that they touch.

    Attributes:
        arena: Bytes of device memory for inputs, outputs and temporaries, zero at the start.
        weights: Constants, each content once.
    """

    source: str
    options: str
    calls: tuple[Call, ...]
    arena: int
    weights: tuple[Weight, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def checks(self) -> bool:
        """Whether a call may report a bad index."""
        return any(call.checks for call in self.calls)


def draw(graph: Graph, shapes: Mapping[str, tuple[int, ...]], target: Target) -> Blueprint:
    """Compile a partition for inputs of the given shapes.

    Raises:
        Unsupported: With these shapes a node is not supported after all.
    """
    schedule = lay_out(fuse(trace(graph, shapes)))
    kernels = [kernel for step in schedule.steps for kernel in kernels_of(step, target)]
    largest = max((b.size for kernel in kernels for b in kernel.operands), default=0)
    if largest > MAX_ELEMENTS:
        raise Unsupported(f"a tensor of {largest} elements, more than 32-bit indices reach")
    plan = plan_memory(kernels, schedule.inputs, schedule.outputs, target.alignment)
    source, names = write_source(kernels, target)
    weights = list(map(_weight, plan.constants))
    distinct = {weight.digest: weight for weight in weights}
    order = {digest: index for index, digest in enumerate(distinct)}
    constants = {
        id(buffer): Constant(order[weight.digest])
        for buffer, weight in zip(plan.constants, weights, strict=True)
    }
    return Blueprint(
        source=source,
        options=BUILD_OPTIONS,
        calls=tuple(_call(k, n, plan, constants) for k, n in zip(kernels, names, strict=True)),
        arena=plan.arena,
        weights=tuple(distinct.values()),
        inputs=_ports([info.name for info in graph.inputs], schedule.inputs, plan),
        outputs=_outputs(graph, schedule, plan),
    )


def _call(kernel: Kernel, name: str, plan: MemoryPlan, constants: Mapping[int, Constant]) -> Call:
    arguments = (
        Place(plan.places[id(buffer)], nbytes(buffer))
        if buffer.constant is None
        else constants[id(buffer)]
        for buffer in kernel.operands
    )
    return Call(
        kernel=name,
        tasks=kernel.tasks,
        arguments=tuple(arguments),
        checks=kernel.checks,
        work=kernel.work,
    )


def _weight(buffer: Buffer) -> Weight:
    assert buffer.constant is not None, "the plan lists constants"
    flat = np.ascontiguousarray(buffer.constant).reshape(-1).view(np.uint8)
    return weight_of(flat.data)


def _ports(names: Sequence[str], views: Sequence[View], plan: MemoryPlan) -> tuple[Port, ...]:
    return tuple(
        Port(
            name=name,
            dtype=view.buffer.dtype,
            shape=view.shape,
            offset=plan.places[id(view.buffer)]
            + view.offset * int(np.dtype(view.buffer.dtype).itemsize),
        )
        for name, view in zip(names, views, strict=True)
    )


def _outputs(graph: Graph, schedule: Schedule, plan: MemoryPlan) -> tuple[Port, ...]:
    return _ports([info.name for info in graph.outputs], schedule.outputs, plan)
