"""Interfaces of rewriting rules and graph transformers, and the loop that applies rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.options import GraphOptimizationLevel
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ort_lite.transforms.mutable_graph import MutableGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRule:
    """A local rewriting: looks at one node of ai.onnx and its neighbours.

    Attributes:
        name: As ONNX Runtime calls it, where it has one; what `disabled_optimizers` takes.
        operators: At which the rule looks.
        rewrite: Changes the graph at node number `index` and says whether it did. What it
            makes must be less than what was there, so that rules come to an end.
        level: The lowest at which it runs.
    """

    name: str
    operators: frozenset[str]
    rewrite: Callable[[MutableGraph, int], bool]
    level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_BASIC


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTransformer:
    """A global transformation: looks at a whole graph.

    Attributes:
        name: As of a rule.
        transform: Changes the graph and says how often.
        level: The lowest at which it runs.
    """

    name: str
    transform: Callable[[MutableGraph], int]
    level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_BASIC


_BINARY = frozenset(("Add", "Div", "MatMul", "Mul", "Pow", "Sub"))
_TWO = 2


def apply_rules(graph: MutableGraph, rules: Iterable[RewriteRule]) -> Counter[str]:
    """Offer every node to the rules that look at its operator, until none takes it.

    Returns:
        How often each rule fired.
    """
    by_operator: dict[str, list[RewriteRule]] = {}
    for rule in rules:
        for operator in sorted(rule.operators):
            by_operator.setdefault(operator, []).append(rule)
    fired: Counter[str] = Counter()
    for index in range(len(graph.nodes)):
        while (name := _apply_one(graph, index, by_operator)) is not None:
            fired[name] += 1
    return fired


def _apply_one(
    graph: MutableGraph, index: int, by_operator: Mapping[str, list[RewriteRule]]
) -> str | None:
    node = graph.nodes[index]
    if node is None or node.domain not in ONNX_DOMAINS:
        return None
    if node.op_type in _BINARY and len(node.inputs) != _TWO:
        return None  # of an invalid model: execution providers say what is wrong with it
    for rule in by_operator.get(node.op_type, ()):
        if rule.rewrite(graph, index):
            return rule.name
    return None
