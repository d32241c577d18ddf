"""A graph that grows by random steps; every value's shape is known while it is made."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]
    Step = Callable[["RandomGraph", "Value"], "Value | None"]

OPSETS = (20, 21, 22)
INPUT_SHAPES = (
    (1, 4, 8, 8), (2, 3, 7, 9), (1, 16, 6, 6), (1, 8, 5, 5),
    (2, 10, 12), (3, 5, 6), (4, 16), (1, 32),
)  # fmt: skip
LARGEST = 60_000
"""Elements of a value; a step that would make more is left out."""


@dataclass(frozen=True)
class Value:
    """A float32 tensor of the graph."""

    name: str
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)


STEPS: list[Step] = []


def step(*, ranks: Sequence[int] = range(1, 6), weight: int = 1) -> Callable[[Step], Step]:
    """Register a step for values of some ranks; it returns None where it does not fit."""

    def register(function: Step) -> Step:
        def checked(graph: RandomGraph, value: Value) -> Value | None:
            return function(graph, value) if value.rank in ranks else None

        STEPS.extend([checked] * weight)
        return function

    return register


class RandomGraph:
    """Nodes, initializers and values so far. A body sees the values of the graphs around it."""

    def __init__(
        self, random: np.random.Generator, names: Iterator[int], outer: Sequence[Value] = ()
    ) -> None:
        self.random = random
        self.names = names
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.values = list(outer)

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def pick(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        """From `low` up to and with `high`."""
        return int(self.random.integers(low, high + 1))

    def floats(self, *shape: int) -> Array:
        return self.random.standard_normal(shape).astype(np.float32)

    def new_name(self) -> str:
        return f"t{next(self.names)}"

    def constant(self, value: Any, dtype: str = "float32") -> str:
        """An initializer; its name."""
        name = self.new_name()
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def integers(self, *values: int) -> str:
        """A vector of int64 as an initializer; its name."""
        return self.constant(values, "int64")

    def node(self, op_type: str, *inputs: str | Value, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; the name of its output, or a list of several."""
        names = [each.name if isinstance(each, Value) else each for each in inputs]
        made = [self.new_name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op_type, names, made, made[0] + "_node", **attributes))
        return made[0] if outputs == 1 else made

    def add(
        self, op_type: str, *inputs: str | Value, shape: Sequence[int], **attributes: Any
    ) -> Value:
        """Add a node whose output is a float32 value that later steps may use."""
        value = Value(self.node(op_type, *inputs, **attributes), tuple(shape))
        self.values.append(value)
        return value

    def like(self, shape: tuple[int, ...]) -> Value | None:
        """A value of a shape, if the graph has one."""
        found = [value for value in self.values if value.shape == shape]
        return self.pick(*found) if found else None

    def grow(self, nodes: int) -> Value:
        """Take random steps, mostly from late values, up to so many nodes; the last value."""
        for _ in range(20 * nodes):
            if len(self.nodes) >= nodes:
                break
            weights = np.arange(1, len(self.values) + 1) ** 1.5
            at = int(self.random.choice(len(self.values), p=weights / weights.sum()))
            self.pick(*STEPS)(self, self.values[at])
        return self.values[-1]

    def body(self, *inputs: Value) -> RandomGraph:
        """The beginning of a body inside this graph, with values of its own as inputs."""
        return RandomGraph(self.random, self.names, [*self.values, *inputs])

    def to_graph(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.GraphProto:
        return helper.make_graph(
            self.nodes, f"graph{next(self.names)}", inputs, outputs, self.initializers
        )


def tensor(value: Value, shape: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    """Declare a value, with its own shape if no other is given."""
    return helper.make_tensor_value_info(
        value.name, TensorProto.FLOAT, value.shape if shape is None else shape
    )


def make_model(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model of a seed, and a feed. In two of five models some dimensions are free."""
    random = np.random.default_rng(seed)
    graph = RandomGraph(random, count())
    inputs = [Value(f"x{i}", graph.pick(*INPUT_SHAPES)) for i in range(graph.integer(1, 3))]
    graph.values += inputs
    graph.grow(graph.integer(4, 24))
    used = {name for node in graph.nodes for name in names_read(node)}
    outputs = [
        value
        for value in graph.values[len(inputs) :]
        if value.name not in used or graph.chance(0.08)
    ]
    is_free = graph.chance(0.4)
    declared = [
        tensor(value, [f"{value.name}_{i}" if is_free and graph.chance(0.5) else d
                       for i, d in enumerate(value.shape)])
        for value in inputs
    ]  # fmt: skip
    model = helper.make_model(
        graph.to_graph(declared, [tensor(value, [None] * value.rank) for value in outputs]),
        opset_imports=[helper.make_opsetid("", graph.pick(*OPSETS))],
        ir_version=10,
    )
    return model, {value.name: graph.floats(*value.shape) for value in inputs}


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Names that a node or its bodies read."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from names_read(inner)
        yield from (output.name for output in attribute.g.output)
