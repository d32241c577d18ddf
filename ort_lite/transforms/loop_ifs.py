"""Logic in place of an If that chooses between two truth values in the body of a Loop.

PaddlePaddle's exporter writes "stop once every row has ended" as an If with a truth value in each
branch. No execution provider takes a body with bodies in it, and in the session the If takes longer
than both of its branches.

A value of one element may be a scalar in one branch and of shape [1] in the other. What takes the
place of the If has one of these shapes for both, so that nothing may tell them apart.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType, Node, Tensor, TensorType
from ort_lite.model.bodies import bodies, with_bodies
from ort_lite.model.graph import declared_types, free_names
from ort_lite.model.tensor_values import to_numpy
from ort_lite.transforms.inline_if import BRANCHES, BranchInlining, defined_names
from ort_lite.transforms.loop_states import FIXED, body_of
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctx_formats.onnx_model import GraphDef

NAME = "IfToLogic"
OLDEST = 7
"""Opset of ai.onnx from which And and Or broadcast as numpy does."""
ONE = memoryview((1).to_bytes(8, "little"))
MOST_NODES = 8
"""Of a branch, which is then computed in every iteration."""
INTEGERS = frozenset(
    (
        *(DataType.BOOL, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64),
        *(DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64),
    )
)
UNARY = frozenset(("Cast", "Identity", "Not"))
BINARY = frozenset(("Add", "And", "Equal", "Mul", "Or", "Sub", "Xor"))
TOTAL = UNARY | BINARY | {"Constant"}
"""Operators of ai.onnx that have an answer for all integers and truth values of one element."""


def ifs_to_logic(
    graph: GraphDef, opset_imports: Mapping[str, int], *, constant_inputs: bool = False
) -> tuple[GraphDef, int]:
    """`graph` with And, Or and Not in place of such Ifs, and their number.

    ONNX If-1 to If-25 in bodies of Loop-1 to Loop-25; Loops inside bodies are left as they are.

    Args:
        graph: Of a model.
        opset_imports: Of the model.
        constant_inputs: Whether an initializer that is also an input is a constant (true below IR
            version 4).
    """
    if opset_imports.get("", 1) < OLDEST or all(node.op_type != "Loop" for node in graph.nodes):
        return graph, 0
    inputs = {info.name for info in graph.inputs}
    constants = {
        name: tensor
        for name, tensor in graph.initializers.items()
        if constant_inputs or name not in inputs
    }
    names = BranchInlining(graph)
    nodes: list[Node] = []
    count = 0
    for node in graph.nodes:
        body = body_of(node)
        choices = _LoopBody(node, body, constants).find_choices() if body is not None else set()
        if body is None or not choices:
            nodes.append(node)
            continue
        count += len(choices)
        nodes.append(with_bodies(node, [_write_out(body, choices, names)]))
    return (replace(graph, nodes=tuple(nodes)) if count else graph), count


def _write_out(body: GraphDef, choices: set[int], names: BranchInlining) -> GraphDef:
    """`body` with both branches of the Ifs that have these `id`s."""
    nodes: list[Node] = []
    initializers, value_info = dict(body.initializers), dict(body.value_info)
    for node in body.nodes:
        if id(node) not in choices:
            nodes.append(node)
            continue
        (output,), branches, sides = node.outputs, dict(bodies(node)), []
        # As in an If, a condition of several elements is an error.
        condition, shape = names.fresh_name(output), names.fresh_name(output)
        initializers[shape] = Tensor(shape, DataType.INT64, (1,), ONE)
        nodes.append(Node("Reshape", (node.inputs[0], shape), (condition,)))
        for side in (True, False):
            result = names.fresh_name(output)
            part = names.expand(replace(node, outputs=(result,)), branches[BRANCHES[side]])
            nodes += part.nodes
            initializers |= part.initializers
            value_info |= part.value_info
            taken = condition
            if not side:
                taken = names.fresh_name(output)
                nodes.append(Node("Not", (condition,), (taken,)))
            sides.append(names.fresh_name(output))
            nodes.append(Node("And", (taken, result), (sides[-1],)))
        nodes.append(Node("Or", tuple(sides), (output,)))
    return replace(body, nodes=tuple(nodes), initializers=initializers, value_info=value_info)


class _LoopBody:
    """What is certain of the values in the body of a Loop."""

    def __init__(self, loop: Node, body: GraphDef, constants: Mapping[str, Tensor]) -> None:
        own = set(defined_names(body))
        outer = {name: tensor for name, tensor in constants.items() if name not in own}
        self._body = body
        self._constants = {**outer, **body.initializers}
        self._types = declared_types(body)
        self._finals = {info.name for info in body.outputs}
        self._readers: dict[str, list[Node]] = {}
        for node in body.nodes:
            for name in {*node.inputs, *free_names(node)}:
                self._readers.setdefault(name, []).append(node)
        self._singles = self._find_singles(loop, constants)

    def find_choices(self) -> set[int]:
        """The `id` of each If that can be written out."""
        return {id(node) for node in self._body.nodes if self._is_choice(node)}

    def _find_singles(self, loop: Node, constants: Mapping[str, Tensor]) -> set[str]:
        """Values of one element and of rank 0 or 1 in every iteration.

        A state is one if it begins as one and an iteration in which it is one leaves it so.
        """
        known = {name for name, tensor in self._constants.items() if _is_single(tensor)}
        known |= {info.name for info in self._body.inputs[:FIXED]}
        results = {
            info.name: self._body.outputs[1 + place].name
            for place, info in enumerate(self._body.inputs[FIXED:])
            if _is_single(constants.get(loop.inputs[FIXED + place]))
        }
        while True:
            singles = _spread(self._body.nodes, self._constants, known | results.keys())
            kept = {state: result for state, result in results.items() if result in singles}
            if len(kept) == len(results):
                return singles
            results = kept

    def _is_choice(self, node: Node) -> bool:
        if node.op_type != "If" or node.domain not in ONNX_DOMAINS or len(node.outputs) != 1:
            return False
        branches = dict(bodies(node))
        if branches.keys() != set(BRANCHES.values()):
            return False
        sides = all(map(self._is_truth_value, branches.values()))
        return sides and self._is_absorbed(node.outputs[0])

    def _is_truth_value(self, branch: GraphDef) -> bool:
        """Whether a branch gives one truth value and cannot fail, whatever it reads."""
        if branch.inputs or branch.sparse_initializers or len(branch.outputs) != 1:
            return False
        if len(branch.nodes) > MOST_NODES or not all(map(_cannot_fail, branch.nodes)):
            return False
        output = branch.outputs[0]
        if not isinstance(output.type, TensorType) or output.type.elem_type != DataType.BOOL:
            return False
        own = branch.initializers.values()
        if not all(tensor.data_type in INTEGERS for tensor in own):
            return False
        if not all(self._is_integer(name) for name in branch.free_names):
            return False
        constants = {**self._constants, **branch.initializers}
        known = self._singles | {name for name, t in constants.items() if _is_single(t)}
        return output.name in _spread(branch.nodes, constants, known)

    def _is_integer(self, name: str) -> bool:
        constant, value_type = self._constants.get(name), self._types.get(name)
        if constant is not None:
            return constant.data_type in INTEGERS
        return isinstance(value_type, TensorType) and value_type.elem_type in INTEGERS

    def _is_absorbed(self, name: str) -> bool:
        """Whether all that becomes of a value is the same for a scalar and for shape [1]."""
        if name in self._finals:
            return False
        for reader in self._readers.get(name, ()):
            if reader.domain not in ONNX_DOMAINS or reader.op_type not in UNARY | BINARY:
                return False
            vectors = (self._constants.get(other) for other in reader.inputs)
            has_vector = any(tensor is not None and len(tensor.dims) == 1 for tensor in vectors)
            if not has_vector and not self._is_absorbed(reader.outputs[0]):
                return False
        return True


def _is_single(tensor: Tensor | None) -> bool:
    return tensor is not None and len(tensor.dims) < 2 and prod(tensor.dims) == 1


def _cannot_fail(node: Node) -> bool:
    if node.domain not in ONNX_DOMAINS or node.op_type not in TOTAL:
        return False
    if node.op_type == "Constant":
        value = node.attributes.get("value")
        tensor = value.value if value is not None else None
        return isinstance(tensor, Tensor) and tensor.data_type in INTEGERS
    to = node.attributes.get("to")
    return to is None or to.value in INTEGERS


def _spread(
    nodes: Iterable[Node], constants: Mapping[str, Tensor], known: Iterable[str]
) -> set[str]:
    """`known` values of one element, and those that nodes make of them."""
    singles = set(known)
    for node in nodes:
        if node.domain in ONNX_DOMAINS and _makes_single(node, constants, singles):
            singles.update(filter(None, node.outputs))
    return singles


def _makes_single(node: Node, constants: Mapping[str, Tensor], singles: set[str]) -> bool:
    if node.op_type in UNARY | BINARY:
        return all(name in singles for name in node.inputs)
    if node.op_type == "Constant":
        value = node.attributes.get("value")
        return value is not None and isinstance(value.value, Tensor) and _is_single(value.value)
    if node.op_type == "Reshape" and len(node.inputs) > 1:
        shape = constants.get(node.inputs[1])
        return shape is not None and to_numpy(shape).tolist() in ([], [1])
    if node.op_type == "If":
        return all(
            info.name
            in _spread(
                branch.nodes,
                {**constants, **branch.initializers},
                singles | {name for name, t in branch.initializers.items() if _is_single(t)},
            )
            for _, branch in bodies(node)
            for info in branch.outputs
        )
    return False
