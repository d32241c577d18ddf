"""Which nodes of a partition OpenVINO cannot convert."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.openvino.compile.convert import ConversionError, read_model
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    import openvino

    from ctx_formats.onnx_model import ValueType
    from ort_lite.model.graph import Graph

_NO_RULE = re.compile(r"No conversion rule found for operations: ([^\n]*)")
MAX_TRIES = 64


def find_culprits(core: openvino.Core, graph: Graph, text: str) -> dict[int, str]:
    """Indices of the nodes that OpenVINO refuses, with the reason; never empty.

    First by the operators for which OpenVINO says that it has no rule, then by inputs of unknown
    rank, which no device takes; otherwise by halving: converting halves of the partition until
    single nodes fail. What still fails only in company is refused as a whole, which sends it to
    the next EP.
    """
    named = _named(graph, text) or _nodes_of_unknown_rank(graph)
    if named:
        return named
    found: dict[int, str] = {}
    tries = [MAX_TRIES]
    _halve(core, graph, list(range(len(graph.nodes))), found, tries)
    return found or dict.fromkeys(range(len(graph.nodes)), f"OpenVINO: {text[:300]}")


def _named(graph: Graph, text: str) -> dict[int, str]:
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
    """Nodes that take values of unknown rank, where the partition itself is given such values."""
    if not any(_has_no_rank(info.type) for info in graph.inputs):
        return {}
    refused = {}
    for index, node in enumerate(graph.nodes):
        for name in filter(None, node.inputs):
            if graph.constant(name) is None and _has_no_rank(graph.type_of(name)):
                refused[index] = f"OpenVINO: the rank of '{name}' is not known before the run"
                break
    return refused


def _has_no_rank(value_type: ValueType | None) -> bool:
    return isinstance(value_type, TensorType) and value_type.shape is None


def _halve(
    core: openvino.Core, graph: Graph, indices: list[int], found: dict[int, str], tries: list[int]
) -> None:
    if not indices or tries[0] <= 0:
        return
    tries[0] -= 1
    try:
        with read_model(core, graph.extract(indices, "part")):
            return
    except ConversionError as exc:
        if len(indices) == 1:
            found[indices[0]] = f"OpenVINO's front end: {str(exc)[:300]}"
            return
    except OrtLiteError:
        return
    middle = len(indices) // 2
    _halve(core, graph, indices[:middle], found, tries)
    _halve(core, graph, indices[middle:], found, tries)
