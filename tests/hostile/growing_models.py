"""Small models that ask their reader for much: ranks, shapes, names, constants, calls, bodies."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    import onnx

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
COUNT = (20, 100, 400)


def _model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str] = (2,),
    *,
    functions: Sequence[onnx.FunctionProto] = (),
    kind: int = FLOAT,
    **constants: Any,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "grown",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)
    return bytes(made.SerializeToString())


def _chain(op: str, count: int, first: str = "x", **more: Any) -> list[onnx.NodeProto]:
    names = [first, *(f"t{i}" for i in range(count - 1)), "y"]
    return [helper.make_node(op, [a], [b], **more) for a, b in pairwise(names)]


def _self_pairs(op: str, count: int, **more: Any) -> list[onnx.NodeProto]:
    """Each node reads the one before it twice."""
    return [helper.make_node(op, [n.input[0]] * 2, n.output, **more) for n in _chain(op, count)]


def ranks(random: Random) -> bytes:
    """A high rank that many nodes pass on."""
    return _model(_chain("Sin", random.choice(COUNT)), [1] * random.choice((60, 70, 5000)))


def unsqueezed(random: Random) -> bytes:
    """A rank that grows."""
    nodes = _chain("Unsqueeze", random.choice(COUNT))
    for node in nodes:
        node.input.append("axes")
    return _model(nodes, axes=np.arange(random.choice((1, 3, 40)), dtype=np.int64))


def doubled(random: Random) -> bytes:
    """A rank, a shape, or a vector that doubles."""
    count = random.choice((5, 30, 60))
    op, more = random.choice((("Gather", {}), ("Concat", {"axis": 0}), ("Add", {}), ("Mul", {})))
    nodes = _self_pairs(op, count, **more)
    if random.random() < 0.5:
        nodes[0:0] = [helper.make_node("Shape", ["x"], ["s"])]
        nodes[1] = helper.make_node(op, ["s", "s"], nodes[1].output, **more)
        last = random.choice(("ConstantOfShape", "Identity", "Cast"))
        nodes[-1].output[0] = "z"
        nodes.append(
            helper.make_node(last, ["z"], ["y"], **({"to": FLOAT} if last == "Cast" else {}))
        )
    return _model(nodes, [3], kind=random.choice((INT64, FLOAT)))


def vectors(random: Random) -> bytes:
    """A vector of any length under operators that follow elements."""
    size = random.choice((10, 1 << 16, 1 << 33, 1 << 62))
    maker = random.choice(
        (
            helper.make_node("ConstantOfShape", ["n"], ["v"]),
            helper.make_node("Expand", ["x", "n"], ["v"]),
            helper.make_node("Tile", ["x", "n"], ["v"]),
            helper.make_node("Range", ["zero", "one", "step"], ["v"]),
        )
    )
    nodes = [maker, *_chain("Cast", random.choice((1, 50)), "v", to=INT64)]
    return _model(nodes, [1], n=np.int64([size]), zero=np.int64(0), one=np.int64(size),
                  step=np.int64(1))  # fmt: skip


def symbols(random: Random) -> bytes:
    """A dimension with a long name."""
    return _model(_chain("Sin", random.choice(COUNT)), ["d" * random.choice((70, 3000, 50_000)), 2])


def folded(random: Random) -> bytes:
    """A constant that many nodes read."""
    count = random.choice(COUNT)
    nodes = []
    for i in range(count):
        nodes += [
            helper.make_node("Constant", [], [f"c{i}"], value_float=float(i)),
            helper.make_node(random.choice(("Add", "Mul")), ["w", f"c{i}"], [f"a{i}"]),
        ]
    nodes.append(helper.make_node("Sum", ["x", *(f"a{i}" for i in range(count))], ["y"]))
    return _model(nodes, [1], w=np.zeros(random.choice((10, 20_000)), np.float32))


def called(random: Random) -> bytes:
    """A function that is called often, or calls others twice."""
    count = random.choice((10, 200))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    constant = numpy_helper.from_array(np.zeros(random.choice((1, 30_000)), np.float32))
    leaf = [
        helper.make_node("Constant", [], ["w"], value=constant),
        helper.make_node("ReduceSum", ["w"], ["s"], keepdims=0),
        helper.make_node("Add", ["a", "s"], ["b"]),
    ]
    functions = [helper.make_function("l", "f0", ["a"], ["b"], leaf, opsets)]
    for i in range(1, random.choice((1, 5, 30))):
        twice = [
            helper.make_node(f"f{i - 1}", ["a"], ["m"], domain="l"),
            helper.make_node(f"f{i - 1}", ["m"], ["b"], domain="l"),
        ]
        functions.append(helper.make_function("l", f"f{i}", ["a"], ["b"], twice, opsets))
    last = functions[-1].name
    return _model(_chain(last, count, domain="l"), functions=functions)


def nested(random: Random) -> bytes:
    """Bodies in bodies, which read values of the graph around them."""
    outer = random.choice((1, 100))
    inner = [helper.make_node("Sum", [f"v{i}" for i in range(outer)], ["o"])]
    for _ in range(random.choice((1, 5, 29))):
        then, other = (
            helper.make_graph(nodes, "b", [], [helper.make_empty_tensor_value_info("o")])
            for nodes in (inner, [helper.make_node("Cos", ["x"], ["o"])])
        )
        inner = [helper.make_node("If", ["c"], ["o"], then_branch=then, else_branch=other)]
    inner[0].output[0] = "y"
    nodes = [helper.make_node("Sin", ["x"], [f"v{i}"]) for i in range(outer)]
    return _model([*nodes, *inner], c=np.array(random.random() < 0.5))


def wide(random: Random) -> bytes:
    """Many inputs of one node, many users of one value."""
    count = random.choice((50, 500))
    nodes = [helper.make_node("Cos", ["x"], [f"o{i}"]) for i in range(count)]
    return _model([*nodes, helper.make_node("Sum", [f"o{i}" for i in range(count)], ["y"])])


def sparse(random: Random) -> bytes:
    """A constant that is nearly nothing in the file."""
    tensor = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "v"),
        numpy_helper.from_array(np.zeros(1, np.int64), "i"),
        [random.choice((10, 1 << 20, 1 << 50, (1 << 63) - 1))],
    )
    nodes = [
        helper.make_node("Constant", [], ["w"], sparse_value=tensor),
        helper.make_node("ReduceSum", ["w"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    return _model(nodes)


GROWING: tuple[Callable[[Random], bytes], ...] = (
    *(ranks, unsqueezed, doubled, vectors, symbols, folded, called, nested, wide, sparse),
)
