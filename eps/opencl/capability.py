"""Which nodes have kernels: every candidate is lowered on trial, and its refusal is the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.opencl.expression import C_TYPES
from eps.opencl.ir import Tensor, Unsupported
from eps.opencl.trace import Tracer
from ort_lite.execution_provider import Capability
from ort_lite.tensor_values import numpy_dtype

if TYPE_CHECKING:
    from eps.opencl.device import Target
    from ort_lite.execution_provider import GraphView
    from ort_lite.graph import Graph


def capability(view: GraphView, target: Target) -> Capability:
    """Every candidate, supported or with the reason why not."""
    graph = view.graph
    tracer = Tracer(graph)
    for info in graph.inputs:
        _declare(tracer, graph, info.name)
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
            _declare(tracer, graph, name)
    return Capability(frozenset(supported), refused)


def _refusal(tracer: Tracer, index: int, target: Target) -> str:
    """Why the node does not run here; "" if it does, and then its outputs are known."""
    graph, node = tracer.graph, tracer.graph.nodes[index]
    if graph.bodies(index):
        return "control flow runs through the session, its bodies are offered by themselves"
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


def _value_problem(value: Tensor | None, target: Target) -> str:
    if value is None or value.constant is not None:
        return ""
    if value.dtype not in C_TYPES:
        return f"element type {value.dtype}"
    if value.dtype == "float64" and not target.double:
        return "this device has no float64"
    return "" if value.size else "a tensor without elements"


def _declare(tracer: Tracer, graph: Graph, name: str) -> None:
    """Make a value known that another EP, or the caller, gives."""
    found = graph.type_of(name) if name else None
    if not isinstance(found, TensorType) or found.shape is None or name in tracer.values:
        return
    sizes = [n for n in found.shape if isinstance(n, int) and n >= 0]
    if len(sizes) == len(found.shape):
        tracer.values[name] = Tensor(tuple(sizes), numpy_dtype(found.elem_type).name)


def _unknown(graph: Graph, name: str) -> str:
    found = graph.type_of(name)
    if isinstance(found, TensorType) and found.shape is not None:
        return f"'{name}' has free dimensions {list(found.shape)}"
    return f"the shape of '{name}' is not known before the run"
