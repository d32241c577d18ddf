"""Which nodes have kernels: every candidate is lowered on trial, and its refusal is the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.opencl.compile.element_types import C_TYPES, HALF, HALF_OPERATORS
from eps.opencl.compile.inside_shapes import InsideShapes, sample_size
from eps.opencl.compile.ir import IrTensor, Unsupported
from eps.opencl.compile.lower_graph import GraphLowering
from ort_lite.ep import Capability, GraphView, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from ctx_formats.onnx_model import Dim
    from eps.opencl.target import Target
    from ort_lite.ep import Graph

MOST_DIMENSIONS = 32
"""Of a tensor: numpy's broadcasting of shapes takes no more."""


def capability(view: GraphView, target: Target, inside: InsideShapes | None = None) -> Capability:
    """Every candidate, supported or with the reason why not.

    Args:
        view: The graph and its candidates.
        target: The device.
        inside: Sizes to try nodes with, and what they make of the shapes inside the model; None
            for samples of the graph's own inputs.
    """
    graph = view.graph
    tracer = GraphLowering(graph, target.custom)
    inside = inside if inside is not None else InsideShapes(graph)
    for info in graph.inputs:
        _declare(tracer, graph, info.name, inside)
    supported, refused = set(), {}
    for index, node in enumerate(graph.nodes):
        if index in view.candidates:
            reason = _refusal(tracer, index, target)
            if reason:
                refused[index] = f"OpenCL: {reason}"
            else:
                supported.add(index)
                continue
        for name in node.outputs:
            _declare(tracer, graph, name, inside)
    leaving = _constants_for_others(graph, tracer, supported)
    if not leaving:
        return Capability(frozenset(supported), refused)
    rest = capability(GraphView(graph, view.candidates - leaving.keys()), target, inside)
    return Capability(rest.supported, {**rest.refused, **leaving})


def _constants_for_others(
    graph: Graph, tracer: GraphLowering, supported: AbstractSet[int]
) -> dict[int, str]:
    """Nodes that give others constants of types that kernels do not have, with the reason.

    Where only nodes here use such a constant it is folded into what they compute.
    """
    leaving: dict[int, str] = {}
    results = {info.name for info in graph.outputs}
    for index in sorted(supported, reverse=True):
        for name in filter(None, graph.nodes[index].outputs):
            value = tracer.values.get(name)
            if value is None or value.constant is None or value.dtype in C_TYPES:
                continue
            stays = all(i in supported and i not in leaving for i in graph.consumers(name))
            if name in results or not stays:
                leaving[index] = (
                    f"OpenCL: a constant of element type {value.dtype} leaves the device"
                )
    return leaving


def _refusal(tracer: GraphLowering, index: int, target: Target) -> str:
    """Why the node does not run here; "" if it does, and then its outputs are known."""
    graph, node = tracer.graph, tracer.graph.nodes[index]
    unknown = next((n for n in node.inputs if n and tracer.value(n) is None), "")
    if unknown:
        return _unknown(graph, unknown)
    problem = next(filter(None, (_rank_problem(tracer, name) for name in node.inputs)), "")
    if problem:
        return problem
    try:
        tracer.lower(index)
    except Unsupported as exc:
        return " ".join(str(exc).split())
    values = [tracer.values.get(name) for name in (*node.inputs, *node.outputs) if name]
    if (node.domain, node.op_type) in HALF_OPERATORS:
        values = [value for value in values if value is None or value.dtype != HALF]
    problem = next(filter(None, (_value_problem(v, target) for v in values)), "")
    problem = problem or next(filter(None, (_rank_problem(tracer, n) for n in node.outputs)), "")
    if problem:
        for name in node.outputs:
            tracer.values.pop(name, None)
    return problem


def _value_problem(value: IrTensor | None, target: Target) -> str:
    if value is None or value.constant is not None:
        return ""
    if value.dtype not in C_TYPES:
        return f"element type {value.dtype}"
    if value.dtype == "float64" and not target.double:
        return "this device has no float64"
    return "" if value.size else "a tensor without elements"


def _rank_problem(tracer: GraphLowering, name: str) -> str:
    value = tracer.value(name) if name else None
    if value is None or len(value.shape) <= MOST_DIMENSIONS:
        return ""
    return f"'{name}' has {len(value.shape)} dimensions, of at most {MOST_DIMENSIONS}"


def _declare(tracer: GraphLowering, graph: Graph, name: str, inside: InsideShapes) -> None:
    """Make a value known that another EP, or the caller, gives.

    A free dimension of an input stands for any size, so one is tried, and so is one that follows
    from them. A dimension that depends on data stays unknown: each run might need a program of
    its own.
    """
    declared = graph.type_of(name) if name else None
    if not isinstance(declared, TensorType) or name in tracer.values:
        return
    shape = _known_shape(declared, inside.sizes)
    if shape is None:
        shape = inside.find(name)
    if shape is None and declared.shape is not None and name in {i.name for i in graph.inputs}:
        sizes = (_size(dim, inside.sizes) for dim in declared.shape)
        shape = tuple(sample_size(axis) if n is None else n for axis, n in enumerate(sizes))
    if shape is not None:
        tracer.values[name] = IrTensor(shape, numpy_dtype(declared.elem_type).name)


def _known_shape(declared: TensorType, samples: Mapping[str, int]) -> tuple[int, ...] | None:
    """The declared shape, with a size for each named dimension; None if one stays unknown."""
    sizes = [_size(dim, samples) for dim in declared.shape or ()]
    known = tuple(n for n in sizes if n is not None)
    return known if declared.shape is not None and len(known) == len(sizes) else None


def _size(dim: Dim, samples: Mapping[str, int]) -> int | None:
    if isinstance(dim, int):
        return dim if dim >= 0 else None
    return samples.get(dim) if dim is not None else None


def _unknown(graph: Graph, name: str) -> str:
    declared = graph.type_of(name)
    if isinstance(declared, TensorType) and declared.shape is not None:
        return f"the free dimensions {list(declared.shape)} of '{name}' may depend on data"
    return f"the shape of '{name}' is not known before the run"
