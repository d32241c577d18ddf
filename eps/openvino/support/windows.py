"""Convolutions that OpenVINO computes wrong, by their windows.

Seen with its CPU plug-in, 2026.4.1:

- Of 8-bit integers, with windows that lie in the padding alone: it reads past its input, so numbers
  differ from run to run, or the process ends.
- Of floats with one channel, along a last axis with a stride of its own and one window: the same.
- Of 8-bit integers on CPUs with AMX, with windows of eight or more along the last axis, which may
  be another in the model, or in groups: some of them are wrong by the whole range. Depthwise ones
  are right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, Node
    from eps.openvino.support.node_facts import NodeFacts

LONG = 8
"""Size of a window along an axis."""


def may_read_padding_alone(facts: NodeFacts, kernel: Sequence[Dim]) -> bool:
    """Whether the padding along an axis is as wide as a window, or wider.

    Args:
        facts: About the convolution, whose `pads` and `dilations` are read.
        kernel: Sizes of its filters along the spatial axes.
    """
    pads, axes = facts.numbers("pads"), len(kernel)
    dilations = facts.numbers("dilations") or (1,) * axes
    if len(pads) != 2 * axes or len(dilations) != axes:
        return False
    spans = [
        (size - 1) * step + 1 if isinstance(size, int) else 1
        for size, step in zip(kernel, dilations, strict=True)
    ]
    return any(pad >= spans[place % axes] for place, pad in enumerate(pads))


def may_have_one_column(facts: NodeFacts, weights: Sequence[Dim] | None) -> bool:
    """Whether one channel is read by one window along the last axis, whose stride is longer.

    Args:
        facts: About the convolution, whose input, `strides`, `pads` and `dilations` are read.
        weights: The shape of its filters; None if it is unknown.
    """
    strides = facts.numbers("strides")
    if weights is None or len(weights) < 4 or weights[1] != 1 or facts.number("group", 1) != 1:
        return False
    if len(strides) != len(weights) - 2 or strides[-1] == 1 or len(set(strides)) == 1:
        return False
    shape, pads = facts.shape(0), facts.numbers("pads")
    size, kernel = shape[-1] if shape is not None else None, weights[-1]
    if not isinstance(size, int) or not isinstance(kernel, int) or facts.text("auto_pad", ""):
        return True
    axes = len(strides)
    padding = pads[axes - 1] + pads[-1] if len(pads) == 2 * axes else 0
    span = (kernel - 1) * (facts.numbers("dilations") or (1,))[-1] + 1
    return size + padding - span < strides[-1]


def is_wrong_with_amx(node: Node, weights: Sequence[Dim] | None) -> bool:
    """Whether a Conv or QLinearConv of 8-bit integers may be wrong on CPUs with AMX.

    Args:
        node: The convolution, whose `group` is read.
        weights: The shape of its filters; None if it is unknown.
    """
    group = node.attributes.get("group")
    count = group.value if group is not None and isinstance(group.value, int) else 1
    if weights is None:
        return True
    if count > 1 and len(weights) > 2:
        return weights[1] != 1 or weights[0] != count
    return any(not isinstance(size, int) or size >= LONG for size in weights[2:])
