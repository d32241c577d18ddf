"""One step of an LSTM among the nodes of a body: which values are its rows, gates and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType
from ort_lite.model.tensor_values import to_numpy
from ort_lite.transforms.attributes import int_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ctx_formats.onnx_model import Node, Tensor

    Array = np.ndarray[Any, np.dtype[Any]]

GATES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """An LSTM whose sums are split into gates.

    Attributes:
        rows: Name of the sequence [T, B, `inputs`], outside the body.
        hidden: Number of the state that is its output.
        memory: Number of the state of the cell.
        order: For the gates input, output, forget and cell of ONNX, their part of the sum.
        weights: Names of the matrices of rows and hidden values, and of the bias ("" for none).
        inputs: Values of a row.
        size: Hidden values.
    """

    rows: str
    hidden: int
    memory: int
    order: tuple[int, ...]
    weights: tuple[str, str, str]
    inputs: int
    size: int

    def pack(self, constants: Mapping[str, Tensor]) -> tuple[Array, Array, Array]:
        """W [1, 4 H, inputs], R [1, 4 H, H] and B [1, 8 H] of the operator LSTM."""
        wide, deep = (self._order_gates(to_numpy(constants[name])) for name in self.weights[:2])
        bias = np.zeros(GATES * self.size, np.float32)
        if self.weights[2]:
            bias = self._order_gates(to_numpy(constants[self.weights[2]]).reshape(1, -1))[:, 0]
        both = np.concatenate([bias, np.zeros_like(bias)])
        return wide[np.newaxis], deep[np.newaxis], both[np.newaxis]

    def _order_gates(self, matrix: Array) -> Array:
        """The columns of a matrix as rows, in ONNX's order of gates."""
        parts = np.split(matrix, GATES, axis=1)
        return np.ascontiguousarray(np.concatenate([parts[i] for i in self.order], axis=1).T)


def find_cell(
    makers: Mapping[str, Node],
    states: Sequence[str],
    results: Sequence[str],
    counter: str,
    constants: Mapping[str, Tensor],
) -> Cell | None:
    """The LSTM whose step gives `results` for two `states`; None if there is none.

    Args:
        makers: Nodes of the body by what they make.
        states: Names of the hidden values and of the cell's, in either order.
        results: Names of the same after the step.
        counter: Name of the number of the step.
        constants: That the body captures, by name.
    """
    for hidden, memory in ((0, 1), (1, 0)):
        search = _Search(makers, states[hidden], states[memory], counter, constants)
        match = search.find(results[hidden], results[memory])
        if match is not None:
            order, sums = match
            parts = search.find_products(sums)
            if parts is not None:
                rows, weights, inputs, size = parts
                return Cell(
                    rows=rows, hidden=hidden, memory=memory, order=order, weights=weights,
                    inputs=inputs, size=size,
                )  # fmt: skip
    return None


class _Search:
    """The nodes of one body."""

    def __init__(
        self,
        makers: Mapping[str, Node],
        hidden: str,
        memory: str,
        counter: str,
        constants: Mapping[str, Tensor],
    ) -> None:
        self._makers, self._constants = makers, constants
        self._hidden, self._memory, self._counter = hidden, memory, counter

    def _find_maker(self, name: str, *operators: str) -> Node | None:
        """The node of one of the operators that makes a value, or what it is a copy of."""
        maker = self._makers.get(name)
        while maker is not None and maker.op_type == "Identity":
            maker = self._makers.get(maker.inputs[0])
        return maker if maker is not None and maker.op_type in operators else None

    def find(self, hidden: str, memory: str) -> tuple[tuple[int, ...], str] | None:
        """The gates' parts of the sum, as `Cell.order`, and the name of the sum."""
        product, total = self._find_maker(hidden, "Mul"), self._find_maker(memory, "Add")
        if product is None or total is None:
            return None
        gate = squashed = None
        for one, other in (product.inputs, product.inputs[::-1]):
            tanh = self._find_maker(one, "Tanh")
            if tanh is not None and self._find_maker(tanh.inputs[0], "Add") is total:
                gate, squashed = self._gate(other, "Sigmoid"), tanh
        terms = [self._find_maker(name, "Mul") for name in total.inputs]
        if gate is None or squashed is None or terms[0] is None or terms[1] is None:
            return None
        for kept, new in ((terms[0], terms[1]), (terms[1], terms[0])):
            if self._memory not in kept.inputs:
                continue
            forget = self._gate(_other(kept, self._memory), "Sigmoid")
            pairs = [
                (self._gate(one, "Sigmoid"), self._gate(other, "Tanh"))
                for one, other in (new.inputs, new.inputs[::-1])
            ]
            enter, cell = next((pair for pair in pairs if all(pair)), (None, None))
            if forget and enter and cell:
                gates = (enter, gate, forget, cell)
                sums = {name for name, _ in gates}
                order = tuple(part for _, part in gates)
                if len(sums) == 1 and sorted(order) == list(range(GATES)):
                    return order, sums.pop()
        return None

    def _gate(self, name: str, activation: str) -> tuple[str, int] | None:
        """The sum that a gate is a part of, and which part."""
        node = self._find_maker(name, activation)
        split = self._find_maker(node.inputs[0], "Split") if node is not None else None
        if node is None or split is None or len(split.outputs) != GATES:
            return None
        sizes = self._constants.get(split.inputs[1]) if len(split.inputs) > 1 else None
        if len(split.inputs) > 1 and (sizes is None or len(set(to_numpy(sizes).tolist())) != 1):
            return None
        if int_of(split, "axis", 0) not in (1, -1) or node.inputs[0] not in split.outputs:
            return None
        return split.inputs[0], split.outputs.index(node.inputs[0])

    def find_products(self, name: str) -> tuple[str, tuple[str, str, str], int, int] | None:
        """Rows, weights and sizes of the sum of two products and perhaps a bias."""
        terms, todo = [], [name]
        while todo:
            add = self._find_maker(todo[-1], "Add")
            last = todo.pop()
            if add is not None:
                todo += add.inputs
            else:
                terms.append(last)
            if len(terms) + len(todo) > 3:
                return None
        products = [
            node for term in terms if (node := self._find_maker(term, "MatMul")) is not None
        ]
        biases = [term for term in terms if self._find_maker(term, "MatMul") is None]
        if len(products) != 2 or len(biases) > 1:
            return None
        for across, along in (products, products[::-1]):
            if across.inputs[0] != self._hidden:
                continue
            rows = self._row(along.inputs[0])
            weights = (along.inputs[1], across.inputs[1], biases[0] if biases else "")
            sizes = self._sizes(weights)
            if rows and sizes:
                return rows, weights, *sizes
        return None

    def _row(self, name: str) -> str:
        """The sequence whose row of this step a value is; "" for anything else."""
        gather = self._find_maker(name, "Gather")
        if gather is None or int_of(gather, "axis", 0) != 0 or gather.inputs[1] != self._counter:
            return ""
        return gather.inputs[0] if gather.inputs[0] not in self._makers else ""

    def _sizes(self, weights: tuple[str, str, str]) -> tuple[int, int] | None:
        """Values of a row and of a state, if the weights fit."""
        tensors = [self._constants.get(name) for name in weights if name]
        if any(t is None or t.data_type != DataType.FLOAT for t in tensors):
            return None
        dims = [tensor.dims for tensor in tensors if tensor is not None]
        size = dims[1][0] if len(dims[1]) == 2 else 0
        expected = [(dims[0][0] if dims[0] else 0, GATES * size), (size, GATES * size)]
        if list(dims[:2]) != expected or not size:
            return None
        fits = len(dims) < 3 or dims[2] in ((GATES * size,), (1, GATES * size))
        return (expected[0][0], size) if fits else None


def _other(node: Node, name: str) -> str:
    """The input of a node of two that is not `name`."""
    return node.inputs[1] if node.inputs[0] == name else node.inputs[0]
