"""Nodes of OpenVINO's operator set 13, made by its Python extension alone.

The functions of `openvino.opset13` would import the package: 0.1 s, for telemetry and the converter
that no session needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.sdk.binding import ov

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import openvino

OPSET = "opset13"
BROADCAST: Mapping[str, str] = {"auto_broadcast": "NUMPY"}
"""Attributes of element-wise operators."""


def make_node(
    kind: str,
    inputs: Sequence[openvino.Output],
    attributes: Mapping[str, object] | None = None,
) -> openvino.Node:
    """A node of an operator of OPSET.

    Args:
        kind: Its type name, e.g. "ReduceMean".
        inputs: In the operator's order.
        attributes: Those without a default, and others.
    """
    node: openvino.Node = ov.NodeFactory(OPSET).create(kind, list(inputs), dict(attributes or {}))
    return node


def make_constant(
    values: Sequence[int], shape: Sequence[int], element_type: openvino.Type | None = None
) -> openvino.Output:
    """The output of a constant; int64 unless an element type is given."""
    chosen = ov.Type.i64 if element_type is None else element_type
    output: openvino.Output = ov.op.Constant(chosen, ov.Shape(shape), values).output(0)
    return output
