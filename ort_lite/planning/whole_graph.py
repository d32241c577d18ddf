"""A whole graph for one execution provider instead of pieces for several, where nobody named them.

The order of a default list says nothing about a model: if the first execution provider leaves nodes
that another one gets, and the other one runs every node, then values need not cross from one to
the other and back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.planning.partitioner import Assignment, Part, takes_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.planning.judge_placement import Judge


def keep_whole(
    graph: Graph, eps: Sequence[ExecutionProvider], assignment: Assignment, judge: Judge
) -> Assignment:
    """`assignment`, or all nodes on one of its execution providers if that costs less.

    An execution provider that gets no node in `assignment` is not considered: it may compile for
    each new set of shapes, which nothing else in the session would do.

    Args:
        graph: The session's graph, not a body.
        eps: Of the session, the default one last.
        assignment: Of the graph to several of them.
        judge: Estimates costs.
    """
    owners = sorted({part.owner for part in assignment.parts} - {len(eps) - 1})
    if len(owners) < 2:
        return assignment
    pieces = [judge.estimate(graph, eps[part.owner], part.nodes) for part in assignment.parts]
    every = tuple(range(len(graph.nodes)))
    for owner in owners:
        whole = judge.estimate(graph, eps[owner], every)
        if whole is None or None in pieces or not takes_all(graph, eps[owner]):
            continue
        apart = sum(piece for piece in pieces if piece is not None)
        if whole < apart:
            why = (
                f"left to {eps[owner].name}, which runs every node: about {whole:.0f} us, and "
                f"{apart:.0f} us in {len(pieces)} partitions"
            )
            others = {eps[other].name: why for other in owners if other != owner}
            refusals = {node: dict(others) for node in every}
            return Assignment((Part(owner, every),), refusals)
    return assignment
