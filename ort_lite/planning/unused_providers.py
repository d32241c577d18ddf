"""Execution providers that run no node of a prepared model, and why not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ort_lite.planning.prepared_graph import PreparedGraph

MOST_REASONS = 12
"""Of one execution provider; the most frequent."""


def list_used_providers(prepared: PreparedGraph) -> frozenset[str]:
    """Names of the EPs that run a partition, in the graph or in a body."""
    return frozenset(part.ep.name for graph in _graphs(prepared) for part in graph.partitions)


def explain_unused(prepared: PreparedGraph, names: Sequence[str]) -> tuple[str, ...]:
    """For `explain()`: EPs that were not opened, and why they ran nothing, with figures."""
    lines: list[str] = []
    for name in names:
        lines.append(f"{name} is not opened: it ran no node of this model at an earlier start")
        reasons: Counter[tuple[str, str]] = Counter(
            (graph.graph.nodes[index].op_type, refusals[name])
            for graph in _graphs(prepared)
            for index, refusals in graph.refusals.items()
            if name in refusals
        )
        lines += [
            f"not on {name}: {op} x{count}: {why}"
            for (op, why), count in reasons.most_common(MOST_REASONS)
        ]
    return tuple(lines)


def _graphs(prepared: PreparedGraph) -> Iterator[PreparedGraph]:
    yield prepared
    for part in prepared.partitions:
        for body in part.bodies.values():
            yield from _graphs(body)
