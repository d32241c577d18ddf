"""Comparisons of sizes with one result in every run, where the condition of an If depends on them.

Functions that PyTorch scripts compare sizes: DeBERTa's attention asks whether there are as many
queries as keys. Both have the length of the input, whatever it is. `squeeze(axis)`, as in
`torch.nn.MultiheadAttention`, becomes an If that asks whether the size of the axis is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import TensorType
from ort_lite.model.graph import declared_types
from ort_lite.model.size_trace import MOST_FOLLOWED, SizeTrace
from ort_lite.model.tensor_values import from_numpy
from ort_lite.transforms.known_shapes import sure_values
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Dim, GraphDef, Model, Node, Tensor, ValueInfo, ValueType
    from ort_lite.model.shape_inference import Inferred
    from ort_lite.model.size_trace import Size
    from ort_lite.transforms.known_shapes import InferTypes

NAME = "EqualSizes"
_LOGIC = frozenset(("And", "Cast", "Identity", "Not", "Or", "Reshape", "Squeeze", "Unsqueeze"))
"""Operators between a comparison and a condition."""


def settle_equal_sizes(
    model: Model, infer: InferTypes, *, constant_inputs: bool = False
) -> tuple[Inferred | None, int]:
    """`model` with a constant for each such comparison (ONNX Equal-7 to Equal-19), their number.

    None and 0 where there is none.

    Only in the main graph, and only where an If there depends on it. Inputs with dimensions of one
    name may differ in a run, as in onnxruntime, so that names prove nothing.

    Args:
        model: With its types inferred.
        infer: onnx's inference; called if there is such a comparison.
        constant_inputs: As for `inline_constant_ifs`.
    """
    graph = model.graph
    makers = {name: node for node in graph.nodes for name in node.outputs if name}
    inputs = frozenset() if constant_inputs else {info.name for info in graph.inputs}
    constants = {n: tensor for n, tensor in graph.initializers.items() if n not in inputs}
    types: dict[str, ValueType] = {}

    def certain_shape(name: str) -> tuple[Dim, ...] | None:
        value_type = types.get(name)
        return value_type.shape if isinstance(value_type, TensorType) else None

    trace = SizeTrace(makers.get, constants.get, certain_shape)
    nodes = [
        node
        for node in _comparisons(graph, makers)
        if any(map(trace.reads_size, node.inputs))
        and all(trace.reads_size(name) or trace.number(name) is not None for name in node.inputs)
    ]
    inferred = infer(_with_distinct_sizes(model)) if nodes else None
    certain = None if inferred is None else inferred.certain
    if inferred is None or certain is None:
        return None, 0
    sure = sure_values(certain)
    types |= {name: kind for name, kind in declared_types(certain).items() if name in sure}
    settled = {}
    for node in nodes:
        result = _compare(*(_size_or_number(trace, name) for name in node.inputs))
        shape = certain_shape(node.outputs[0])
        if result is not None and shape is not None and {*shape} <= {1}:
            name = node.outputs[0]
            settled[name] = from_numpy(np.full([1 for _ in shape], fill_value=result), name)
    if not settled:
        return None, 0
    return replace(inferred, model=_with_constants(model, settled)), len(settled)


def _size_or_number(trace: SizeTrace, name: str) -> Size:
    number = trace.number(name)
    return trace.size(name) if number is None else number


def _compare(left: Size, right: Size) -> bool | None:
    """Whether two sizes are equal; None if that may differ from run to run."""
    if left is not None and left == right:
        return True
    return False if isinstance(left, int) and isinstance(right, int) else None


def _comparisons(graph: GraphDef, makers: Mapping[str, Node]) -> list[Node]:
    """The Equal nodes on which the conditions of Ifs depend, outputs of the graph left out."""
    kept = {info.name for info in graph.outputs}
    ifs = [node for node in graph.nodes if node.op_type == "If" and node.domain in ONNX_DOMAINS]
    waiting = [name for node in ifs for name in node.inputs]
    deciding: dict[str, Node] = {}
    while waiting and len(deciding) < MOST_FOLLOWED * len(ifs):
        node = makers.get(waiting.pop())
        if node is None or node.domain not in ONNX_DOMAINS or node.outputs[0] in deciding:
            continue
        deciding[node.outputs[0]] = node
        if node.op_type in _LOGIC:
            waiting += node.inputs
    return [node for name, node in deciding.items() if node.op_type == "Equal" and name not in kept]


def _with_distinct_sizes(model: Model) -> Model:
    """`model` with another symbol for each open dimension of its inputs."""

    def open_all(index: int, info: ValueInfo) -> ValueInfo:
        kind = info.type
        if not isinstance(kind, TensorType) or kind.shape is None:
            return info
        shape = tuple(
            dim if isinstance(dim, int) and dim >= 0 else f"size_{index}_{axis}"
            for axis, dim in enumerate(kind.shape)
        )
        return replace(info, type=TensorType(kind.elem_type, shape))

    inputs = tuple(open_all(index, info) for index, info in enumerate(model.graph.inputs))
    return replace(model, graph=replace(model.graph, inputs=inputs))


def _with_constants(model: Model, constants: Mapping[str, Tensor]) -> Model:
    """`model` with constants in place of the nodes that made these values."""
    graph = model.graph
    return replace(
        model,
        graph=replace(
            graph,
            nodes=tuple(node for node in graph.nodes if not constants.keys() & {*node.outputs}),
            initializers={**graph.initializers, **constants},
            value_info={n: info for n, info in graph.value_info.items() if n not in constants},
        ),
    )
