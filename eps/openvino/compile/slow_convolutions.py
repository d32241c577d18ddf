"""Convolutions that OpenVINO's CPU plug-in computes slowly, written in another form.

Measured with OpenVINO 2026.4.1 on AVX2, processor time:

- The kernels compute a block of neighbours along the last axis at once. Where that axis has one
  element, a convolution takes twice the time of the same one without the axis (magika: 22 to
  11 ms). Models from frameworks that have only 2-D convolutions contain such nodes.
- A padded convolution of one channel by long filters, as a spectrogram is computed, takes three to
  four times as long as padding first and then convolving (3,000 frames of 400 samples by 402
  filters: 63 to 19 ms). OpenVINO puts the two together again unless a Reshape is between them.
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType, DataType, Node, Tensor
from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Attribute, GraphDef
    from ort_lite.ep import Graph

WEIGHTS: Mapping[str, int] = {"Conv": 1, "QLinearConv": 3}
"""Input with the filters, by operator; input 0 is what they are applied to."""
OPERATOR = "Conv"
DEQUANTIZE = "DequantizeLinear"
LEAST_PRODUCTS = 1 << 20
"""Multiplications from which a width is dropped: the gain is larger than the time of two nodes."""
ASSUMED_SIZE = 32
"""Of a free height."""
LEAST_TAPS = 32
"""Of a filter that makes padding slow."""
PAD_WITH_INPUTS = 11
"""Version of Pad from which on its pads are an input."""
COPY = 0
"""In the shape of a Reshape: the size of the input at this place (Reshape-5)."""


def rewrite_convolutions(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """A graph with such convolutions in their other form, and a line for each kind of them.

    Args:
        definition: To be rewritten.
        graph: The same with its types.
    """
    writer = _Writer(definition)
    narrow = padded = 0
    for node in definition.nodes:
        if node.op_type in WEIGHTS and not node.domain and _has_narrow_input(node, graph):
            writer.drop_width(node, graph)
            narrow += 1
        elif node.op_type == OPERATOR and not node.domain and _pads_signal(node, graph):
            writer.pad_first(node)
            padded += 1
        else:
            writer.nodes.append(node)
    if not narrow + padded:
        return definition, []
    initializers = {**definition.initializers, **writer.initializers}
    notes = []
    if narrow:
        notes.append(f"Conv x{narrow} over inputs of width 1 computed without that axis")
    if padded:
        notes.append(f"Conv x{padded} of one channel computed after its padding")
    return replace(definition, nodes=tuple(writer.nodes), initializers=initializers), notes


def _has_narrow_input(node: Node, graph: Graph) -> bool:
    """Whether a Conv is of [N, C, H, 1] by filters [M, C, kH > 1, 1], and large."""
    filters_at = WEIGHTS[node.op_type]
    if not _is_weight(node.inputs[filters_at], graph):
        return False
    names = node.inputs[0], node.inputs[filters_at], node.outputs[0]
    x, w, y = (shape_of(graph, name) or () for name in names)
    if len(x) != 4 or len(w) != 4 or len(y) != 4 or x[3] != 1 or w[3] != 1 or y[3] != 1:
        return False
    filters = [size if isinstance(size, int) else 1 for size in w]
    # A width that is padded may have an output of padding alone, through a stride.
    if filters[2] < 2 or _groups(node) != 1 or any(_integers(node, "pads")[1::2]):
        return False
    height = y[2] if isinstance(y[2], int) else ASSUMED_SIZE
    return prod(filters) * height >= LEAST_PRODUCTS


def _is_weight(name: str, graph: Graph) -> bool:
    """Whether a value is a constant, or a quantised one with scales along its first axis."""
    if graph.constant(name) is not None:
        return True
    maker = graph.producer(name)
    if maker is None or graph.nodes[maker].op_type != DEQUANTIZE:
        return False
    node = graph.nodes[maker]
    axis = node.attributes.get("axis")
    along_filters = axis is not None and axis.value == 0
    is_scalar = shape_of(graph, node.inputs[1]) == ()
    is_blocked = "block_size" in node.attributes
    return (
        graph.constant(node.inputs[0]) is not None
        and graph.constant(node.inputs[1]) is not None
        and (along_filters or is_scalar)
        and not is_blocked
    )


def _pads_signal(node: Node, graph: Graph) -> bool:
    """Whether a Conv pads [N, 1, L] for filters [M, 1, k] that are long."""
    if graph.constant(node.inputs[1]) is None:
        return False
    if graph.opset_imports.get("", 1) < PAD_WITH_INPUTS:
        return False
    x, w = (shape_of(graph, name) or () for name in node.inputs[:2])
    if len(x) != 3 or len(w) != 3 or x[1] != 1 or w[1] != 1 or _groups(node) != 1:
        return False
    auto_pad = node.attributes.get("auto_pad")
    pads = _integers(node, "pads")
    return (
        isinstance(w[2], int)
        and w[2] >= LEAST_TAPS
        and (auto_pad is None or auto_pad.value == b"NOTSET")
        and len(pads) == 2
        and min(pads) >= 0
        and max(pads) > 0
    )


def _groups(node: Node) -> object:
    group = node.attributes.get("group")
    return 1 if group is None else group.value


def _integers(node: Node, name: str) -> tuple[int, ...]:
    attribute = node.attributes.get(name)
    return attribute.value if attribute and isinstance(attribute.value, tuple) else ()


class _Writer:
    """Nodes in order, and constants, under names that the graph does not use."""

    def __init__(self, definition: GraphDef) -> None:
        self.nodes: list[Node] = []
        self.initializers: dict[str, Tensor] = {}
        self._taken = {n for node in definition.nodes for n in (*node.inputs, *node.outputs)}
        self._taken |= {info.name for info in definition.inputs} | definition.initializers.keys()

    def drop_width(self, node: Node, graph: Graph) -> None:
        """The convolution of an input without its last axis, which the output gets back."""
        at = WEIGHTS[node.op_type]
        x = self._reshape(node.inputs[0], (COPY, COPY, COPY))
        w = self._narrow_weights(node, graph)
        attributes = {name: _drop_last(name, value) for name, value in node.attributes.items()}
        y = self._find_name(node.outputs[0])
        inputs = (x, *node.inputs[1:at], w, *node.inputs[at + 1 :])
        self.nodes.append(replace(node, inputs=inputs, outputs=(y,), attributes=attributes))
        self._reshape(y, (COPY, COPY, COPY, 1), node.outputs[0])

    def _narrow_weights(self, node: Node, graph: Graph) -> str:
        """Filters without their last axis; quantised ones stay constants."""
        name = node.inputs[WEIGHTS[node.op_type]]
        if node.op_type != OPERATOR:
            return self._narrow_constant(name, graph)
        if graph.constant(name) is not None:
            return self._reshape(name, (COPY, COPY, COPY))
        maker = graph.producer(name)
        assert maker is not None, "_is_weight has found it"
        scaling = graph.nodes[maker]
        narrow = self._narrow_constant(scaling.inputs[0], graph)
        output = self._find_name(name)
        inputs = (narrow, *scaling.inputs[1:])
        self.nodes.append(replace(scaling, inputs=inputs, outputs=(output,)))
        return output

    def _narrow_constant(self, name: str, graph: Graph) -> str:
        """The same bytes with a shape of one axis less."""
        constant = graph.constant(name)
        assert constant is not None, "_is_weight has found it"
        narrow = self._find_name(name)
        self.initializers[narrow] = replace(constant, name=narrow, dims=constant.dims[:-1])
        return narrow

    def pad_first(self, node: Node) -> None:
        """Pad with one axis more, and a convolution without padding."""
        before, after = _integers(node, "pads")
        wide = self._reshape(node.inputs[0], (COPY, COPY, COPY, 1))
        padded = self._find_name(wide)
        pads = self._integers((0, 0, before, 0, 0, 0, after, 0))
        self.nodes.append(Node("Pad", (wide, pads), (padded,)))
        x = self._reshape(padded, (COPY, COPY, COPY))
        attributes = {name: value for name, value in node.attributes.items() if name != "pads"}
        self.nodes.append(replace(node, inputs=(x, *node.inputs[1:]), attributes=attributes))

    def _reshape(self, name: str, sizes: Sequence[int], output: str = "") -> str:
        output = output or self._find_name(name)
        self.nodes.append(Node("Reshape", (name, self._integers(sizes)), (output,)))
        return output

    def _integers(self, values: Sequence[int]) -> str:
        name = self._find_name("_".join(map(str, values)))
        data = memoryview(struct.pack(f"<{len(values)}q", *values))
        self.initializers[name] = Tensor(name, DataType.INT64, (len(values),), data)
        return name

    def _find_name(self, base: str) -> str:
        number = 0
        while (name := f"{base}__{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name


def _drop_last(name: str, attribute: Attribute) -> Attribute:
    """An attribute of Conv-1 without what it says of the last axis; `pads` has two ends."""
    if attribute.type != AttributeType.INTS or not isinstance(attribute.value, tuple):
        return attribute
    numbers = attribute.value
    kept = (numbers[0], numbers[2]) if name == "pads" else numbers[:1]
    return replace(attribute, value=kept)
