"""How much shape inference would write, estimated before it runs.

Inference writes a shape for every value, and follows the elements of small integer tensors that
become shapes. A few nodes can make either as large as they like: a rank that doubles with every
Gather, a shape that doubles with every Concat, or one very long shape that thousands of nodes pass
on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import DataType, SparseTensorType, Tensor, TensorType
from ort_lite.model.bodies import bodies
from ort_lite.model.graph import declared_types
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.onnx_model import GraphDef, Node, ValueType

    Rule = Callable[[Node, Sequence[int], Mapping[str, int]], int]
    """A node, the ranks of its inputs and known lengths to the rank of its outputs."""

MOST_DIMENSIONS = 1 << 20
"""Of all values together: inference takes some 100 bytes for each, several times over."""
USUAL_RANK = 64
"""numpy's limit; a model whose values stay below it has as many dimensions as it likes."""
MOST_ELEMENTS = 1 << 16
"""Of all shapes that inference may follow; a model with more is inferred without them."""
_CEILING = 1 << 40

_AS_LONG_AS: Mapping[str, slice] = {
    **dict.fromkeys(("Cast", "Slice", "Squeeze", "Unsqueeze"), slice(0, 1)),
    **dict.fromkeys(("Add", "Mul", "Sub"), slice(0, 2)),
    "Gather": slice(1, 2),
}
"""With Concat, Shape and Size: operators of ONNX 1.22 with a data propagation function, and which
inputs their results are as long as at most."""
_LOOP_INPUTS = 2
"""Of a Loop, before the values that it carries: trip count and condition."""


@dataclass(slots=True)
class Bounds:
    """Upper bounds of what inference writes; what it cannot know counts as nothing.

    Attributes:
        ranks: Of values, by name.
        lengths: Elements of values that inference may follow, by name.
        nodes: In the graph and all bodies.
        dimensions: Of all values.
        elements: Of all values that inference may follow.
    """

    ranks: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    nodes: int = 0
    dimensions: int = 0
    elements: int = 0

    def require_writable(self) -> None:
        """Refuse shapes that would fill the memory.

        Raises:
            InvalidGraph: Names the number of dimensions.
        """
        most = max(MOST_DIMENSIONS, USUAL_RANK * self.nodes)
        if self.dimensions > most:
            raise InvalidGraph(
                f"the shapes of the model's values have up to {self.dimensions} dimensions "
                f"altogether, at most {most} are accepted. Look for an input of a very high rank, "
                "and for nodes that raise the rank again and again, such as Unsqueeze, Gather and "
                f"Reshape: no value can have a rank over {USUAL_RANK}"
            )

    def may_propagate(self) -> bool:
        """Whether inference may follow the elements of shapes."""
        return self.elements <= max(MOST_ELEMENTS, USUAL_RANK * self.nodes)

    def note(self, name: str, rank: int, length: int = 0) -> None:
        """Another value; of two in sibling bodies with one name the larger counts."""
        rank, length = min(rank, _CEILING), min(length, _CEILING)
        self.dimensions += rank
        self.elements += length
        self.ranks[name] = max(rank, self.ranks.get(name, 0))
        if length:
            self.lengths[name] = max(length, self.lengths.get(name, 0))


def bounds_of(graph: GraphDef) -> Bounds:
    """Bounds for a graph and its bodies, in time that grows with their nodes."""
    bounds = Bounds()
    _walk(graph, bounds)
    return bounds


def _walk(graph: GraphDef, bounds: Bounds) -> None:
    declared = declared_types(graph)
    for info in graph.inputs:
        bounds.note(info.name, max(_declared_rank(info.type), bounds.ranks.get(info.name, 0)))
    for name, tensor in graph.initializers.items():
        bounds.note(name, len(tensor.dims), _followed_length(tensor))
    for node in graph.nodes:
        bounds.nodes += 1
        ranks = _ranks_with_bodies(node, bounds) or (_rank(node, bounds),) * len(node.outputs)
        length = _length(node, bounds)
        for name, rank in zip(node.outputs, ranks, strict=True):
            if name:
                bounds.note(name, max(rank, _declared_rank(declared.get(name))), length)


def _ranks_with_bodies(node: Node, bounds: Bounds) -> tuple[int, ...]:
    """Ranks of the outputs of a node with bodies; empty for other nodes."""
    inside = bodies(node)
    ranks = [0] * len(node.outputs)
    for _, body in inside:
        # An If has no inputs for its bodies; those of other operators are in the node's order.
        fed = [bounds.ranks.get(name, 0) for name in node.inputs]
        if node.op_type == "Loop":
            fed[:_LOOP_INPUTS] = [0] * min(_LOOP_INPUTS, len(fed))
        for info, rank in zip(body.inputs, fed, strict=False):
            bounds.ranks[info.name] = max(rank, bounds.ranks.get(info.name, 0))
        _walk(body, bounds)
        made = [bounds.ranks.get(info.name, 0) for info in body.outputs]
        made = made[1:] if node.op_type == "Loop" else made
        carried = len(ranks) if node.op_type == "If" else max(len(fed) - _LOOP_INPUTS, 0)
        for index, rank in enumerate(made[: len(ranks)]):
            ranks[index] = max(ranks[index], rank + (index >= carried or node.op_type == "Scan"))
    return tuple(ranks) if inside else ()


def _declared_rank(value_type: ValueType | None) -> int:
    if isinstance(value_type, (TensorType, SparseTensorType)) and value_type.shape is not None:
        return len(value_type.shape)
    return 0


def _followed_length(tensor: Tensor) -> int:
    """Elements of a constant that can be a shape."""
    if tensor.data_type not in (DataType.INT64, DataType.INT32) or len(tensor.dims) > 1:
        return 0
    return tensor.dims[0] if tensor.dims else 1


def _rank(node: Node, bounds: Bounds) -> int:
    rule = _RULES.get(node.op_type, _largest_rank)
    return max(rule(node, [bounds.ranks.get(name, 0) for name in node.inputs], bounds.lengths), 0)


def _length(node: Node, bounds: Bounds) -> int:
    """Elements of the outputs, where inference may follow them; else 0."""
    if node.op_type == "Concat":
        return sum(bounds.lengths.get(name, 0) for name in node.inputs)
    if node.op_type == "Shape":
        return max((bounds.ranks.get(name, 0) for name in node.inputs), default=0)
    if node.op_type == "Constant":
        value = _constant(node)
        return _followed_length(value) if isinstance(value, Tensor) else value
    like = _AS_LONG_AS.get(node.op_type)
    if like is None:
        return int(node.op_type == "Size")
    return max((bounds.lengths.get(name, 0) for name in node.inputs[like]), default=0)


def _constant(node: Node) -> Tensor | int:
    """The tensor of a Constant, or the number of integers that it lists."""
    for name, attribute in node.attributes.items():
        if isinstance(attribute.value, Tensor):
            return attribute.value
        if name in ("value_int", "value_ints"):
            return len(attribute.value) if isinstance(attribute.value, tuple) else 1
    return 0


def _largest_rank(_: Node, ranks: Sequence[int], __: Mapping[str, int]) -> int:
    return max(ranks, default=0)


def _constant_rank(node: Node, _: Sequence[int], __: Mapping[str, int]) -> int:
    value = _constant(node)
    return len(value.dims) if isinstance(value, Tensor) else 1


def _axes(node: Node, lengths: Mapping[str, int]) -> int:
    """How many axes a node names, in an attribute or a constant; 0 if that is not known."""
    attribute = node.attributes.get("axes")
    if attribute is not None:
        return len(attribute.value) if isinstance(attribute.value, tuple) else 0
    return lengths.get(node.inputs[1], 0) if len(node.inputs) > 1 else 0


def _unsqueezed_rank(node: Node, ranks: Sequence[int], lengths: Mapping[str, int]) -> int:
    return sum(ranks[:1]) + _axes(node, lengths)


def _squeezed_rank(node: Node, ranks: Sequence[int], lengths: Mapping[str, int]) -> int:
    return sum(ranks[:1]) - _axes(node, lengths)


def _reduced_rank(node: Node, ranks: Sequence[int], lengths: Mapping[str, int]) -> int:
    keep = node.attributes.get("keepdims")
    gone = 0 if keep is None or keep.value else _axes(node, lengths) or "axis" in node.attributes
    return sum(ranks[:1]) - gone


def _gathered_rank(_: Node, ranks: Sequence[int], __: Mapping[str, int]) -> int:
    return sum(ranks[:2]) - 1


def _one_more(_: Node, ranks: Sequence[int], __: Mapping[str, int]) -> int:
    return max(ranks, default=0) + 1


def _shaped_rank(node: Node, ranks: Sequence[int], lengths: Mapping[str, int]) -> int:
    """By the shape that is an attribute or the last input."""
    attribute = node.attributes.get("shape")
    if attribute is not None:
        return len(attribute.value) if isinstance(attribute.value, tuple) else 0
    length = lengths.get(node.inputs[-1], 0) if node.inputs else 0
    return max(length, *ranks[:1]) if node.op_type == "Expand" and ranks else length


def _einsum(node: Node, ranks: Sequence[int], _: Mapping[str, int]) -> int:
    """Labels of the result; an ellipsis stands for what labels leave of an input's rank."""
    attribute = node.attributes.get("equation")
    equation = attribute.value if attribute is not None else b""
    if not isinstance(equation, (bytes, memoryview)):
        return 0
    terms, arrow, result = bytes(equation).replace(b" ", b"").partition(b"->")
    if not arrow:
        result = terms
    labels = len(result.replace(b".", b""))
    if b"..." not in terms:
        return labels
    own = [len(term.replace(b".", b"")) for term in terms.split(b",")]
    return labels + max((rank - n for rank, n in zip(ranks, own, strict=False)), default=0)


_RULES: Mapping[str, Rule] = {
    "Constant": _constant_rank,
    "Unsqueeze": _unsqueezed_rank,
    "Squeeze": _squeezed_rank,
    "Gather": _gathered_rank,
    "GatherND": _gathered_rank,
    "Einsum": _einsum,
    **dict.fromkeys(("Shape", "NonZero", "Flatten"), lambda *_: 2),
    **dict.fromkeys(("OneHot", "STFT", "LSTM", "GRU", "RNN"), _one_more),
    **dict.fromkeys(("ConcatFromSequence", "StringSplit"), _one_more),
    **dict.fromkeys(("Reshape", "Expand", "ConstantOfShape", "AffineGrid"), _shaped_rank),
    **dict.fromkeys(("RandomNormal", "RandomUniform"), _shaped_rank),
    **dict.fromkeys(
        ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"), _reduced_rank
    ),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"), _reduced_rank),
    **dict.fromkeys(("ReduceSumSquare", "ArgMax", "ArgMin"), _reduced_rank),
}
