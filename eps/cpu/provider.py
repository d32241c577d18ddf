"""CPUExecutionProvider: says what it runs, and compiles it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ctx_formats.identity import HardwareIdentity
from ctx_formats.onnx_model import DataType
from ort_lite.ep import Capability, CompileRefused, ExecutionProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.resolve import Resolver
    from ort_lite.ep import (
        CompiledPartition,
        FusedNode,
        GraphView,
        KernelDef,
        KernelRegistry,
        PlacementCosts,
    )


class CPUExecutionProvider(ExecutionProvider):
    """numpy on the host; the EP of last resort."""

    name: ClassVar[str] = "CPUExecutionProvider"
    takes_empty: ClassVar[bool] = True
    widened_types = frozenset((DataType.FLOAT16,))  # numpy takes 3 to 5 times as long in it
    runs_bodies_through_session: ClassVar[bool] = True
    fusions: ClassVar[frozenset[str]] = frozenset(
        ("MatMulAddFusion", "GeluFusion", "LayerNormFusion")
    )

    def __init__(self, *, threads: int = 0) -> None:
        """Import next to nothing: in most sessions with a context no node is left for this EP.

        Args:
            threads: Of matrix products, process-wide; 0 leaves BLAS as it is.
        """
        if threads:
            from eps.cpu.blas_threads import set_blas_threads  # noqa: PLC0415 - lazy: rare

            set_blas_threads(threads)

    @cached_property
    def _users(self) -> KernelRegistry:
        """The registry of the kernels that the user registered."""
        from ort_lite.ep import KernelRegistry  # noqa: PLC0415 - lazy: reload

        return KernelRegistry(self.name)

    @cached_property
    def _resolver(self) -> Resolver:
        """All kernels, imported as they are asked for."""
        from eps.cpu.kernels import OwnKernels  # noqa: PLC0415 - lazy: reload
        from eps.cpu.resolve import Resolver  # noqa: PLC0415 - lazy: reload

        return Resolver((self._users, OwnKernels(self.name)))

    @property
    def identity(self) -> HardwareIdentity:
        """The architecture of the host's processor."""
        from ort_lite.ep import machine_name  # noqa: PLC0415 - lazy: reload

        return HardwareIdentity(device="CPU", architecture=machine_name())

    def register_kernel(self, definition: KernelDef) -> None:
        """A user's kernel, looked at before our own; see SupportsKernels."""
        self._users.register(definition)

    def list_kernels(self) -> tuple[KernelDef, ...]:
        """All kernels; see SupportsKernelListing."""
        registries = self._resolver.registries
        return tuple(definition for registry in registries for definition in registry.definitions())

    def get_capability(self, view: GraphView) -> Capability:
        """Every node for which there is a kernel, a reference or a function body."""
        supported = set()
        refused = {}
        for index in view.candidates:
            resolution = self._resolver.resolve(view.graph, index)
            if resolution.is_supported:
                supported.add(index)
            else:
                refused[index] = resolution.reason
        return Capability(frozenset(supported), refused)

    def placement_costs(self) -> PlacementCosts:
        """Those of numpy on the host."""
        from eps.cpu.placement_costs import CPU  # noqa: PLC0415 - lazy: reload

        return CPU

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        """A plan for each partition.

        Raises:
            CompileRefused: Every kernel declined some node.
        """
        return [self._compile(node) for node in fused]

    def _compile(self, fused: FusedNode) -> CompiledPartition:
        from eps.cpu.compile_graph import GraphCompiler, NodeRefused  # noqa: PLC0415 - lazy: reload

        try:
            return GraphCompiler(fused.graph, self._resolver, fused.bodies).compile()
        except NodeRefused as exc:
            raise CompileRefused(fused.name, exc.message, {exc.index: exc.message}) from exc
