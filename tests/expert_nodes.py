"""Nodes of MoE and QMoE with random weights, for devices and onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.decoders.make_decoder import SHAPES

if TYPE_CHECKING:
    from device_models import NodeSet

    Array = np.ndarray[Any, np.dtype[Any]]

CONTRIB = "com.microsoft"
RANDOM = np.random.default_rng(62)
CONSTANTS = (2, 3, 4, 5, 6, 7, 11, 12)
GATED = {
    "activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702,
    "activation_beta": 1.0, "swiglu_limit": 0.5,
}  # fmt: skip
DECODER = replace(SHAPES["tiny"], experts=6, chosen=2, zero_points=True, block=16)


def f32(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def draw_projection(
    sizes: tuple[int, int, int], bits: int, block: int, *, zeros: bool
) -> list[Array | None]:
    """Weights [experts, width, bytes], their scales, and zero points; by columns for block 0."""
    experts, width, depth = sizes
    blocks = (depth // block,) if block else ()
    scales = RANDOM.uniform(0.5, 1.5, (experts, width, *blocks)) / (depth**0.5 * (1 << bits) / 4)
    shape = (*scales.shape[:-1], -(-scales.shape[-1] * bits // 8))
    packed = u8(experts, width, depth * bits // 8)
    return [packed, scales.astype(np.float32), u8(*shape) if zeros else None]


def draw_experts(
    sizes: tuple[int, int, int, int] = (7, 5, 64, 96),
    *,
    bits: int = 4,
    block: int = 0,
    zeros: bool = False,
    bias: bool = False,
    mixing: bool = False,
    doubled: bool = False,
) -> list[Array | None]:
    """Inputs of a QMoE of tokens, experts, hidden and inner size."""
    tokens, experts, hidden, inner = sizes
    inputs: list[Array | None] = [f32(tokens, hidden), f32(tokens, experts), *[None] * 13]
    wide = inner * (2 if doubled else 1)
    for at, width, depth in ((2, wide, hidden), (5, hidden, inner)):
        drawn = draw_projection((experts, width, depth), bits, block, zeros=zeros)
        inputs[at], inputs[at + 1], inputs[11 if at == 2 else 12] = drawn
        inputs[at + 2] = f32(experts, width) if bias else None
    if mixing:
        inputs[14] = RANDOM.uniform(0.1, 1, (tokens, experts)).astype(np.float32)
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def add(nodes: NodeSet, inputs: list[Array | None], **attributes: Any) -> str:
    fixed = [at for at in CONSTANTS if at < len(inputs)]
    return nodes.add("QMoE", inputs, fixed, domain=CONTRIB, **attributes)


def add_blocks(nodes: NodeSet, block: int, inputs: list[Array | None], **attributes: Any) -> str:
    return add(nodes, inputs, **attributes, **({"block_size": block} if block else {}))


def check(nodes: NodeSet, options: dict[str, str]) -> None:
    """As onnxruntime, whose sums of products are of another order."""
    found, right = nodes.run_with(options), nodes.run_elsewhere()
    for info, mine, theirs in zip(nodes.model.graph.output, found, right, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4, err_msg=info.name)
