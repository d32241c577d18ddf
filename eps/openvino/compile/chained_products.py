"""Keeps OpenVINO from computing two quantised matrix products in one kernel, where it errs.

Its CPU plug-in joins a product, what is between, and a second product (MLP in its Snippets). With
8-bit operands and known shapes results are noise for 4, 6 and 8 rows on two threads; 1 to 3, 5, 7
and 9 to 72 rows were right (OpenVINO 2026.4.1, AMD Zen 4). Products of floats, stacks of matrices
and free shapes are right. Without the property SNIPPETS_MODE each is a kernel of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.compile.int8_sums import set_cpu_property, with_bodies
from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    import openvino

    from eps.openvino.options import OpenVINOOptions
    from ort_lite.ep import Graph

MODE = "SNIPPETS_MODE"
PRODUCTS = ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "QGemm")


def separate_products(
    core: openvino.Core, options: OpenVINOOptions, config: dict[str, object], graph: Graph
) -> str:
    """Have the device compute each product by itself, and a note on that; "" if it may join them.

    Args:
        core: The session's own.
        options: The execution provider's.
        config: Gets the property.
        graph: The partition, which has quantised values.
    """
    if not options.has_cpu or MODE in options.load_config:
        return ""
    if not any(map(_has_chain, with_bodies(graph))):
        return ""
    set_cpu_property(core, config, options.device, MODE, "DISABLE")
    return "quantised products are computed one by one: OpenVINO errs in two at once"


def _has_chain(graph: Graph) -> bool:
    """Whether a product of some rows reads what another one has computed."""
    for node in graph.nodes:
        if node.op_type not in PRODUCTS:
            continue
        shape = shape_of(graph, node.inputs[0])
        if shape is None or len(shape) != 2 or not isinstance(shape[0], int) or shape[0] == 1:
            continue
        if _follows_product(graph, node.inputs[0]):
            return True
    return False


def _follows_product(graph: Graph, name: str) -> bool:
    names, visited = [name], set[int]()
    while names:
        index = graph.producer(names.pop())
        if index is None or index in visited:
            continue
        visited.add(index)
        if graph.nodes[index].op_type in PRODUCTS:
            return True
        names.extend(filter(None, graph.nodes[index].inputs))
    return False
