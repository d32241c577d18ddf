"""Which kernels can serve a node, and why none can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass, field
from eps.cpu.schema_table import load_table
from eps.cpu.schemas import PLACES_BY_POSITION, Schemas
from ort_lite.ep import (
    ArgPlace,
    KernelCall,
    KernelDef,
    KernelRegistry,
    KernelTypeStrResolver,
    OpIdentifier,
    type_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.kernel_types import Places
    from ctx_formats.onnx_model import Node
    from ort_lite.ep import Graph

_ONNX = frozenset(("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The candidates that can run a node, in this order.

    Attributes:
        op: None if nothing is known of the operator.
        kernels: Whose version and types match; a factory may still decline the node.
        reference: Whether onnx.reference may serve it.
        function: Whether the schema gives a function body.
        reasons: Why what is missing is missing.
    """

    op: OpIdentifier | None
    kernels: tuple[KernelDef, ...] = ()
    reference: bool = False
    function: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def is_supported(self) -> bool:
        """Whether anything may run the node."""
        return bool(self.kernels or self.reference or self.function)

    @property
    def reason(self) -> str:
        """Why nothing runs it, one line."""
        return "; ".join(self.reasons)


@dataclass(slots=True)
class Resolver:
    """Answers for nodes by their operator, version and types; equal nodes are asked once."""

    registries: tuple[KernelRegistry, ...]
    schemas: Schemas = field(init=False)
    _types: KernelTypeStrResolver = field(default_factory=KernelTypeStrResolver)
    _recorded: KernelTypeStrResolver = field(default_factory=KernelTypeStrResolver)
    _known: dict[tuple[object, ...], Resolution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look schemas up among the registries' operators and onnx's."""
        self.schemas = Schemas(self.registries)

    def resolve(self, graph: Graph, index: int) -> Resolution:
        """The candidates for node `index` of `graph`; imports onnx.reference only if needed."""
        node = graph.nodes[index]
        domain = plain_domain(node)
        recorded = graph.kernel_types
        known = None if recorded is None else recorded.find(domain, node.op_type)
        opset = opset_of(domain, graph.opset_imports) if known is None else known[0]
        inputs = tuple(type_text(graph.type_of(n)) if n else "" for n in node.inputs)
        outputs = tuple(type_text(graph.type_of(n)) if n else "" for n in node.outputs)
        key = (domain, node.op_type, opset, known is None, inputs, outputs)
        if key not in self._known:
            if known is not None:
                self._known[key] = self._resolve_recorded(node, known, inputs, outputs)
            else:
                self._known[key] = self._resolve(node, (domain, opset), inputs, outputs)
        return self._known[key]

    def _resolve_recorded(
        self,
        node: Node,
        known: tuple[int, Mapping[str, Places]],
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> Resolution:
        """By the version and type names that the model's file records: without schemas."""
        version, places = known
        op = OpIdentifier(plain_domain(node), node.op_type, version)
        if not self._recorded.knows(op):
            own = {name: tuple(ArgPlace(*at) for at in listed) for name, listed in places.items()}
            # Kernels of operators that onnx does not know name their parameters by position.
            self._recorded.add(op, own if op.domain in _ONNX else {**PLACES_BY_POSITION, **own})
        kernels, mismatches = self._search(op, self._recorded, node, inputs, outputs)
        if kernels:
            # Whether there is a body matters only where every kernel declines the node.
            return Resolution(op=op, kernels=kernels, function=op.domain in _ONNX)
        return _without_kernels(op, mismatches, function=self.schemas.has_body(op))

    def defaults(self, graph: Graph, op: OpIdentifier) -> Mapping[str, Any]:
        """Attribute defaults of `op`; none for a file whose nodes have all attributes."""
        recorded = graph.kernel_types
        if recorded is not None and recorded.has_defaults:
            known = recorded.find(op.domain, op.op_type)
            if known is not None:
                return {}
        return self.schemas.defaults(op)

    def _resolve(
        self,
        node: Node,
        where: tuple[str, int],
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> Resolution:
        domain, opset = where
        version = self.schemas.since_version(domain, node.op_type, opset)
        if version is None:
            reason = self.schemas.explain_unknown(domain, node.op_type, opset)
            return Resolution(op=None, reasons=(reason,))
        op = OpIdentifier(domain, node.op_type, version)
        if not self._types.knows(op):
            self._types.add(op, self.schemas.places(op))
        kernels, mismatches = self._search(op, self._types, node, inputs, outputs)
        if kernels:
            function = domain in _ONNX and self.schemas.has_body(op)
            return Resolution(op=op, kernels=kernels, function=function)
        return _without_kernels(op, mismatches, function=self.schemas.has_body(op))

    def _search(
        self,
        op: OpIdentifier,
        types: KernelTypeStrResolver,
        node: Node,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> tuple[tuple[KernelDef, ...], tuple[str, ...]]:
        """The kernels that serve a node, and why others do not."""
        call = KernelCall(op=op, node_name=node.name, input_types=inputs, output_types=outputs)
        matches = [registry.search(call, types) for registry in self.registries]
        kernels = tuple(definition for match in matches for definition in match.kernels)
        return kernels, tuple(text for match in matches for text in match.mismatches)


def plain_domain(node: Node) -> str:
    """The node's domain, "" for ai.onnx."""
    return "" if node.domain == "ai.onnx" else node.domain


def opset_of(domain: str, opset_imports: Mapping[str, int]) -> int:
    """Version of `domain` that a model imports.

    Bodies of functions from other domains import no ai.onnx and mean the newest; models
    in the wild forget com.microsoft, whose only version is 1.
    """
    opset = opset_imports.get(domain)
    if opset is None and domain == "":
        opset = opset_imports.get("ai.onnx")
    if opset is None and domain == "":
        return load_table().newest[""]
    return 1 if opset is None else opset


def _without_kernels(
    op: OpIdentifier, mismatches: tuple[str, ...], *, function: bool
) -> Resolution:
    from eps.cpu.reference import why_not  # noqa: PLC0415 - lazy: rare

    reasons = mismatches or (f"no kernel is registered for {op}",)
    if op.domain not in _ONNX:
        return Resolution(op=op, reasons=reasons)
    denied = why_not(op)
    return Resolution(
        op=op,
        reference=not denied,
        function=function,
        reasons=(*reasons, *((denied,) if denied else ())),
    )
