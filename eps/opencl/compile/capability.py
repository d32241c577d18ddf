"""Which nodes have kernels: every candidate is lowered on trial, and its refusal is the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.ir import IrTensor, Unsupported
from eps.opencl.compile.lower_graph import GraphLowering
from ort_lite.ep import Capability, GraphView, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from ctx_formats.onnx_model import Dim
    from eps.opencl.target import Target
    from ort_lite.ep import Graph


def capability(
    view: GraphView, target: Target, known: Mapping[str, int] | None = None
) -> Capability:
    """Every candidate, supported or with the reason why not.

    Args:
        view: The graph and its candidates.
        target: The device.
        known: Sizes by dimension name that runs will have, to try nodes with.
    """
    graph = view.graph
    tracer = GraphLowering(graph, target.custom)
    sizes = {**sample_sizes(graph), **(known or {})}
    for info in graph.inputs:
        _declare(tracer, graph, info.name, sizes)
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
            _declare(tracer, graph, name, sizes)
    leaving = _constants_for_others(graph, tracer, supported)
    if not leaving:
        return Capability(frozenset(supported), refused)
    rest = capability(GraphView(graph, view.candidates - leaving.keys()), target, known)
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
    try:
        tracer.lower(index)
    except Unsupported as exc:
        return " ".join(str(exc).split())
    values = [tracer.values.get(name) for name in (*node.inputs, *node.outputs) if name]
    problem = next(filter(None, (_value_problem(v, target) for v in values)), "")
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


def _declare(tracer: GraphLowering, graph: Graph, name: str, samples: Mapping[str, int]) -> None:
    """Make a value known that another EP, or the caller, gives.

    A free dimension of an input stands for any size, so one is tried; one that is named
    nowhere among the inputs depends on data, and each run might need a program of its own.
    """
    declared = graph.type_of(name) if name else None
    if not isinstance(declared, TensorType) or declared.shape is None or name in tracer.values:
        return
    is_graph_input = any(info.name == name for info in graph.inputs)
    sizes = [
        _size(n, axis, samples, is_graph_input=is_graph_input)
        for axis, n in enumerate(declared.shape)
    ]
    known = tuple(n for n in sizes if n is not None)
    if len(known) == len(sizes):
        tracer.values[name] = IrTensor(known, numpy_dtype(declared.elem_type).name)


def _size(dim: Dim, axis: int, samples: Mapping[str, int], *, is_graph_input: bool) -> int | None:
    if isinstance(dim, int) and dim >= 0:
        return dim
    if isinstance(dim, str) and dim in samples:
        return samples[dim]
    return _sample(axis) if is_graph_input else None


def _sample(axis: int) -> int:
    """A size on trial: a batch of more than one; rows, columns and words that halve often."""
    return 2 if axis == 0 else 64


def sample_sizes(graph: Graph) -> dict[str, int]:
    """A size for each named dimension of the inputs."""
    sizes: dict[str, int] = {}
    for info in graph.inputs:
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str):
                sizes.setdefault(dim, _sample(axis))
    return sizes


def _unknown(graph: Graph, name: str) -> str:
    declared = graph.type_of(name)
    if isinstance(declared, TensorType) and declared.shape is not None:
        return f"'{name}' has free dimensions {list(declared.shape)}"
    return f"the shape of '{name}' is not known before the run"
