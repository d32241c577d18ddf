"""Finds the nodes of a partition that OpenVINO cannot convert."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.openvino.compile.convert import ConversionError, read_model
from ort_lite.ep import OrtLiteError

if TYPE_CHECKING:
    import openvino

    from ctx_formats.onnx_model import ValueType
    from ort_lite.ep import Graph

_NO_RULE = re.compile(r"No conversion rule found for operations: ([^\n]*)")
MAX_TRIES = 64


def find_culprits(core: openvino.Core, graph: Graph, text: str) -> dict[int, str]:
    """Indices of the nodes that OpenVINO refuses, with the reason; never empty.

    First by the operators for which OpenVINO reports that it has no rule, then by inputs of unknown
    rank, which no device accepts; otherwise by bisection: halves of the partition are converted
    until single nodes fail. Nodes that fail only together are all refused, and go to the next EP.
    """
    refused = _nodes_without_rule(graph, text) or _nodes_of_unknown_rank(graph)
    if refused:
        return refused
    tries = [MAX_TRIES]
    _bisect(core, graph, list(range(len(graph.nodes))), refused, tries)
    return refused or dict.fromkeys(range(len(graph.nodes)), f"OpenVINO: {text[:300]}")


def _nodes_without_rule(graph: Graph, text: str) -> dict[int, str]:
    names = {
        part.strip(" .,")
        for listed in _NO_RULE.findall(text)
        for part in re.split(r"[,\s]+", listed)
    }
    return {
        i: f"OpenVINO's front end cannot convert {node.op_type}"
        for i, node in enumerate(graph.nodes)
        if node.op_type in names or f"{node.domain}.{node.op_type}" in names
    }


def _nodes_of_unknown_rank(graph: Graph) -> dict[int, str]:
    """Nodes that take values of unknown rank, if the partition itself has such inputs."""
    if not any(_has_no_rank(info.type) for info in graph.inputs):
        return {}
    refused = {}
    for index, node in enumerate(graph.nodes):
        for name in filter(None, node.inputs):
            if graph.constant(name) is None and _has_no_rank(graph.type_of(name)):
                refused[index] = f"OpenVINO: the rank of '{name}' is unknown before the run"
                break
    return refused


def _has_no_rank(value_type: ValueType | None) -> bool:
    return isinstance(value_type, TensorType) and value_type.shape is None


def _bisect(
    core: openvino.Core,
    graph: Graph,
    indices: list[int],
    refused: dict[int, str],
    tries: list[int],
) -> None:
    if not indices or tries[0] <= 0:
        return
    tries[0] -= 1
    try:
        with read_model(core, graph.extract(indices, "part")):
            return
    except ConversionError as exc:
        if len(indices) == 1:
            refused[indices[0]] = f"OpenVINO's front end: {str(exc)[:300]}"
            return
    except OrtLiteError:
        return
    middle = len(indices) // 2
    _bisect(core, graph, indices[:middle], refused, tries)
    _bisect(core, graph, indices[middle:], refused, tries)
