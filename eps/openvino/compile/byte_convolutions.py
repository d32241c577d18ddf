"""Convolutions that OpenVINO's 8-bit kernels for AMX compute wrong, and that stay in float32 there.

support/windows.py says which may be. A trial shows whether this CPU and this OpenVINO are concerned
at all: one such convolution, whose sums are known. OpenVINO 2026.4.1 is, on CPUs with AMX; with
AVX-512 VNNI and with AVX2 these convolutions are right. A maximum with minus infinity before one
keeps it a convolution of floats, among 8-bit kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.compile.normalisation_barriers import LOWEST, element_type
from eps.openvino.compile.trials import LARGEST, sum_products
from eps.openvino.compile.walks import walk_back
from eps.openvino.support.node_facts import shape_of
from eps.openvino.support.windows import is_wrong_with_amx

if TYPE_CHECKING:
    import openvino

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

CONVOLUTIONS = {"Conv": 1, "QLinearConv": 3}
"""By operator the input with the filters."""
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
SUMS = ("Conv", "ConvTranspose", "Gemm", "MatMul", QUANTIZE)
"""What they compute is quantised by a node of its own, if at all."""
CHANNELS, WINDOW, WIDTH = 16, 8, 20
"""Sizes of the trial."""

_is_wrong: list[bool] = []


def has_such(graph: Graph) -> bool:
    """Whether a convolution of the graph may be one of these; bodies are not looked into."""
    return any(
        node.op_type in CONVOLUTIONS
        and is_wrong_with_amx(node, shape_of(graph, node.inputs[CONVOLUTIONS[node.op_type]]))
        for node in graph.nodes
    )


def is_wrong_here(core: openvino.Core) -> bool:
    """Whether this CPU is concerned, by a trial that runs once in a process."""
    if not _is_wrong:
        weights = np.ones((CHANNELS, CHANNELS, 1, WINDOW), np.int8)
        read, made = ((1, CHANNELS, WINDOW, size) for size in (WIDTH, WIDTH - WINDOW + 1))
        result = sum_products(core, "Conv", weights, read, made)
        _is_wrong.append(bool((result != LARGEST * CHANNELS * WINDOW).any()))
    return _is_wrong[0]


def keep_floats(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph with a Max before each such convolution of quantised values.

    Args:
        definition: To be rewritten, once other rewritings have written out QLinearConv.
        graph: The same, or before other nodes of it were rewritten; knows the types.
    """
    makers = {name: node for node in definition.nodes for name in node.outputs if name}
    writer = NodeWriter(definition, "byte_convolution")
    changed = False
    for node in definition.nodes:
        name = node.inputs[0] if node.inputs else ""
        lowest = LOWEST.get(element_type(graph, name)) if node.op_type == "Conv" else None
        if lowest is None or not _is_concerned(node, definition, graph, makers):
            writer.nodes.append(node)
            continue
        changed = True
        constant = writer.constant(element_type(graph, name), (), lowest)
        inputs = (writer.add("Max", constant, name), *node.inputs[1:])
        writer.nodes.append(replace(node, inputs=inputs))
    return writer.finish(definition) if changed else definition


def _is_concerned(node: Node, definition: GraphDef, graph: Graph, makers: dict[str, Node]) -> bool:
    weights = node.inputs[1]
    while weights in makers and makers[weights].op_type == DEQUANTIZE:
        weights = makers[weights].inputs[0]
    constant = definition.initializers.get(weights)
    shape = constant.dims if constant is not None else shape_of(graph, weights)
    return is_wrong_with_amx(node, shape) and _is_quantised(node.inputs[0], makers)


def _is_quantised(name: str, makers: dict[str, Node]) -> bool:
    """Whether a value is dequantised, or made of one that is without sums of products."""
    before = walk_back(makers, (name,), lambda node: node.op_type in SUMS)
    return any(node.op_type == DEQUANTIZE for node in before)
