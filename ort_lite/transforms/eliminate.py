"""Rules that take out nodes which only pass a value on; results stay the same, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType, Node
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.transforms.attributes import int_of, ints, ints_of
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ort_lite.transforms.mutable_graph import MutableGraph

PADS_BECAME_AN_INPUT = 11
SLICE_TOOK_INPUTS = 10
AXES_BECAME_AN_INPUT = 13
"""Of Squeeze and Unsqueeze."""
FAR_END = (1 << 31) - 1
"""From here on the end of a slice means "all of it", as exporters write it."""

_LOSSLESS = frozenset(
    {
        (DataType.FLOAT16, DataType.FLOAT),
        (DataType.FLOAT16, DataType.DOUBLE),
        (DataType.BFLOAT16, DataType.FLOAT),
        (DataType.BFLOAT16, DataType.DOUBLE),
        (DataType.FLOAT, DataType.DOUBLE),
        (DataType.INT8, DataType.INT16),
        (DataType.INT8, DataType.INT32),
        (DataType.INT8, DataType.INT64),
        (DataType.INT16, DataType.INT32),
        (DataType.INT16, DataType.INT64),
        (DataType.INT32, DataType.INT64),
        (DataType.UINT8, DataType.INT32),
        (DataType.UINT8, DataType.INT64),
        (DataType.BOOL, DataType.INT32),
        (DataType.BOOL, DataType.INT64),
    }
)
"""Casts that lose nothing, so that casting back is the identity."""


def _identity(graph: MutableGraph, index: int) -> bool:
    return graph.bypass(index, graph.node(index).inputs[0])


def _single(graph: MutableGraph, index: int) -> bool:
    """Concat, Sum, Max, Min, Mean of one input."""
    inputs = graph.node(index).inputs
    return len(inputs) == 1 and graph.bypass(index, inputs[0])


def _eliminate_neutral(graph: MutableGraph, index: int) -> bool:
    """x * 1, x / 1, x - 0 and x + 0.

    The sum of -0.0 and 0.0 is 0.0 by IEEE 754; here -0.0 stays, as in ONNX Runtime.
    """
    node = graph.node(index)
    left, right = node.inputs
    if _is_neutral(graph, node.op_type, left, right):
        return graph.bypass(index, left)
    if node.op_type in ("Add", "Mul") and _is_neutral(graph, node.op_type, right, left):
        return graph.bypass(index, right)
    return False


def _is_neutral(graph: MutableGraph, op_type: str, kept: str, other: str) -> bool:
    constant = graph.constant(other)
    shape = graph.shape(kept)
    if constant is None or shape is None or constant.data_type == DataType.STRING:
        return False
    if len(constant.dims) > len(shape) or any(dim != 1 for dim in constant.dims):
        return False
    array = graph.array(other)
    if array is None or array.dtype.kind not in "fiu":
        return False
    value = array.reshape(-1)[0]
    if op_type in ("Mul", "Div"):
        return bool(value == 1)
    return bool(value == 0)


def _cast(graph: MutableGraph, index: int) -> bool:
    """A cast to the type that is there already, or back over one that lost nothing."""
    node = graph.node(index)
    to, source = int_of(node, "to", 0), node.inputs[0]
    if graph.element_type(source) == to:
        return graph.bypass(index, source)
    made = graph.maker(source)
    if made is None or made[1].op_type != "Cast" or made[1].domain != node.domain:
        return False
    origin = made[1].inputs[0]
    came_from, through = graph.element_type(origin), int_of(made[1], "to", 0)
    if came_from != to or (came_from, through) not in _LOSSLESS:
        return False
    return graph.bypass(index, origin)


def _transpose(graph: MutableGraph, index: int) -> bool:
    """A permutation that leaves every axis in place; two in a row become one."""
    node = graph.node(index)
    perm = ints_of(node, "perm")
    if perm is None:
        return False
    if perm == tuple(range(len(perm))):
        return graph.bypass(index, node.inputs[0])
    made = graph.maker(node.inputs[0])
    if made is None or made[1].op_type != "Transpose" or made[1].domain != node.domain:
        return False
    first = ints_of(made[1], "perm")
    if first is None or len(first) != len(perm):
        return False
    both = ints("perm", [first[axis] for axis in perm])
    graph.replace(index, replace(node, inputs=made[1].inputs, attributes=both))
    return True


def _squeeze(graph: MutableGraph, index: int) -> bool:
    """A Squeeze of the axes that the Unsqueeze before it has put in, as Paddle's assignments."""
    node = graph.node(index)
    made = graph.maker(node.inputs[0])
    if made is None or made[1].op_type != "Unsqueeze" or made[1].domain != node.domain:
        return False
    axes, shape = _axes(graph, node), graph.shape(node.inputs[0])
    inserted = _axes(graph, made[1])
    if axes is None or inserted is None:
        return False
    if sorted(axes) != sorted(inserted):
        if shape is None:
            return False
        rank = len(shape)
        if {axis % rank for axis in axes} != {axis % rank for axis in inserted}:
            return False
    source = made[1].inputs[0]
    if not graph.bypass(index, source):
        graph.replace(index, Node("Identity", (source,), node.outputs, name=node.name))
    return True


def _axes(graph: MutableGraph, node: Node) -> tuple[int, ...] | None:
    """Axes of a Squeeze or an Unsqueeze; None if they are computed, or not said."""
    if graph.opset < AXES_BECAME_AN_INPUT:
        return ints_of(node, "axes")
    axes = graph.array(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if axes is None else tuple(int(axis) for axis in axes.reshape(-1))


def _slice(graph: MutableGraph, index: int) -> bool:
    """A slice from the beginning to the end of any axes."""
    node = graph.node(index)
    if graph.opset < SLICE_TOOK_INPUTS or len(node.inputs) < 3:
        return False
    starts, ends = graph.array(node.inputs[1]), graph.array(node.inputs[2])
    if starts is None or ends is None or starts.any() or (ends < FAR_END).any():
        return False
    if len(node.inputs) > 4 and node.inputs[4]:
        steps = graph.array(node.inputs[4])
        if steps is None or (steps != 1).any():
            return False
    return graph.bypass(index, node.inputs[0])


def _pad(graph: MutableGraph, index: int) -> bool:
    """Remove a Pad that adds nothing."""
    node = graph.node(index)
    if graph.opset >= PADS_BECAME_AN_INPUT:
        pads = graph.array(node.inputs[1]) if len(node.inputs) > 1 else None
        nothing = pads is not None and not pads.any()
    else:
        nothing = not any(ints_of(node, "pads") or (1,))
    return nothing and graph.bypass(index, node.inputs[0])


def _expand(graph: MutableGraph, index: int) -> bool:
    """Broadcasting to a shape of ones that has no more dimensions than there are."""
    node = graph.node(index)
    shape, target = graph.shape(node.inputs[0]), graph.array(node.inputs[1])
    if shape is None or target is None or target.size > len(shape) or (target != 1).any():
        return False
    return graph.bypass(index, node.inputs[0])


def _shape(graph: MutableGraph, index: int) -> bool:
    """The shape of a constant, or of a value whose shape follows from the graph inputs'."""
    node = graph.node(index)
    source, result = node.inputs[0], node.outputs[0]
    dims = None if graph.is_pinned(result) else graph.certain_shape(source)
    if dims is None:
        return False
    rank = len(dims)
    start, end = int_of(node, "start", 0), int_of(node, "end", rank)
    kept = dims[clamp(start, rank) : clamp(end, rank)]
    name = graph.add_constant(f"{result}/dims", np.array(kept, numpy_dtype(DataType.INT64)))
    return graph.bypass(index, name)


def clamp(axis: int, rank: int) -> int:
    """ONNX Shape-15: negative counts from the end, and out of range is the nearest end."""
    return min(max(axis + rank if axis < 0 else axis, 0), rank)


RULES: tuple[RewriteRule, ...] = (
    RewriteRule(name="EliminateIdentity", operators=frozenset(("Identity",)), rewrite=_identity),
    RewriteRule(
        name="EliminateSingleInput",
        operators=frozenset(("Concat", "Sum", "Max", "Min", "Mean")),
        rewrite=_single,
    ),
    RewriteRule(
        name="NoopElimination",
        operators=frozenset(("Add", "Sub", "Mul", "Div")),
        rewrite=_eliminate_neutral,
    ),
    RewriteRule(name="CastElimination", operators=frozenset(("Cast",)), rewrite=_cast),
    RewriteRule(name="TransposeOptimizer", operators=frozenset(("Transpose",)), rewrite=_transpose),
    RewriteRule(name="SqueezeElimination", operators=frozenset(("Squeeze",)), rewrite=_squeeze),
    RewriteRule(name="EliminateSlice", operators=frozenset(("Slice",)), rewrite=_slice),
    RewriteRule(name="PadElimination", operators=frozenset(("Pad",)), rewrite=_pad),
    RewriteRule(name="ExpandElimination", operators=frozenset(("Expand",)), rewrite=_expand),
    RewriteRule(name="ShapeToInitializer", operators=frozenset(("Shape",)), rewrite=_shape),
)
