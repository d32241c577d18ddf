"""The OpenCL execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pyopencl as cl

from ctx_formats.onnx_model import TensorType
from eps.opencl.blueprint import draw
from eps.opencl.capability import capability
from eps.opencl.device import choose, describe_target, find_devices
from eps.opencl.identity import read_identity
from eps.opencl.ir import Unsupported
from eps.opencl.partition import StaticPartition
from eps.opencl.program import build
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
    from collections.abc import Sequence

    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.blueprint import Blueprint
    from eps.opencl.options import OpenCLOptions
    from ort_lite.execution_provider import FusedNode
    from ort_lite.graph import Graph


class OpenCLExecutionProvider(ExecutionProvider):
    """One OpenCL device; lowers, fuses and compiles partitions with kernels of its own."""

    name: ClassVar[str] = "OpenCLExecutionProvider"

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
        try:
            blueprint = draw(fused.graph, static_shapes(fused.graph), self._target)
        except Unsupported as exc:
            raise CompileRefused(fused.name, f"OpenCL: {exc}") from exc
        return StaticPartition(self._executable(blueprint), fused.name)

    def _executable(self, blueprint: Blueprint) -> Executable:
        context = self._opened()
        program = build(context, blueprint)
        return Executable(context, program, blueprint, profiling=self.options.profiling)

    def release(self) -> None:
        """Let go of the device; what was compiled goes on working."""
        self._context = None

    def _opened(self) -> cl.Context:
        if self._context is None:
            raise EPFail(f"{self.name} is used after it was released")
        return self._context


def static_shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    """The shape of every input.

    Raises:
        Unsupported: One has a free dimension.
    """
    shapes = {}
    for info in graph.inputs:
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        sizes = [n for n in shape or () if isinstance(n, int) and n >= 0]
        if shape is None or len(sizes) != len(shape):
            raise Unsupported(f"input '{info.name}' has free dimensions")
        shapes[info.name] = tuple(sizes)
    return shapes
