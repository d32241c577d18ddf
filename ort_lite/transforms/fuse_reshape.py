"""Reshapes to sizes that their inputs have: constants with zeros in place of shape arithmetic.

PyTorch writes `x.view(x.size(0), x.size(1), 12, 64)` as two chains of Shape, Gather and Unsqueeze
and a Concat. A zero in the shape of a Reshape takes the input's size at its place (ONNX Reshape-5
to Reshape-25 with `allowzero` 0), so [0, 0, 12, 64] says the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import TensorType
from ort_lite.model.graph import declared_types
from ort_lite.model.size_trace import SizeTrace
from ort_lite.model.tensor_values import from_numpy
from ort_lite.transforms.known_shapes import sure_values
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from ctx_formats.onnx_model import Dim, GraphDef, Model, Node, Tensor
    from ort_lite.model.size_trace import Size

NAME = "ReshapeFusion"
FIRST_WITH_SHAPE = 5
"""Opset from which the shape of a Reshape is an input."""
COPIED = 0


def fuse_reshapes(
    model: Model, certain: GraphDef, *, constant_inputs: bool = False
) -> tuple[Model, int]:
    """`model` with constant shapes where Reshapes of the main graph keep sizes, their number.

    Args:
        model: Its nodes sorted.
        certain: Its values with types that follow from its inputs; see `Inferred.certain`.
        constant_inputs: As for `inline_constant_ifs`.
    """
    if model.opset_imports.get("", 0) < FIRST_WITH_SHAPE:
        return model, 0
    if not any(map(_is_reshape, model.graph.nodes)):
        return model, 0
    trace = trace_sizes(model.graph, certain, constant_inputs=constant_inputs)
    names = {*model.graph.initializers, *(info.name for info in model.graph.inputs)}
    names.update(name for node in model.graph.nodes for name in node.outputs)
    shapes: dict[tuple[int, ...], str] = {}
    nodes = []
    count = 0
    for node in model.graph.nodes:
        computed = _is_reshape(node) and node.inputs[1] not in model.graph.initializers
        shape = _constant_shape(node, trace) if computed else None
        if shape is not None:
            count += 1
            if shape not in shapes:
                shapes[shape] = _free_name(shape, names)
            node = replace(node, inputs=(node.inputs[0], shapes[shape]))
        nodes.append(node)
    if not count:
        return model, 0
    tensors = {name: from_numpy(np.array(shape, np.int64), name) for shape, name in shapes.items()}
    initializers = {**model.graph.initializers, **tensors}
    return replace(
        model, graph=replace(model.graph, nodes=tuple(nodes), initializers=initializers)
    ), count


def trace_sizes(graph: GraphDef, certain: GraphDef, *, constant_inputs: bool) -> SizeTrace:
    """Sizes of a main graph. Symbols of inputs do not count: two inputs may share a name."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name}
    inputs = frozenset() if constant_inputs else {info.name for info in graph.inputs}
    constants: dict[str, Tensor] = {n: t for n, t in graph.initializers.items() if n not in inputs}
    sure, types = sure_values(certain), declared_types(certain)

    def shape(name: str) -> Sequence[Dim] | None:
        value_type = types.get(name) if name in sure else None
        dims = value_type.shape if isinstance(value_type, TensorType) else None
        return None if dims is None else [dim if isinstance(dim, int) else None for dim in dims]

    return SizeTrace(makers.get, constants.get, shape)


def _is_reshape(node: Node) -> bool:
    allows_zero = "allowzero" in node.attributes and node.attributes["allowzero"].value
    whole = len(node.inputs) > 1 and node.op_type == "Reshape"
    return whole and node.domain in ONNX_DOMAINS and not allows_zero


def _constant_shape(node: Node, trace: SizeTrace) -> tuple[int, ...] | None:
    """The shape of a Reshape with zeros for sizes that its input has at the same place."""
    targets = trace.target_sizes(node)
    if targets is None:
        return None
    sizes = trace.sizes(node.inputs[0])
    shape = [_entry(target, sizes[at : at + 1]) for at, target in enumerate(targets)]
    known = [number for number in shape if number is not None]
    return tuple(known) if len(known) == len(shape) else None


def _entry(target: Size, size: Sequence[Size]) -> int | None:
    if isinstance(target, int):
        return target
    return COPIED if target is not None and target in size else None


def _free_name(shape: tuple[int, ...], names: AbstractSet[str]) -> str:
    name = "reshape_to_" + "_".join(str(size).replace("-", "m") for size in shape)
    while name in names:
        name += "_"
    return name
