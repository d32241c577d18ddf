"""(x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis: LayerNormalization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, Node
from ort_lite.options import GraphOptimizationLevel
from ort_lite.transforms.attributes import floating, int_of, integer, ints_of
from ort_lite.transforms.patterns import find_maker, number, other_input, read_by
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ort_lite.transforms.mutable_graph import MutableGraph
    from ort_lite.transforms.patterns import Found


def _layer_norm(graph: MutableGraph, index: int) -> bool:
    """Fuse around the Sqrt of nine nodes; no other node may read the values between.

    The same operations in another order: within 4 eps of the largest result, relative to
    scale. Before opset 17 onnxruntime's LayerNormalization-1 of the same meaning is written.
    """
    root = graph.node(index)
    chain = _variance(graph, root)
    scaled = _match_scale(graph, root)
    if chain is None or scaled is None:
        return False
    epsilon, x, difference, before = chain
    scale, bias, after = scaled
    if after[0][1].inputs[0] != difference or not _fits(graph, x, scale, bias):
        return False
    inside = [*before, (index, root), *after[:-1]]
    if not _only_inside(graph, inside, after):
        return False
    last, final = after[-1]
    norm = Node(
        "LayerNormalization",
        (x, scale, bias),
        final.outputs,
        name=final.name,
        attributes={**integer("axis", -1), **floating("epsilon", epsilon)},
    )
    graph.replace(last, norm)
    for at in sorted((at for at, _ in inside), reverse=True):
        graph.remove(at)
    return True


def _variance(graph: MutableGraph, root: Node) -> tuple[float, str, str, list[Found]] | None:
    """epsilon, x, the name of x - mean, and the nodes from mean to variance + epsilon."""
    added = find_maker(graph, root.inputs[0], "Add")
    if added is None:
        return None
    for variance, name in (added[1].inputs, added[1].inputs[::-1]):
        epsilon, mean = number(graph, name), find_maker(graph, variance, "ReduceMean")
        if epsilon is None or mean is None or not _over_last(graph, mean[1]):
            continue
        square = find_maker(graph, mean[1].inputs[0], "Pow", "Mul")
        difference = _match_square(graph, square[1]) if square is not None else None
        shifted = find_maker(graph, difference, "Sub") if difference is not None else None
        if square is None or difference is None or shifted is None:
            continue
        x, center = (*shifted[1].inputs, "", "")[:2]
        middle = find_maker(graph, center, "ReduceMean")
        if middle is None or middle[1].inputs[0] != x or not _over_last(graph, middle[1]):
            continue
        return epsilon, x, difference, [middle, shifted, square, mean, added]
    return None


def _match_square(graph: MutableGraph, node: Node) -> str | None:
    left, right = (*node.inputs, "", "")[:2]
    if node.op_type == "Mul":
        return left if left == right else None
    return left if number(graph, right) == 2 else None


def _over_last(graph: MutableGraph, node: Node) -> bool:
    """Whether a ReduceMean is over the last axis alone and keeps it as 1."""
    axes = ints_of(node, "axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1]:
        array = graph.array(node.inputs[1])
        axes = None if array is None else tuple(array.reshape(-1).tolist())
    shape = graph.shape(node.inputs[0])
    last = (-1,) if shape is None else (-1, len(shape) - 1)
    return (
        axes is not None and len(axes) == 1 and axes[0] in last and int_of(node, "keepdims", 1) == 1
    )


def _match_scale(graph: MutableGraph, root: Node) -> tuple[str, str, list[Found]] | None:
    """Scale, bias, and the Div, Mul and Add that follow the root."""
    divided = read_by(graph, root.outputs[0], "Div")
    if divided is None or divided[1].inputs[1] != root.outputs[0]:
        return None
    times = read_by(graph, divided[1].outputs[0], "Mul")
    scale = other_input(times[1], divided[1].outputs[0]) if times is not None else None
    plus = read_by(graph, times[1].outputs[0], "Add") if times is not None else None
    if times is None or scale is None or plus is None:
        return None
    bias = other_input(plus[1], times[1].outputs[0])
    return None if bias is None else (scale, bias, [divided, times, plus])


def _fits(graph: MutableGraph, x: str, scale: str, bias: str) -> bool:
    """float32, and constants with one element for each on the last axis."""
    shape = graph.shape(x)
    if not shape or graph.element_type(x) != DataType.FLOAT:
        return False
    for name in (scale, bias):
        constant = graph.constant(name)
        if constant is None or constant.data_type != DataType.FLOAT:
            return False
        if constant.dims != (shape[-1],):
            return False
    return True


def _only_inside(graph: MutableGraph, inside: list[Found], after: list[Found]) -> bool:
    """Whether what the nodes make is read by these nodes alone."""
    numbers = {at for at, _ in (*inside, *after)}
    return all(
        not graph.is_pinned(name) and numbers.issuperset(graph.users(name))
        for _, node in inside
        for name in node.outputs
    )


LAYER_NORM = RewriteRule(
    name="LayerNormFusion",
    operators=frozenset(("Sqrt",)),
    rewrite=_layer_norm,
    level=GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
)
