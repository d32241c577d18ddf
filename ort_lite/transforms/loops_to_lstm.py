"""LSTM in place of a Loop that computes one step of it in each iteration.

Keras models come out of tf2onnx so where it does not recognise the layer: the body reads the row
of this step (Gather), multiplies and adds, splits the sum into gates, and returns the new states.
Weights must be constants that the body captures (loop_states.py).

How often the loop runs is computed as the loop would, from its trip count, its condition and the
limits in the body, and so many rows go into the LSTM: ONNX Loop-1 to Loop-25, LSTM-7 to LSTM-22.
Where the loop would ask for more rows than there are, which is an error, the LSTM takes all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.onnx_model import DataType, Node, TensorType
from ort_lite.model.graph import declared_types
from ort_lite.model.tensor_values import from_numpy, to_numpy
from ort_lite.transforms.attributes import integer
from ort_lite.transforms.inline_if import defined_names
from ort_lite.transforms.loop_states import FIXED, body_of
from ort_lite.transforms.lstm_cell import find_cell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from ctx_formats.onnx_model import Attribute, Dim, GraphDef, Tensor, ValueType
    from ort_lite.transforms.lstm_cell import Cell

    Array = np.ndarray[Any, np.dtype[Any]]

NAME = "LoopToLSTM"
OLDEST = 13
"""Opset from which Squeeze and Unsqueeze take axes as an input."""
STATES = 3
"""The counter, hidden values, and values of the cell."""
INTEGERS = (DataType.INT32, DataType.INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationLimit:
    """The body goes on while its iteration + `offset` is less than a value outside."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A Loop as an LSTM.

    Attributes:
        counter: Number of the state that counts iterations.
        limits: On the number of iterations, from the condition in the body.
    """

    cell: Cell
    counter: int
    limits: tuple[IterationLimit, ...]


def loops_to_lstm(
    graph: GraphDef, opset: int, *, constant_inputs: bool = False
) -> tuple[GraphDef, int]:
    """`graph` with LSTM nodes in place of such Loops, and their number.

    Args:
        graph: Of a model, with types of its values; Loops inside bodies are left as they are.
        opset: Of ai.onnx.
        constant_inputs: As for `inline_constant_ifs`.
    """
    if opset < OLDEST or not any(map(body_of, graph.nodes)):
        return graph, 0
    types = declared_types(graph)
    open_names = set() if constant_inputs else {info.name for info in graph.inputs}
    constants = {n: t for n, t in graph.initializers.items() if n not in open_names}
    expanded = {n.outputs[0] for n in graph.nodes if n.op_type in ("Expand", "ConstantOfShape")}
    nodes: list[Node] = []
    added: dict[str, Tensor] = {}
    count = 0
    for node in graph.nodes:
        steps = _find_steps(node, types, constants, expanded)
        if steps is None:
            nodes.append(node)
            continue
        count += 1
        writer = _Writer(node, steps, constants)
        writer.write()
        nodes += writer.nodes
        added |= writer.constants
    if not count:
        return graph, 0
    initializers = {**graph.initializers, **added}
    return replace(graph, nodes=tuple(nodes), initializers=initializers), count


def _find_steps(
    node: Node,
    types: Mapping[str, ValueType],
    constants: Mapping[str, Tensor],
    expanded: AbstractSet[str],
) -> Steps | None:
    """The Loop as an LSTM; None if it is anything else.

    Args:
        node: Any.
        types: Of the values around it.
        constants: Around it.
        expanded: Values around it that have the size that another value asks for.
    """
    body = body_of(node)
    if body is None or len(node.inputs) != FIXED + STATES:
        return None
    makers = {name: n for n in body.nodes for name in n.outputs if name}
    own = set(defined_names(body))  # which may hide values of the same name around it
    constants = {name: tensor for name, tensor in constants.items() if name not in own}
    types = {name: kind for name, kind in types.items() if name not in own}
    counter = _find_counter(node, body, makers, constants)
    if counter is None:
        return None
    states = [i for i in range(STATES) if i != counter]
    names = [body.inputs[FIXED + i].name for i in states]
    results = [body.outputs[1 + i].name for i in states]
    cell = find_cell(makers, names, results, body.inputs[FIXED + counter].name, constants)
    if cell is None:
        return None
    batch = _batch_of(types.get(cell.rows), cell.inputs)
    outer = [node.inputs[FIXED + i] for i in states]
    if (
        batch is None
        or not own.isdisjoint(node.inputs)
        or not all(
            _is_state(types.get(name), cell.size, batch, expanded=name in expanded)
            for name in outer
        )
    ):
        return None
    scans = body.outputs[1 + STATES :]
    hidden = _behind(makers, results[cell.hidden])
    if len(scans) > 1 or any(_behind(makers, info.name) != hidden for info in scans):
        return None
    limits = _find_limits(body, makers, counter, {**types, **_types_of(constants)})
    if limits is None or not (limits or node.inputs[0]):
        return None
    return Steps(
        cell=replace(cell, hidden=states[cell.hidden], memory=states[cell.memory]),
        counter=counter,
        limits=limits,
    )


def _find_counter(
    node: Node, body: GraphDef, makers: Mapping[str, Node], constants: Mapping[str, Tensor]
) -> int | None:
    """Number of the state that begins at 0 and grows by 1."""
    own = {**constants, **body.initializers}
    for number, outer in enumerate(node.inputs[FIXED:]):
        start = constants.get(outer)
        name = body.inputs[FIXED + number].name
        maker = makers.get(_behind(makers, body.outputs[1 + number].name))
        if start is None or start.dims or start.data_type not in INTEGERS:
            continue
        if maker is None or maker.op_type != "Add" or name not in maker.inputs:
            continue
        step = next((own.get(i) for i in maker.inputs if i != name), None)
        if step is not None and to_numpy(step).tolist() in (1, [1]) and not to_numpy(start).item():
            return number
    return None


def _find_limits(
    body: GraphDef, makers: Mapping[str, Node], counter: int, types: Mapping[str, ValueType]
) -> tuple[IterationLimit, ...] | None:
    """The limits that the condition of a body asks about; None if it asks something else."""
    inner = {info.name for info in body.inputs}
    offsets = {
        body.inputs[0].name: 0,
        body.inputs[FIXED + counter].name: 0,
        _behind(makers, body.outputs[1 + counter].name): 1,
    }
    limits: list[IterationLimit] = []
    todo = [body.outputs[0].name]
    while todo:
        name = _behind(makers, todo.pop())
        maker = makers.get(name)
        if maker is not None and maker.op_type == "And":
            todo += maker.inputs
            continue
        always = body.initializers.get(name)
        if name == body.inputs[1].name or (always is not None and to_numpy(always).all()):
            continue  # true as it was before the first iteration
        if maker is None or maker.op_type != "Less":
            return None
        left, right = (_behind(makers, each, casts=True) for each in maker.inputs)
        is_outside = right not in makers and right not in inner and right not in body.initializers
        if left not in offsets or not is_outside or not _is_count(types.get(right)):
            return None
        limits.append(IterationLimit(name=right, offset=offsets[left]))
    return tuple(limits)


def _types_of(constants: Mapping[str, Tensor]) -> dict[str, ValueType]:
    return {name: TensorType(t.data_type, t.dims) for name, t in constants.items()}


def _behind(makers: Mapping[str, Node], name: str, *, casts: bool = False) -> str:
    """The value that a value is a copy of, in another type perhaps."""
    while (maker := makers.get(name)) is not None and (
        maker.op_type == "Identity" or (casts and maker.op_type == "Cast")
    ):
        name = maker.inputs[0]
    return name


def _batch_of(value_type: ValueType | None, inputs: int) -> Dim | None:
    """The second dimension of a sequence [T, B, `inputs`] of float32; None if it is not one."""
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    if not isinstance(value_type, TensorType) or value_type.elem_type != DataType.FLOAT:
        return None
    return shape[1] if shape is not None and len(shape) == 3 and shape[2] == inputs else None


def _is_state(value_type: ValueType | None, size: int, batch: Dim, *, expanded: bool) -> bool:
    """Whether a state [B, `size`] or [1, `size`] goes with a batch.

    A batch of 1 could be repeated for more rows of a state, which an LSTM does not do.
    """
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    if shape is None or len(shape) != 2 or shape[1] != size:
        return False
    return expanded or shape[0] in (1, batch)


def _is_count(value_type: ValueType | None) -> bool:
    return (
        isinstance(value_type, TensorType)
        and value_type.elem_type in INTEGERS
        and value_type.shape in ((), (1,))
    )


class _Writer:
    """The nodes in place of one Loop.

    Attributes:
        nodes: In order.
        constants: Initializers that they read.
    """

    def __init__(self, loop: Node, steps: Steps, constants: Mapping[str, Tensor]) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Tensor] = {}
        self._loop, self._steps, self._weights = loop, steps, constants
        self._prefix = f"{loop.name or next(filter(None, loop.outputs))}/lstm"

    def write(self) -> None:
        """Add the nodes; the outputs have the names of the Loop's.

        A Loop that makes no iteration is computed as if it made one, whose results are not used:
        execution providers err where a sequence without rows comes out of other values.
        """
        cell, loop = self._steps.cell, self._loop
        count = self._count()
        at_least = self._add("Max", (count, self._ints(1)))
        rows = self._add("Slice", (cell.rows, self._ints(0), at_least, self._ints(0)))
        sizes = self._add("Shape", (cell.rows,))
        batch = self._add("Slice", (sizes, self._ints(1), self._ints(2), self._ints(0)))
        width = self._ints(cell.size)
        shape = self._add("Concat", (batch, width), attributes=integer("axis", 0))
        begin = {
            number: self._add("Expand", (loop.inputs[FIXED + number], shape))
            for number in (cell.hidden, cell.memory)
        }
        states = [self._add("Unsqueeze", (name, self._ints(0))) for name in begin.values()]
        weights = [self._constant(array) for array in cell.pack(self._weights)]
        made = [f"{self._prefix}/{name}" for name in ("Y", "Y_h", "Y_c")]
        inputs = (rows, *weights, "", *states)
        sized = integer("hidden_size", cell.size)
        self.nodes.append(Node("LSTM", inputs, tuple(made), name=self._prefix, attributes=sized))
        ran = self._add("Greater", (count, self._ints(0)))
        ends = dict(zip(begin, made[1:], strict=True))
        for number, name in enumerate(loop.outputs):
            if not name:
                continue
            if number in ends:
                end = self._add("Squeeze", (ends[number], self._ints(0)))
                self._add("Where", (ran, end, begin[number]), output=name)
            elif number == self._steps.counter:
                flat = self._add("Squeeze", (count, self._ints(0)))
                kind = self._weights[loop.inputs[FIXED + number]].data_type
                self._add("Cast", (flat,), output=name, attributes=integer("to", kind))
            else:
                every = self._add("Squeeze", (made[0], self._ints(1)))
                limits = self._ints(0), count, self._ints(0)
                self._add("Slice", (every, *limits), output=name)

    def _count(self) -> str:
        """How many iterations the Loop makes, int64 [1]."""
        trips, condition = self._loop.inputs[:FIXED]
        counts = [self._flat(trips)] if trips else []
        for limit in self._steps.limits:
            rest = self._add("Sub", (self._flat(limit.name), self._ints(limit.offset)))
            at_least = self._add("Max", (rest, self._ints(0)))
            counts.append(self._add("Add", (at_least, self._ints(1))))
        count = self._add("Min", counts) if len(counts) > 1 else counts[0]
        count = self._add("Max", (count, self._ints(0)))
        return self._add("Mul", (count, self._flat(condition))) if condition else count

    def _flat(self, name: str) -> str:
        cast = self._add("Cast", (name,), attributes=integer("to", DataType.INT64))
        return self._add("Reshape", (cast, self._ints(1)))

    def _ints(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, array: Array) -> str:
        name = f"{self._prefix}/constant_{len(self.constants)}"
        self.constants[name] = from_numpy(array, name)
        return name

    def _add(
        self,
        op: str,
        inputs: Sequence[str],
        *,
        output: str = "",
        attributes: Mapping[str, Attribute] | None = None,
    ) -> str:
        name = output or f"{self._prefix}/{op}_{len(self.nodes)}"
        made = dict(attributes or {})
        self.nodes.append(Node(op, tuple(inputs), (name,), name=name, attributes=made))
        return name
