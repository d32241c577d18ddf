"""Runs one node on the CPU EP without a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import GraphDef, TensorType, ValueInfo
from eps.cpu.compile_graph import GraphCompiler
from eps.cpu.kernels import OwnKernels
from eps.cpu.resolve import Resolver
from ort_lite.ep.kernels import KernelRegistry
from ort_lite.model.graph import Graph
from ort_lite.model.tensor_values import onnx_data_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eps.cpu.plan import Plan
    from ort_lite.ep.kernels import KernelDef

OPSET = 28


def resolver(custom: Iterable[KernelDef] = ()) -> Resolver:
    """As the provider makes it."""
    users = KernelRegistry("users")
    for definition in custom:
        users.register(definition)
    return Resolver((users, OwnKernels("CPUExecutionProvider")))


def node_graph(
    op: str,
    inputs: list[Any],
    *,
    opset: int,
    outputs: int,
    domain: tuple[str, int],
    attributes: dict[str, Any],
) -> Graph:
    """A graph of one node whose inputs have the types of the given values, shapes unknown."""
    names = ["" if x is None else f"i{i}" for i, x in enumerate(inputs)]
    results = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="n", domain=domain[0], **attributes)
    bare = helper.make_model(helper.make_graph([node], "g", [], []))
    (read,) = read_model(memoryview(bare.SerializeToString())).graph.nodes
    infos = [
        ValueInfo(name, TensorType(onnx_data_type(x.dtype)) if isinstance(x, np.ndarray) else None)
        for name, x in zip(names, inputs, strict=True)
        if name
    ]
    definition = GraphDef(
        name="g",
        nodes=(read,),
        inputs=tuple(infos),
        outputs=tuple(ValueInfo(name) for name in results),
    )
    return Graph(definition, {domain[0]: domain[1], "": opset})


def node_plan(op: str, inputs: list[Any], **options: Any) -> Plan:
    """The compiled node; options as `run_node`."""
    custom = options.pop("custom", ())
    graph = node_graph(
        op,
        inputs,
        opset=options.pop("opset", OPSET),
        outputs=options.pop("outputs", 1),
        domain=(options.pop("domain", ""), options.pop("domain_version", 1)),
        attributes=options,
    )
    return GraphCompiler(graph, resolver(custom)).compile()


def run_node(op: str, *inputs: Any, **options: Any) -> Any:
    """The node's output, or a list of them if `outputs` is over 1.

    Options are opset, outputs, domain, domain_version and custom (kernels); the rest are
    attributes.
    """
    several = options.get("outputs", 1) > 1
    results = node_plan(op, list(inputs), **options).run([x for x in inputs if x is not None])
    return list(results) if several else results[0]
