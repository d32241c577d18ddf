"""Windows of convolutions that lie in the padding alone, past which OpenVINO reads its input.

Seen with the CPU plug-in of OpenVINO 2026.4.1: numbers that differ from run to run, and crashes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim
    from eps.openvino.support.node_facts import NodeFacts


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
