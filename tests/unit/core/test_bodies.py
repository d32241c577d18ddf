"""Walks over the bodies of control flow: order, identity, depth."""

from __future__ import annotations

from dataclasses import replace

from ctx_formats.onnx_model import Attribute, AttributeType, GraphDef, Node
from ort_lite.model.bodies import (
    bodies,
    map_bodies,
    map_graph_bodies,
    map_paired_bodies,
    walk,
    walk_nodes,
    with_bodies,
)
from ort_lite.model.topological import topological_order

DEEP = 20_000


def graph(name: str, *nodes: Node) -> GraphDef:
    return GraphDef(name=name, nodes=nodes, inputs=(), outputs=())


def plain(name: str) -> Node:
    return Node("Relu", ("x",), (name,), name=name)


def branching(name: str, then: GraphDef, *others: GraphDef) -> Node:
    attributes = {
        "then": Attribute("then", AttributeType.GRAPH, then),
        "to": Attribute("to", AttributeType.INT, 1),
        "others": Attribute("others", AttributeType.GRAPHS, others),
    }
    return Node("If", ("c",), (name,), name=name, attributes=attributes)


MODEL = graph(
    "main",
    plain("a"),
    branching(
        "b",
        graph("then", plain("c"), branching("d", graph("inner", plain("e")))),
        graph("first", plain("f")),
        graph("second", plain("g")),
    ),
    plain("h"),
)


def nested(depth: int) -> GraphDef:
    inner = graph("g0", plain("n0"))
    for level in range(1, depth):
        inner = graph(f"g{level}", branching(f"n{level}", inner))
    return inner


def renamed(body: GraphDef) -> GraphDef:
    return replace(body, name=body.name.upper())


def test_bodies_have_the_name_of_their_attribute_and_their_place_in_it() -> None:
    found = bodies(MODEL.nodes[1])
    assert [(key, body.name) for key, body in found] == [
        ("then", "then"),
        ("others#0", "first"),
        ("others#1", "second"),
    ]


def test_a_graph_comes_before_its_bodies_and_these_in_the_order_of_nodes() -> None:
    assert [g.name for g in walk(MODEL)] == ["main", "then", "inner", "first", "second"]


def test_a_node_comes_before_those_of_its_bodies_and_these_before_the_next() -> None:
    assert "".join(node.name for node in walk_nodes(MODEL)) == "abcdefgh"


def test_walks_go_deeper_than_the_stack() -> None:
    deep = nested(DEEP)
    assert sum(1 for _ in walk(deep)) == DEEP
    assert sum(1 for _ in walk_nodes(deep)) == DEEP


def test_every_body_is_changed_and_attributes_keep_their_order() -> None:
    node = map_bodies(MODEL.nodes[1], renamed)
    assert [body.name for _, body in bodies(node)] == ["THEN", "FIRST", "SECOND"]
    assert list(node.attributes) == ["then", "to", "others"]


def test_what_has_no_new_body_is_itself() -> None:
    node = MODEL.nodes[1]
    assert map_bodies(node, lambda body: body) is node
    assert with_bodies(node, [body for _, body in bodies(node)]) is node
    assert map_graph_bodies(MODEL, lambda body: body) is MODEL
    assert map_bodies(MODEL.nodes[0], renamed) is MODEL.nodes[0]


def test_a_body_is_seen_with_that_of_a_node_like_it() -> None:
    other = map_bodies(MODEL.nodes[1], renamed)

    def joined(mine: GraphDef, theirs: GraphDef) -> GraphDef:
        return replace(mine, name=mine.name + theirs.name)

    node = map_paired_bodies(MODEL.nodes[1], other, joined)
    names = [body.name for _, body in bodies(node)]
    assert names == ["thenTHEN", "firstFIRST", "secondSECOND"]


def test_of_several_numbers_that_are_ready_the_lowest_comes_first() -> None:
    assert topological_order([{3}, set(), {1}, set(), {0, 2}]) == [1, 2, 3, 0, 4]


def test_a_cycle_and_what_needs_it_is_left_out() -> None:
    assert topological_order([set(), {2}, {1}, {2}, {0}]) == [0, 4]
