"""Estimates of a node's work from its operator and the shapes that inference found.

Unknown sizes are assumed, so that the estimate of a model is the same on every machine and in every
run. An estimate separates what a matrix product does from what a copy does, since devices differ in
the one more than in the other.
"""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, TypeGuard

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.onnx_model import TensorType
from ctx_formats.tensor_size import element_bits
from ort_lite.transforms.subexpressions import NONDETERMINISTIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import Node
    from ort_lite.ep.placement_costs import PlacementCosts
    from ort_lite.model.graph import Graph

ASSUMED_FIRST = 1
"""Size of a free first dimension, which is a batch in most models."""
ASSUMED_SIZE = 32
"""Size of another free dimension: a short text, a feature map far down in a network."""
ASSUMED_ELEMENTS = 64
"""Elements of a tensor of unknown rank: most are shapes and states."""
ASSUMED_BITS = 32
RATE_OF_STEPS = 1 / 8
"""Of the rate of large products, where a step multiplies a few rows with weights."""
_LAYOUT = frozenset(
    ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Shape", "Size", "Constant")
)
"""Operators that touch no elements."""
_MATH = frozenset(
    (
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan"),
        *("Elu", "Erf", "Exp", "Log", "LogSoftmax", "Mish", "Pow", "Selu", "Sigmoid", "Silu"),
        *("Softmax", "Softplus", "Swish", "Tanh", "Gelu", "FastGelu", "QuickGelu", "BiasGelu"),
    )
)
_CALLS: Mapping[str, int] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "FusedConv"), 7),
    **dict.fromkeys(("MaxPool", "AveragePool", "Resize", "Pad", "GridSample"), 6),
    **dict.fromkeys(("LayerNormalization", "DynamicQuantizeLinear", "BatchNormalization"), 5),
    **dict.fromkeys(("QLinearMatMul", "QGemm", "MatMulInteger", "Softmax", "LogSoftmax"), 3),
    **dict.fromkeys(("Slice", "Concat", "Split", "Gather", "Where"), 2),
    **dict.fromkeys(("GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND"), 14),
    **dict.fromkeys(("Expand", "Tile"), 9),
    **dict.fromkeys(("ArgMax", "ArgMin", "Range"), 4),
    "OneHot": 20,
    "TopK": 30,
}
"""Calls of a library of arrays that an operator takes, for those that take more than one."""
_RECURRENT = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}
"""Gates by operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWork:
    """A node's work, on any device.

    Attributes:
        calls: Calls of a kernel library, at least 1.
        steps: Sequential steps of a recurrence.
        rows: Of a step, each of a sequence of its own.
        ways: Directions of a recurrence, whose steps `steps` counts together.
        products: Multiplications and additions of matrix products and convolutions.
        stepped: Those of `products` that sequential steps make, each step a few of them.
        traffic: Bytes read and written, weights included.
        unfolded: Bytes that a convolution as a matrix product copies first.
        math: Exponentials and the like.
        free: Whether shapes of outputs are not known before the run.
    """

    calls: int = 1
    steps: int = 0
    rows: int = 1
    ways: int = 1
    products: int = 0
    stepped: int = 0
    traffic: int = 0
    unfolded: int = 0
    math: int = 0
    free: bool = False

    def microseconds(self, costs: PlacementCosts) -> float:
        """Time on a device, launch and crossings not included."""
        calls, copied = (self.calls, self.unfolded) if costs.composes else (1, 0)
        return (
            costs.call * calls * (costs.free_factor if self.free else 1)
            + costs.step * self.steps
            + self.products / costs.product_rate
            + (self.traffic + copied) / costs.stream_rate
            + self.math / costs.math_rate
        )


def estimate_work(graph: Graph, index: int) -> NodeWork:
    """The work of one run of a node; bodies are not counted."""
    node = graph.nodes[index]
    calls = _CALLS.get(node.op_type, 1)
    free = any(is_free(graph, name) for name in node.outputs if name)
    if node.op_type in _LAYOUT:
        return NodeWork(calls=calls, free=free)
    traffic = sum(value_bytes(graph, name) for name in (*node.inputs, *node.outputs) if name)
    work = NodeWork(calls=calls, traffic=traffic, free=free)
    if node.op_type in _RECURRENT:
        return _recurrent(graph, index, work)
    out = _elements(graph, node.outputs[0]) if node.outputs and node.outputs[0] else 0
    special = _PRODUCTS.get(node.op_type)
    if special is not None:
        products, unfolded = special(graph, index, out)
        return replace(work, products=products, unfolded=unfolded)
    return replace(work, math=out) if node.op_type in _MATH else work


def is_heavy(node: Node) -> bool:
    """Whether a node multiplies matrices, once or in steps."""
    return node.op_type in _PRODUCTS or node.op_type in _RECURRENT


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Microseconds of one run on a device, launch and crossings not included.

    Attributes:
        shared: What several threads can share.
        calls: Of `shared`, calls of kernels, which threads do not share.
        sequential: Of the steps of recurrences, which wait for each other.
        largest_step: Multiplications and additions of the largest step, 0 without any.
        largest_row: The same of the largest step for one row: what grows with the weights alone.
        free: Whether the shape of some value is not known before the run; sizes are assumed then.
    """

    shared: float
    calls: float
    sequential: float
    largest_step: int
    largest_row: int
    free: bool


def estimate_run(graph: Graph, costs: PlacementCosts, most: float = inf) -> RunEstimate | None:
    """The work of one run of a graph on a device.

    None if there are bodies. In a graph without recurrences also if the shape of some value is not
    known before the run, or if the work is more than `most` microseconds.
    """
    has_steps = any(node.op_type in _RECURRENT for node in graph.nodes)
    free = any(is_free(graph, info.name) for info in graph.inputs)
    if free and not has_steps:
        return None
    folded = find_folded(graph)
    slow = replace(costs, product_rate=costs.product_rate * RATE_OF_STEPS)
    shared = calls = sequential = 0.0
    largest_step = largest_row = 0
    for index in range(len(graph.nodes)):
        if index in folded:
            continue
        work = estimate_work(graph, index)
        free = free or work.free
        if graph.bodies(index) or (not has_steps and (free or shared > most)):
            return None
        together, steps = split_steps(work)
        shared += together.microseconds(costs)
        calls += NodeWork(calls=together.calls, free=together.free).microseconds(costs)
        if steps is not None:
            sequential += steps.microseconds(slow)
            step = work.stepped // work.steps
            largest_step = max(largest_step, step)
            largest_row = max(largest_row, step // max(1, work.rows))
    return RunEstimate(shared, calls, sequential, largest_step, largest_row, free)


def split_steps(work: NodeWork) -> tuple[NodeWork, NodeWork | None]:
    """Work that threads can share, and that of sequential steps."""
    if not work.steps:
        return work, None
    shared = replace(work, steps=0, stepped=0, products=work.products - work.stepped, math=0)
    return shared, replace(work, calls=0, products=work.stepped, traffic=0)


def find_folded(graph: Graph) -> frozenset[int]:
    """Nodes whose results are constants: execution providers compute them when they compile."""
    folded: set[int] = set()
    constants: set[str] = set()
    for index, node in enumerate(graph.nodes):
        if node.op_type in NONDETERMINISTIC or graph.bodies(index):
            continue
        if all(not n or n in constants or graph.constant(n) is not None for n in node.inputs):
            folded.add(index)
            constants.update(node.outputs)
    return frozenset(folded)


def is_free(graph: Graph, name: str) -> bool:
    """Whether a value's shape is not known before the run."""
    if graph.constant(name) is not None:
        return False
    value_type = graph.type_of(name)
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    return shape is None or not all(_is_size(dim) for dim in shape)


def shape_of(graph: Graph, name: str) -> tuple[int, ...] | None:
    """Sizes of a value, assumed where they are free; None where its rank is unknown."""
    constant = graph.constant(name)
    if constant is not None:
        return tuple(constant.dims)
    value_type = graph.type_of(name)
    if not isinstance(value_type, TensorType) or value_type.shape is None:
        return None
    return tuple(
        dim if _is_size(dim) else ASSUMED_SIZE if place else ASSUMED_FIRST
        for place, dim in enumerate(value_type.shape)
    )


def _is_size(dim: object) -> TypeGuard[int]:
    """Whether a dimension is a size: some models write -1 for a free one."""
    return isinstance(dim, int) and dim >= 0


def value_bytes(graph: Graph, name: str) -> int:
    """Bytes of a value, assumed where its shape is free or its type unknown."""
    constant, value_type = graph.constant(name), graph.type_of(name)
    if constant is not None:
        bits = _bits(constant.data_type)
    else:
        bits = _bits(value_type.elem_type) if isinstance(value_type, TensorType) else ASSUMED_BITS
    return -(-_elements(graph, name) * bits // 8)


def _bits(data_type: int) -> int:
    try:
        return element_bits(data_type)
    except FormatError:  # strings
        return ASSUMED_BITS


def _elements(graph: Graph, name: str) -> int:
    shape = shape_of(graph, name)
    return ASSUMED_ELEMENTS if shape is None else prod(shape)


def _input_shape(graph: Graph, index: int, place: int) -> tuple[int, ...]:
    inputs = graph.nodes[index].inputs
    name = inputs[place] if place < len(inputs) else ""
    return (shape_of(graph, name) if name else None) or ()


def _matrix_product(graph: Graph, index: int, out: int) -> tuple[int, int]:
    left = _input_shape(graph, index, 0)
    return 2 * out * (left[-1] if left else ASSUMED_SIZE), 0


def _gemm(graph: Graph, index: int, out: int) -> tuple[int, int]:
    left = _input_shape(graph, index, 0)
    transposed = graph.nodes[index].attributes.get("transA")
    depth = 0 if transposed is not None and transposed.value == 1 else -1
    return 2 * out * (left[depth] if left else ASSUMED_SIZE), 0


def _convolution(weight_place: int) -> Callable[[Graph, int, int], tuple[int, int]]:
    def work(graph: Graph, index: int, out: int) -> tuple[int, int]:
        weight = _input_shape(graph, index, weight_place)
        if len(weight) < 3:  # a convolution has [outputs, inputs, *window]
            return 2 * out * ASSUMED_SIZE, 0
        each, window = prod(weight[1:]), prod(weight[2:])
        group = graph.nodes[index].attributes.get("group")
        groups = group.value if group is not None and isinstance(group.value, int) else 1
        places = out // max(1, weight[0])
        copied = places * each * max(1, groups) * 4 if window > 1 else 0
        return 2 * out * each, copied

    return work


def _transposed_convolution(graph: Graph, index: int, out: int) -> tuple[int, int]:
    first = _input_shape(graph, index, 0)
    weight = _input_shape(graph, index, 1)
    return 2 * prod(first) * prod(weight[1:]), out * 4


_PRODUCTS: Mapping[str, Callable[[Graph, int, int], tuple[int, int]]] = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul"), _matrix_product),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), _matrix_product),
    **dict.fromkeys(("Gemm", "QGemm"), _gemm),
    **dict.fromkeys(("Conv", "ConvInteger", "FusedConv"), _convolution(1)),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _transposed_convolution,
}
"""Operators of products: operations, and bytes that are unfolded first."""


def _recurrent(graph: Graph, index: int, work: NodeWork) -> NodeWork:
    node = graph.nodes[index]
    gates = _RECURRENT[node.op_type]
    first = _input_shape(graph, index, 0)
    steps, rows, columns = ASSUMED_SIZE, ASSUMED_FIRST, ASSUMED_SIZE
    if len(first) == 3:  # [steps, batch, values]: the batch is the second dimension
        columns = first[2]
        steps = first[0] if _knows(graph, node.inputs[0], 0) else steps
        rows = first[1] if _knows(graph, node.inputs[0], 1) else rows
    size = node.attributes.get("hidden_size")
    hidden = size.value if size is not None and isinstance(size.value, int) else ASSUMED_SIZE
    direction = node.attributes.get("direction")
    ways = 2 if direction is not None and direction.value == b"bidirectional" else 1
    sums = 2 * steps * rows * ways * gates * hidden
    return replace(
        work,
        steps=steps * ways,
        rows=rows,
        ways=ways,
        products=sums * (columns + hidden),
        stepped=sums * hidden,
        math=steps * rows * ways * gates * hidden,
    )


def _knows(graph: Graph, name: str, axis: int) -> bool:
    value_type = graph.type_of(name)
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    return shape is not None and axis < len(shape) and _is_size(shape[axis])
