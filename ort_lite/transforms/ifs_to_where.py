"""Where in place of an If, both of whose branches are computed.

An If parts a graph: its condition comes back from the device, and a branch is a partition of its
own. Where the branches are small, that takes longer than computing both, as in wake-word models
of openWakeWord, whose second net runs only where the first one fires.

Not taken, a branch must not fail. Its operators have answers for all elements, and its shapes are
known, from inputs and weights alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType, Node, TensorType, ValueInfo
from ort_lite.model.graph import Graph
from ort_lite.transforms.inline_if import BRANCHES, BranchInlining
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import GraphDef, ValueType

    BranchesPay = Callable[[Graph, int], bool]
    FixedShape = Callable[[str], tuple[int, ...] | None]

NAME = "IfToWhere"
OLDEST = 9
"""Opset of ai.onnx that has Where."""
FLOATS = frozenset((DataType.FLOAT, DataType.FLOAT16))
TOTAL = frozenset(
    (
        *("Abs", "Add", "Clip", "Concat", "Div", "Erf", "Exp", "Flatten", "Gemm", "Identity"),
        *("LayerNormalization", "LeakyRelu", "Log", "MatMul", "Max", "Min", "Mul", "Neg", "Pow"),
        *("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Reshape", "Sigmoid"),
        *("Softmax", "Sqrt", "Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze"),
    )
)
"""Operators of ai.onnx that have an answer for all floats, in shapes that fit."""


def ifs_to_where(
    graph: GraphDef, opset_imports: Mapping[str, int], pays: BranchesPay, fixed: FixedShape
) -> tuple[GraphDef, int]:
    """`graph` with both branches of such Ifs, and a Where for each result; their number.

    ONNX If-1 to If-25. Ifs inside bodies are left as they are.

    Args:
        graph: Of a model, with the types that inference found.
        opset_imports: Of the model.
        pays: Whether computing both branches of a node takes less than leaving a partition.
        fixed: The shape that a value of the graph has in every run; None if that is not certain.
    """
    if opset_imports.get("", 1) < OLDEST or all(node.op_type != "If" for node in graph.nodes):
        return graph, 0
    typed = Graph(graph, opset_imports)
    inlining = BranchInlining(graph)
    nodes: list[Node] = []
    initializers, value_info = dict(graph.initializers), dict(graph.value_info)
    count = 0
    for index, node in enumerate(typed.nodes):
        if not (_is_choice(typed, index, fixed) and pays(typed, index)):
            nodes.append(node)
            continue
        count += 1
        sides: list[tuple[str, ...]] = []
        for branch in (typed.bodies(index)[BRANCHES[side]] for side in (True, False)):
            results = tuple(inlining.fresh_name(name) for name in node.outputs)
            part = inlining.expand(replace(node, outputs=results), branch.definition)
            nodes += part.nodes
            initializers |= part.initializers
            value_info |= part.value_info
            types = (_type_of(branch, info.name) for info in branch.outputs)
            infos = (ValueInfo(n, t) for n, t in zip(results, types, strict=True))
            value_info |= {info.name: info for info in infos}
            sides.append(results)
        for output, *choices in zip(node.outputs, *sides, strict=True):
            nodes.append(Node("Where", (node.inputs[0], *choices), (output,)))
    if not count:
        return graph, 0
    changed = replace(graph, nodes=tuple(nodes), initializers=initializers, value_info=value_info)
    return changed, count


def _is_choice(graph: Graph, index: int, fixed: FixedShape) -> bool:
    """Whether a node is an If between values of one known shape that nothing can fail to make."""
    node, branches = graph.nodes[index], graph.bodies(index)
    if node.op_type != "If" or node.domain not in ONNX_DOMAINS or not all(node.outputs):
        return False
    if branches.keys() != set(BRANCHES.values()) or graph.constant(node.inputs[0]) is not None:
        return False
    condition = fixed(node.inputs[0])
    if condition is None or set(condition) - {1}:
        return False
    if any(fixed(name) is None for name in graph.implicit_inputs(index)):
        return False
    if not all(_cannot_fail(branch) for branch in branches.values()):
        return False
    then, other = (branches[BRANCHES[side]] for side in (True, False))
    if not len(then.outputs) == len(other.outputs) == len(node.outputs):
        return False
    for mine, theirs in zip(then.outputs, other.outputs, strict=True):
        shape = _shape_of(then, mine.name)
        if shape is None or shape != _shape_of(other, theirs.name) or len(shape) < len(condition):
            return False
    return True


def _cannot_fail(branch: Graph) -> bool:
    if branch.inputs or branch.definition.sparse_initializers:
        return False
    for index, node in enumerate(branch.nodes):
        if node.domain not in ONNX_DOMAINS or node.op_type not in TOTAL or branch.bodies(index):
            return False
        if any(_shape_of(branch, name) is None for name in node.outputs if name):
            return False
        if not all(_is_float_or_constant(branch, name) for name in node.inputs if name):
            return False
    return all(_shape_of(branch, info.name) is not None for info in branch.outputs)


def _is_float_or_constant(graph: Graph, name: str) -> bool:
    """Whether a value decides no shape in the run, as that of a Reshape would."""
    return graph.constant(name) is not None or _shape_of(graph, name) is not None


def _type_of(graph: Graph, name: str) -> ValueType | None:
    constant = graph.constant(name)
    if constant is not None:
        return TensorType(constant.data_type, constant.dims)
    return graph.type_of(name)


def _shape_of(graph: Graph, name: str) -> tuple[int, ...] | None:
    """Known shape of a value of floats with elements."""
    value_type = _type_of(graph, name)
    if not isinstance(value_type, TensorType) or value_type.elem_type not in FLOATS:
        return None
    shape = value_type.shape
    if shape is None or not all(isinstance(dim, int) and dim > 0 for dim in shape):
        return None
    return tuple(dim for dim in shape if isinstance(dim, int))
