"""Keeps OpenVINO from computing in steps what needs the numbers between them.

Its low precision transformations move a scale and zero point past other operators, which then get
the integers. Seen with the CPU plug-in of OpenVINO 2026.4.1:

- A Clip has integers as bounds then, of which the part behind the point is cut off: a Clip at 0.6
  of steps of 0.0123 gives 0.59, and one at 20 steps gives 19 where the quotient is 19.99999.
- A sum loses the zero point where that times the scale is below 1e-5, so all results are off by as
  many steps.

A maximum with minus infinity changes no number, and nothing is moved past it. A Min gets a minimum
with infinity: of a Max and a Min OpenVINO makes a Clip. The values come second in both, or NaN
would be lost.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.compile.normalisation_barriers import (
    DEQUANTIZE,
    LOWEST,
    element_type,
)
from eps.openvino.compile.walks import walk_back
from eps.openvino.support.node_facts import element_type_of
from eps.openvino.support.written_steps import RANGES
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

    Array = np.ndarray[Any, np.dtype[Any]]

HIGHEST = {
    DataType.FLOAT: struct.pack("<f", float("inf")),
    DataType.FLOAT16: struct.pack("<e", float("inf")),
}
EXTREMES = {"Max": LOWEST, "Min": HIGHEST}
CLIP = "Clip"
CLIPS = (CLIP, "Max", "Min")
"""Both of the last, with constants, are a Clip to OpenVINO."""
TERMS = ("Add", "Sub", "Sum", "Mean")
SUMS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "QuantizeLinear")
"""Nothing is moved past these to what follows, but a scale for all."""
NEAR_NOTHING = 2e-5
"""OpenVINO takes summands of half this magnitude for 0."""


def keep_numbers(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph with a Max before each such Clip and summand; itself where there is none.

    Args:
        definition: To be rewritten; it has quantised values.
        graph: The same, or before other nodes of it were rewritten; knows the types.
    """
    steps = _Steps(definition, graph)
    writer = NodeWriter(definition, "steps_barrier")
    kept: dict[tuple[str, str], str] = {}
    for node in definition.nodes:
        inputs = list(node.inputs)
        for place in steps.find_places(node):
            name, kind = inputs[place], "Min" if node.op_type == "Min" else "Max"
            if (name, kind) not in kept and (data := EXTREMES[kind].get(element_type(graph, name))):
                constant = writer.constant(element_type(graph, name), (), data)
                kept[name, kind] = writer.add(kind, constant, name)
            inputs[place] = kept.get((name, kind), name)
        writer.nodes.append(replace(node, inputs=tuple(inputs)))
    return writer.finish(definition) if kept else definition


class _Steps:
    """Which values of a graph are dequantised, and with which scales and zero points."""

    def __init__(self, definition: GraphDef, graph: Graph) -> None:
        self._graph = graph
        self._constants = definition.initializers
        self._makers = {name: node for node in definition.nodes for name in node.outputs if name}
        steps = [node for node in definition.nodes if node.op_type == DEQUANTIZE]
        operators = (*CLIPS, *TERMS) if any(map(self._is_lost, steps)) else CLIPS
        self._operators = operators if steps else ()

    def find_places(self, node: Node) -> list[int]:
        """Inputs of a node before which there has to be a Max."""
        if node.domain or node.op_type not in self._operators:
            return []
        is_needed = self._is_cut if node.op_type in CLIPS else self._is_lost
        return [
            place
            for place, name in enumerate(node.inputs[:1] if node.op_type == CLIP else node.inputs)
            if any(is_needed(maker, node) for maker in self._find_dequantized(name))
        ]

    def _find_dequantized(self, name: str) -> list[Node]:
        """DequantizeLinear nodes whose integers may be moved to where a value is read."""
        before = walk_back(self._makers, (name,), lambda node: node.op_type in SUMS)
        steps = (node for node in before if node.op_type == DEQUANTIZE)
        return [node for node in steps if node.inputs[0] not in self._constants]

    def _is_cut(self, maker: Node, clip: Node) -> bool:
        """Whether a bound may lie between two steps: 0 does not, nor what all values are within."""
        scale, zero = self._read(maker.inputs[1:2]), self._read(maker.inputs[2:3])
        kind = element_type_of(self._graph, maker.inputs[0])
        if scale is None or zero is None or kind is None or kind not in RANGES:
            return True
        with np.errstate(all="ignore"):
            low, high = ((end - zero) * scale for end in RANGES[kind])
        lowest, highest = low.min(initial=0), high.max(initial=0)
        return any(
            bound is None or not ((bound <= lowest) | (bound >= highest) | (bound == 0)).all()
            for bound in self._find_bounds(clip)
        )

    def _is_lost(self, maker: Node, _sum: Node | None = None) -> bool:
        """Whether a zero point is lost in a sum."""
        scale, zero = self._read(maker.inputs[1:2]), self._read(maker.inputs[2:3])
        if scale is None or zero is None or not zero.any():
            return False
        with np.errstate(all="ignore"):
            return bool((np.abs(zero * scale) < NEAR_NOTHING).all())

    def _find_bounds(self, clip: Node) -> list[Array | None]:
        """Of a Clip, with None for a computed one; or what a Min or Max compares with."""
        attributes = [clip.attributes.get(name) for name in ("min", "max")]
        bounds: list[Array | None] = [np.array(each.value) for each in attributes if each]
        if clip.op_type == CLIP:
            return bounds + [self._read((name,)) for name in clip.inputs[1:] if name]
        values = [self._read((name,)) for name in clip.inputs]
        return [value for value in values if value is not None]

    def _read(self, names: Sequence[str]) -> Array | None:
        """A constant as float64, 0 for one that is left out; None if it is computed."""
        if not names or not names[0]:
            return np.zeros(())
        constant = self._constants.get(names[0])
        return None if constant is None else to_numpy(constant).astype(np.float64)
