"""Graphs with their edges resolved."""

from __future__ import annotations

import pytest

from ctx_formats.onnx_model import (
    Attribute,
    AttributeType,
    GraphDef,
    Node,
    Tensor,
    TensorType,
    ValueInfo,
)
from ort_lite.model.graph import Graph
from ort_lite.status import InvalidGraph

WEIGHT = Tensor("w", 1, (1,), memoryview(b"\0\0\0\0"))


def graph(*nodes: Node, outputs: tuple[str, ...], **kwargs: object) -> Graph:
    definition = GraphDef(
        name="g",
        nodes=nodes,
        inputs=(ValueInfo("x", TensorType(1, (2,))),),
        outputs=tuple(ValueInfo(name) for name in outputs),
        initializers={"w": WEIGHT},
        **kwargs,
    )
    return Graph(definition, {"": 17})


def body(*nodes: Node, output: str, inputs: tuple[str, ...] = ()) -> Attribute:
    definition = GraphDef(
        name="body",
        nodes=nodes,
        inputs=tuple(ValueInfo(name) for name in inputs),
        outputs=(ValueInfo(output),),
    )
    return Attribute("body", AttributeType.GRAPH, definition)


def test_nodes_come_in_topological_order_whatever_the_file_says() -> None:
    made = graph(
        Node("C", ("b",), ("c",)),
        Node("A", ("x",), ("a",)),
        Node("B", ("a",), ("b",)),
        outputs=("c",),
    )
    assert [node.op_type for node in made.nodes] == ["A", "B", "C"]


def test_a_cycle_is_refused() -> None:
    with pytest.raises(InvalidGraph, match="not acyclic"):
        graph(Node("A", ("b",), ("a",)), Node("B", ("a",), ("b",)), outputs=("b",))


def test_two_makers_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidGraph, match=r"Duplicate definition of name \(a\)"):
        graph(Node("A", ("x",), ("a",)), Node("B", ("x",), ("a",)), outputs=("a",))


def test_a_name_without_a_maker_is_refused() -> None:
    with pytest.raises(InvalidGraph, match="'nowhere' is not a graph input"):
        graph(Node("A", ("nowhere",), ("a",)), outputs=("a",))


def test_an_output_that_nobody_makes_is_refused() -> None:
    with pytest.raises(InvalidGraph, match="the graph's outputs"):
        graph(Node("A", ("x",), ("a",)), outputs=("b",))


def test_edges_are_known_both_ways() -> None:
    made = graph(Node("A", ("x",), ("a",)), Node("B", ("a", "", "w"), ("b",)), outputs=("a", "b"))
    assert made.producer("a") == 0
    assert made.producer("x") is None
    assert list(made.consumers("a")) == [1]
    assert made.node_inputs(1) == ("a", "w")


def test_extracting_gives_inputs_by_first_use_and_only_needed_outputs_and_constants() -> None:
    made = graph(
        Node("A", ("x",), ("a",)),
        Node("B", ("w", "a"), ("b", "unused")),
        Node("C", ("b", "x"), ("c",)),
        Node("D", ("c",), ("d",)),
        outputs=("d", "b"),
    )
    part = made.extract([2, 1], "part")
    assert [info.name for info in part.inputs] == ["a", "x"]
    assert [info.name for info in part.outputs] == ["b", "c"]
    assert list(part.initializers) == ["w"]
    assert part.type_of("x") == TensorType(1, (2,))


def test_a_body_captures_values_and_adopts_constants_of_the_outer_graph() -> None:
    inner = Node("Mul", ("i", "a"), ("m",))
    made = graph(
        Node("A", ("x",), ("a",)),
        Node(
            "Loop",
            ("x",),
            ("y",),
            attributes={
                "body": body(inner, Node("Add", ("m", "w"), ("n",)), output="n", inputs=("i",))
            },
        ),
        outputs=("y",),
    )
    (resolved,) = made.bodies(1).values()
    assert resolved.captured == ("a",)
    assert list(resolved.initializers) == ["w"]
    assert made.node_inputs(1) == ("x", "a")
    part = made.extract([1], "part")
    assert [info.name for info in part.inputs] == ["x", "a"]
    assert list(part.initializers) == ["w"]


def test_a_body_inside_a_body_captures_through_both() -> None:
    innermost = body(Node("Neg", ("a",), ("z",)), output="z")
    middle = body(Node("If", (), ("m",), attributes={"body": innermost}), output="m")
    made = graph(
        Node("A", ("x",), ("a",)),
        Node("If", ("x",), ("y",), attributes={"body": middle}),
        outputs=("y",),
    )
    assert made.implicit_inputs(1) == ("a",)


def test_an_initializer_that_is_an_input_may_be_overridden_from_ir_4_on() -> None:
    definition = GraphDef(
        name="g",
        nodes=(Node("A", ("x", "w"), ("a",)),),
        inputs=(ValueInfo("x"), ValueInfo("w")),
        outputs=(ValueInfo("a"),),
        initializers={"w": WEIGHT},
    )
    new = Graph(definition, {"": 17})
    assert [i.name for i in new.overridable] == ["w"]
    assert new.constant("w") is None
    old = Graph(definition, {"": 7}, constant_inputs=True)
    assert old.overridable == ()
    assert old.constant("w") is WEIGHT
