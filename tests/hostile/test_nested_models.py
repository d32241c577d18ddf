"""Bodies and functions by the hundred and by the thousand: what a load costs is counted, not timed.

The models are put together as bytes, because protobuf's own library refuses to nest so deep.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort
from ctx_formats.decode_graph import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = ["CPUExecutionProvider"]
FEED = {"x": np.array([1, 2], np.float32), "c": np.ones((), bool)}


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def part(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def if_nodes(depth: int) -> bytes:
    """A model of If nodes, each in the first body of the one around it."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]).SerializeToString()
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, []).SerializeToString()

    def body(node: bytes, output: str) -> bytes:
        info = helper.make_tensor_value_info(output, TensorProto.FLOAT, [2])
        return part(1, node) + part(2, b"g") + part(12, info.SerializeToString())

    def identity(output: str) -> bytes:
        node = helper.make_node("Identity", ["x"], [output])
        return body(node.SerializeToString(), output)

    def attribute(name: bytes, graph: bytes) -> bytes:
        return part(5, part(1, name) + part(6, graph) + varint(20 << 3) + varint(5))

    graph = identity("y0")
    for level in range(1, depth + 1):
        node = helper.make_node("If", ["c"], [f"y{level}"]).SerializeToString()
        node += attribute(b"then_branch", graph)
        node += attribute(b"else_branch", identity(f"e{level}"))
        graph = body(node, f"y{level}")
    graph += part(11, x) + part(11, c)
    opset = helper.make_opsetid("", 17).SerializeToString()
    return varint(1 << 3) + varint(8) + part(7, graph) + part(8, opset)


def beside_one_another(count: int) -> bytes:
    """A model of If nodes, none within another."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])

    def body(op: str, output: str) -> object:
        made = helper.make_tensor_value_info(output, TensorProto.FLOAT, [2])
        return helper.make_graph([helper.make_node(op, ["x"], [output])], "b", [], [made])

    nodes = [
        helper.make_node(
            "If", ["c"], [f"o{i}"],
            then_branch=body("Identity", f"t{i}"), else_branch=body("Neg", f"e{i}"),
        )
        for i in range(count)
    ]  # fmt: skip
    nodes.append(helper.make_node("Sum", [f"o{i}" for i in range(count)], ["y"]))
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, "g", [x, c], [y])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


def functions(depth: int) -> bytes:
    """A model of functions, each of which calls the next."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]
    made = []
    for i in range(depth):
        call = helper.make_node(f"f{i - 1}", ["a"], ["b"], domain="d")
        node = call if i else helper.make_node("Identity", ["a"], ["b"])
        made.append(helper.make_function("d", f"f{i}", ["a"], ["b"], [node], opsets))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    node = helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain="d")
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(
        graph, opset_imports=opsets, functions=made, ir_version=8
    ).SerializeToString()


def calls_of(action: Callable[[], object]) -> int:
    """How many Python functions are called, generators as often as they go on."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def refused(data: bytes, kind: type[Exception], match: str) -> int:
    def load() -> None:
        with pytest.raises(kind, match=match):
            ort.InferenceSession(data, providers=CPU)

    return calls_of(load)


def loaded(data: bytes) -> int:
    return calls_of(lambda: ort.InferenceSession(data, providers=CPU).close())


def test_bodies_beside_one_another_cost_the_same_each() -> None:
    loaded(beside_one_another(5))  # modules are imported
    small, large = loaded(beside_one_another(20)), loaded(beside_one_another(100))
    assert large < 5.5 * small


def test_as_many_bodies_within_one_another_as_are_allowed_give_the_answer() -> None:
    with ort.InferenceSession(if_nodes(MAX_DEPTH), providers=CPU) as session:
        np.testing.assert_array_equal(session.run(None, FEED)[0], FEED["x"])


def capturing(depth: int, names: int, op_type: str) -> bytes:
    """A model of If or Loop nodes; the innermost body reads values of the outermost graph."""
    o, x = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("o", "x"))
    nodes = [helper.make_node("Sum", [f"v{i}" for i in range(names)], ["o"])]
    for level in range(depth):
        if op_type == "If":
            then = helper.make_graph(nodes, "then", [], [o])
            other = helper.make_graph([helper.make_node("Cos", ["x"], ["o"])], "else", [], [o])
            nodes = [helper.make_node("If", ["c"], ["o"], then_branch=then, else_branch=other)]
            continue
        count, state = (
            helper.make_tensor_value_info(f"i{level}", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"s{level}", TensorProto.FLOAT, [1]),
        )
        goes_on = helper.make_tensor_value_info(f"k{level}", TensorProto.BOOL, [])
        body = helper.make_graph(nodes, "body", [count, goes_on, state], [goes_on, o])
        nodes = [helper.make_node("Loop", ["n", "c", "x"], ["o"], body=body)]
    outer = [helper.make_node("Sin", ["x"], [f"v{i}"]) for i in range(names)]
    constants = [
        helper.make_tensor("c", TensorProto.BOOL, [], [True]),
        helper.make_tensor("n", TensorProto.INT64, [], [2]),
    ]
    graph = helper.make_graph([*outer, *nodes], "g", [x], [o], constants)
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()


@pytest.mark.parametrize("op_type", ["If", "Loop"])
def test_a_name_that_all_bodies_around_it_capture_costs_little_in_each(op_type: str) -> None:
    """Twice the depth cost 4.6 times as much while each body searched all bodies in it."""
    loaded(capturing(3, 5, op_type))
    few, many = (
        [loaded(capturing(depth, names, op_type)) for depth in (7, 14, 28)] for names in (10, 110)
    )
    costs = [more - less for less, more in zip(few, many, strict=True)]
    assert all(more < 3 * less for less, more in pairwise(costs)), costs


def scan_nodes(depth: int) -> bytes:
    """A model of Scan nodes, each in the body of the one around it: x + [1, 2], twice."""

    def info(name: str, shape: list[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    sums = [helper.make_node("Add", ["s0", "x0"], ["t0"]), helper.make_node("Neg", ["t0"], ["y0"])]
    shape = [2]
    states, rows = info("s0", shape), info("x0", shape)
    body = helper.make_graph(sums, "g0", [states, rows], [info("t0", shape), info("y0", shape)])
    for level in range(1, depth + 1):
        names = [f"{letter}{level}" for letter in "sxty"]
        node = helper.make_node("Scan", names[:2], names[2:], body=body, num_scan_inputs=1)
        shape = [1, *shape]
        state, x, last, y = (
            info(name, full) for name, full in zip(names, ([2], shape) * 2, strict=True)
        )
        body = helper.make_graph([node], f"g{level}", [state, x], [last, y])
    start = helper.make_tensor(f"s{depth}", TensorProto.FLOAT, [2], [1.0, 2.0])
    graph = helper.make_graph(
        body.node, "g", [helper.make_tensor_value_info(f"x{depth}", TensorProto.FLOAT, shape)],
        body.output, [start],
    )  # fmt: skip
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()


NESTED: dict[str, Callable[[int], bytes]] = {
    "If": if_nodes,
    "If that captures": lambda depth: capturing(depth, 5, "If"),
    "Loop": lambda depth: capturing(depth, 5, "Loop"),
    "Scan": scan_nodes,
}


def peak_of(data: bytes) -> int:
    """Most bytes that Python's objects took during a load."""
    gc.collect()
    tracemalloc.start()
    try:
        ort.InferenceSession(data, providers=CPU).close()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("measure", [loaded, peak_of], ids=["calls", "memory"])
@pytest.mark.parametrize("kind", NESTED)
def test_a_level_of_bodies_costs_the_same_at_any_depth(
    kind: str, measure: Callable[[bytes], int]
) -> None:
    """Half as much again while each level resolved, named and stripped all levels below it."""
    make = NESTED[kind]
    measure(make(3))  # modules are imported
    few, some, many = (measure(make(depth)) for depth in (7, 14, 28))
    assert many - some < 2 * 1.3 * (some - few), (few, some, many)


@pytest.mark.parametrize("kind", NESTED)
def test_bodies_within_one_another_compute_what_the_reference_does(kind: str) -> None:
    model = onnx.load_model_from_string(NESTED[kind](6))
    random = np.random.default_rng(0)
    feed = {
        info.name: random.standard_normal(
            [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        ).astype(helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))
        for info in model.graph.input
    }
    expected = ReferenceEvaluator(model).run(None, feed)
    with ort.InferenceSession(model.SerializeToString(), providers=CPU) as session:
        for result, right in zip(session.run(None, feed), expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-5)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 300, 1000])
def test_bodies_that_nest_too_deep_are_refused_at_once(depth: int) -> None:
    words = f"nested over {MAX_DEPTH} deep"
    refused(if_nodes(depth), ort.InvalidProtobuf, words)  # modules and patterns are there now
    assert refused(if_nodes(depth), ort.InvalidProtobuf, words) < 2000


def test_functions_cost_the_same_each_and_are_refused_where_they_nest_too_deep() -> None:
    loaded(functions(5))
    assert loaded(functions(100)) < 5 * loaded(functions(20))
    refused(functions(101), ort.InvalidGraph, "nested over 100 deep")
    few, many = (refused(functions(n), ort.InvalidGraph, "over 100 deep") for n in (150, 600))
    assert many < 5 * few
