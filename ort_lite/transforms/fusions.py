"""Fusions that an execution provider asks for, applied to the partitions that it gets."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ort_lite.model.graph import Graph
from ort_lite.transforms.draft import Draft
from ort_lite.transforms.fuse_gelu import GELU
from ort_lite.transforms.fuse_gemm import MATMUL_ADD
from ort_lite.transforms.fuse_layer_norm import LAYER_NORM
from ort_lite.transforms.rules import RewriteRule, apply_rules
from ort_lite.transforms.unused import REMOVE_INITIALIZERS

if TYPE_CHECKING:
    from ort_lite.execution_provider import ExecutionProvider
    from ort_lite.options import GraphOptimizationLevel

FUSIONS: tuple[RewriteRule, ...] = (MATMUL_ADD, GELU, LAYER_NORM)
"""They make no new constants: a context model keeps those of the model it came from."""


class Fuser:
    """Fuses in partitions, and counts what it did."""

    def __init__(self, level: GraphOptimizationLevel, disabled: frozenset[str]) -> None:
        self._rules = tuple(
            rule for rule in FUSIONS if rule.level <= level and rule.name not in disabled
        )
        self.fired: Counter[str] = Counter()

    def fused(self, ep: ExecutionProvider, partition: Graph) -> Graph:
        """`partition` with what `ep.fusions` names; itself where there is nothing to fuse."""
        rules = [rule for rule in self._rules if rule.name in ep.fusions]
        if not rules:
            return partition
        draft = Draft(
            partition.definition,
            partition.opset_imports,
            constant_inputs=True,
            type_of=partition.type_of,
        )
        fired = apply_rules(draft, rules)
        if not fired:
            return partition
        REMOVE_INITIALIZERS.transform(draft)
        self.fired += fired
        return Graph(draft.finished(), partition.opset_imports, types_from=partition)
