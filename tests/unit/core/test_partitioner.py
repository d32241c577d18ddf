"""Assigning nodes to execution providers."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_formats.identity import HardwareIdentity
from ctx_formats.onnx_model import GraphDef, Node, ValueInfo
from ort_lite.ep.interface import Capability, ExecutionProvider
from ort_lite.model.graph import Graph
from ort_lite.planning.partitioner import Part, assign
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import CompiledPartition, FusedNode, GraphView


class ByOperator(ExecutionProvider):
    """Takes nodes by their operator."""

    def __init__(self, name: str, operators: str) -> None:
        self.name = name  # type: ignore[misc] # one class plays several EPs here
        self._operators = set(operators)

    @property
    def identity(self) -> HardwareIdentity:
        return HardwareIdentity(architecture="none")

    def get_capability(self, view: GraphView) -> Capability:
        mine = {i for i in view.candidates if view.graph.nodes[i].op_type in self._operators}
        return Capability(
            frozenset(mine), dict.fromkeys(view.candidates - mine, f"not of {self._operators}")
        )

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        raise AssertionError("assigning compiles nothing")


def chain(operators: str, inputs: Sequence[Sequence[int]] | None = None) -> Graph:
    """Nodes n0, n1, ... of one-letter operators; each reads those before it that it is told."""
    nodes = tuple(
        Node(
            op, tuple(f"v{j}" for j in (inputs[i] if inputs else [i - 1])), (f"v{i}",), name=f"n{i}"
        )
        for i, op in enumerate(operators)
    )
    outputs = tuple(ValueInfo(f"v{i}") for i in range(len(operators)))
    return Graph(
        GraphDef(name="g", nodes=nodes, inputs=(ValueInfo("v-1"),), outputs=outputs), {"": 17}
    )


def shape(graph: Graph, *eps: ExecutionProvider) -> list[tuple[int, tuple[int, ...]]]:
    return [(part.owner, part.nodes) for part in assign(graph, eps).parts]


def test_a_graph_that_one_ep_takes_is_one_partition() -> None:
    assert shape(chain("AAAA"), ByOperator("a", "A"), ByOperator("cpu", "A")) == [(0, (0, 1, 2, 3))]


def test_a_foreign_node_in_a_chain_splits_it() -> None:
    assert shape(chain("AABAA"), ByOperator("a", "A"), ByOperator("cpu", "AB")) == [
        (0, (0, 1)),
        (1, (2,)),
        (0, (3, 4)),
    ]


def test_a_side_branch_does_not_split_what_it_does_not_separate() -> None:
    graph = chain("ABAA", [[-1], [0], [0], [2]])
    assert shape(graph, ByOperator("a", "A"), ByOperator("cpu", "B")) == [
        (0, (0, 2, 3)),
        (1, (1,)),
    ]


def test_nodes_that_would_close_a_loop_through_another_ep_stay_apart() -> None:
    graph = chain("ABA", [[-1], [0], [0, 1]])
    assert shape(graph, ByOperator("a", "A"), ByOperator("cpu", "B")) == [
        (0, (0,)),
        (1, (1,)),
        (0, (2,)),
    ]


def test_the_first_ep_of_the_user_wins() -> None:
    one, two = ByOperator("one", "A"), ByOperator("two", "AB")
    assert shape(chain("AB"), two, one) == [(0, (0, 1))]
    assert shape(chain("AB"), one, two) == [(0, (0,)), (1, (1,))]


def test_what_an_ep_declined_goes_to_the_next_with_the_reason() -> None:
    eps = [ByOperator("a", "A"), ByOperator("cpu", "A")]
    found = assign(chain("AAA"), eps, declined={0: {1: "cannot convert"}})
    assert [(p.owner, p.nodes) for p in found.parts] == [(0, (0,)), (1, (1,)), (0, (2,))]
    assert found.refusals == {1: {"a": "cannot convert"}}


def test_every_refusal_keeps_its_reason() -> None:
    found = assign(chain("AB"), [ByOperator("a", "A"), ByOperator("cpu", "B")])
    assert found.refusals == {1: {"a": "not of {'A'}"}}


def test_fixed_parts_stay_as_they_are() -> None:
    graph = chain("AEA")
    found = assign(graph, [ByOperator("a", "A"), ByOperator("cpu", "A")], fixed=[Part(1, (1,))])
    assert [(p.owner, p.nodes) for p in found.parts] == [(0, (0,)), (1, (1,)), (0, (2,))]


def test_a_node_that_nobody_runs_is_named_with_everybodys_reason() -> None:
    with pytest.raises(
        NotImplementedByAny,
        match=r"Could not find an implementation for Z\(17\) node with name 'n1'.*a: not of",
    ):
        assign(chain("AZ"), [ByOperator("a", "A"), ByOperator("cpu", "A")])


@given(
    operators=st.text("ABC", min_size=1, max_size=30),
    edges=st.data(),
)
def test_partitions_are_whole_acyclic_and_in_order(operators: str, edges: st.DataObject) -> None:
    inputs = [
        edges.draw(st.lists(st.integers(-1, i - 1), min_size=1, max_size=3))
        for i in range(len(operators))
    ]
    graph = chain(operators, inputs)
    parts = assign(
        graph, [ByOperator("a", "A"), ByOperator("b", "AB"), ByOperator("cpu", "ABC")]
    ).parts
    assert Counter(n for part in parts for n in part.nodes) == Counter(range(len(operators)))
    done = {-1}
    for part in parts:
        for node in part.nodes:
            assert all(j in done or j in part.nodes for j in inputs[node])
        done.update(part.nodes)
    assert (
        parts
        == assign(
            graph, [ByOperator("a", "A"), ByOperator("b", "AB"), ByOperator("cpu", "ABC")]
        ).parts
    )


@given(foreign=st.sets(st.integers(0, 19)))
def test_a_chain_has_no_more_partitions_than_it_changes_ep(foreign: set[int]) -> None:
    operators = "".join("B" if i in foreign else "A" for i in range(20))
    changes = 1 + sum(a != b for a, b in itertools.pairwise(operators))
    parts = assign(chain(operators), [ByOperator("a", "A"), ByOperator("cpu", "B")]).parts
    assert len(parts) == changes


def test_fifty_thousand_nodes_keep_their_partitions() -> None:
    count = 50_000
    operators = "".join("B" if i % 7 == 3 else "A" for i in range(count))
    graph = chain(operators, [[max(-1, i - 1), max(-1, i - 5)] for i in range(count)])
    parts = assign(graph, [ByOperator("a", "A"), ByOperator("cpu", "B")]).parts
    changes = 1 + sum(a != b for a, b in itertools.pairwise(operators))
    assert len(parts) == changes
