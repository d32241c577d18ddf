"""ConvTranspose whose `auto_pad` OpenVINO ignores, since sizes are free, and what it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

OPERATOR = "ConvTranspose"
SAME = (b"SAME_UPPER", b"SAME_LOWER")


def find_pads(node: Node, graph: Graph) -> tuple[int, ...] | None:
    """The attribute `pads` in place of `auto_pad`: of each axis in front, then behind.

    ConvTranspose-11: the total of an axis is stride * (size - 1) + output_padding + (kernel - 1) *
    dilation + 1 - size * stride, and SAME_UPPER has the larger half behind.

    None for any other node, for known sizes, and where the total is negative or not known.
    """
    if not _is_affected(node, graph):
        return None
    window = _window(node, graph)
    if window is None:
        return None
    strides, dilations = (
        _numbers(node, "strides", window, 1),
        _numbers(node, "dilations", window, 1),
    )
    more = _numbers(node, "output_padding", window, 0)
    totals = [
        (size - 1) * dilation + 1 + extra - stride
        for size, dilation, extra, stride in zip(window, dilations, more, strides, strict=True)
    ]
    if min(totals) < 0:
        return None
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    upper = node.attributes["auto_pad"].value == SAME[0]
    return (*small, *large) if upper else (*large, *small)


def transposed_pads_problem(facts: NodeFacts) -> str:
    """Why a ConvTranspose cannot be written with `pads`; "" if it can, or need not be."""
    if _is_affected(facts.node, facts.graph) and find_pads(facts.node, facts.graph) is None:
        return "auto_pad is ignored where sizes are free"
    return ""


def _is_affected(node: Node, graph: Graph) -> bool:
    mode = node.attributes.get("auto_pad")
    if node.op_type != OPERATOR or node.domain or mode is None or mode.value not in SAME:
        return False
    shape = shape_of(graph, node.inputs[0])
    is_free = shape is None or not all(isinstance(dim, int) for dim in shape[2:])
    return is_free and "output_shape" not in node.attributes


def _window(node: Node, graph: Graph) -> tuple[int, ...] | None:
    """Sizes of the kernel, one for each axis of space."""
    held = node.attributes.get("kernel_shape")
    if held is not None and isinstance(held.value, tuple):
        return tuple(int(size) for size in held.value)
    shape = shape_of(graph, node.inputs[1])
    sizes = tuple(dim for dim in (shape or ())[2:] if isinstance(dim, int))
    return sizes if shape is not None and len(sizes) == len(shape) - 2 else None


def _numbers(node: Node, name: str, window: tuple[int, ...], default: int) -> tuple[int, ...]:
    held = node.attributes.get(name)
    if held is None or not isinstance(held.value, tuple):
        return (default,) * len(window)
    return tuple(int(number) for number in held.value)
