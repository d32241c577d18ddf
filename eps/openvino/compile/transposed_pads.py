"""ConvTranspose with `auto_pad`, with the pads that it stands for, for OpenVINO.

An output of SAME_UPPER or SAME_LOWER is as large as its input times the strides, whatever that is:
what is cut off depends on the kernel alone. OpenVINO cuts nothing off where sizes are free
(2026.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType
from eps.openvino.support.transposed_pads import find_pads

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef
    from ort_lite.ep import Graph


def write_pads(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with `pads` in place of `auto_pad`.

    Args:
        definition: To be rewritten.
        graph: Has the shapes of its values, as far as they are known.
    """
    nodes = []
    for node in definition.nodes:
        pads = find_pads(node, graph)
        if pads is None:
            nodes.append(node)
            continue
        rest = {name: item for name, item in node.attributes.items() if name != "auto_pad"}
        rest["pads"] = Attribute("pads", AttributeType.INTS, pads)
        nodes.append(replace(node, attributes=rest))
    return replace(definition, nodes=tuple(nodes))
