"""Fusions that an execution provider asks for, applied to the partitions that it gets."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ort_lite.model.graph import Graph
from ort_lite.transforms.mutable_graph import MutableGraph
from ort_lite.transforms.rules import apply_rules
from ort_lite.transforms.unused import REMOVE_INITIALIZERS

if TYPE_CHECKING:
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.options import GraphOptimizationLevel
    from ort_lite.transforms.rules import RewriteRule


def fusions() -> tuple[RewriteRule, ...]:
    """All that an EP may ask for, imported with the first partition of one that does.

    They make no new constants: a context model keeps those of the model it came from.
    """
    from ort_lite.transforms.fuse_gelu import GELU  # noqa: PLC0415 - lazy: reload
    from ort_lite.transforms.fuse_gemm import MATMUL_ADD  # noqa: PLC0415 - lazy: reload
    from ort_lite.transforms.fuse_layer_norm import LAYER_NORM  # noqa: PLC0415 - lazy: reload

    return (MATMUL_ADD, GELU, LAYER_NORM)


class Fuser:
    """Fuses in partitions, and counts what it did."""

    def __init__(self, level: GraphOptimizationLevel, disabled: frozenset[str]) -> None:
        self._level = level
        self._disabled = disabled
        self.fired: Counter[str] = Counter()

    def fuse(self, ep: ExecutionProvider, partition: Graph) -> Graph:
        """`partition` with what `ep.fusions` names; itself where there is nothing to fuse."""
        names = ep.fusions - self._disabled
        rules = (
            [r for r in fusions() if r.name in names and r.level <= self._level] if names else []
        )
        if not rules:
            return partition
        graph = MutableGraph(
            partition.definition,
            partition.opset_imports,
            constant_inputs=True,
            type_of=partition.type_of,
        )
        fired = apply_rules(graph, rules)
        if not fired:
            return partition
        REMOVE_INITIALIZERS.transform(graph)
        self.fired += fired
        return Graph(graph.freeze(), partition.opset_imports, part_of=partition)
