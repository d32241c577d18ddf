"""A random case for every operator of com.microsoft that has OpenCL kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from operator_cases import image
from operator_chance import unary
from quantised_operator_cases import scale

if TYPE_CHECKING:
    from operator_chance import Chance, Writer


def biased(c: Chance) -> None:
    c.add(c.floats(2, 5, 16), c.floats(16))


def fused_conv(c: Chance) -> None:
    c.add(image(c, 3), c.floats(9, 3, 3, 3), c.floats(9), fixed=(1, 2), activation="Relu")


def fused_gemm(c: Chance) -> None:
    c.add(c.floats(5, 7), c.floats(7, 9), c.floats(9), fixed=(1, 2), activation="Relu")


def fused_matmul(c: Chance) -> None:
    c.add(c.floats(2, 7, 5), c.floats(2, 9, 7), transA=1, transB=1, alpha=0.5)


def skip_norm(c: Chance) -> None:
    c.add(c.floats(2, 5, 16), c.floats(2, 5, 16), c.floats(16), c.floats(16), fixed=(2, 3))


def skip_root_mean_norm(c: Chance) -> None:
    c.add(c.floats(2, 5, 16), c.floats(2, 5, 16), c.floats(16), fixed=(2,))


def embedding(c: Chance) -> None:
    ids = c.integers("int32", 2, 5, high=11)
    tables = c.floats(11, 8), c.floats(5, 8), c.floats(2, 8)
    kinds = c.integers("int32", 2, 5, high=2)
    mask = np.ones((2, 5), np.int32)
    fixed = (2, 3, 4, 5, 6)
    c.add(ids, kinds, *tables, c.floats(8), c.floats(8), mask, fixed=fixed, outputs=2)


def packed_attention(c: Chance) -> None:
    c.add(c.floats(2, 5, 16), c.floats(16, 48), c.floats(48), fixed=(1, 2), num_heads=2)


def many_heads(c: Chance) -> None:
    c.add(c.floats(2, 5, 16), c.floats(2, 7, 16), c.floats(2, 7, 16), num_heads=2)


def rotary_by_position(c: Chance) -> None:
    angles = c.floats(7, 4)
    c.add(c.floats(2, 3, 5, 8), np.array([1]), np.cos(angles), np.sin(angles))


def dynamic_matmul(c: Chance) -> None:
    weights = c.integers("int8", 7, 9, low=-63, high=63)
    c.add(c.floats(5, 7), weights, scale(), np.array(0, np.int8), fixed=(1, 2, 3))


def matmul_to_float(c: Chance) -> None:
    a, b = c.integers("uint8", 5, 7, high=255), c.integers("int8", 7, 9, low=-63, high=63)
    zeros = np.array(3, np.uint8), np.array(0, np.int8)
    c.add(a, b, scale(), scale(), *zeros, c.floats(9), fixed=(1, 2, 3, 4, 5, 6))


def quantised_lstm(c: Chance) -> None:
    """Of one step: a state at the border of two 8-bit values makes the next step differ by one."""
    hidden = c.pick(4, 7)
    weights = [c.integers("int8", 1, n, 4 * hidden, low=-63, high=63) for n in (3, hidden)]
    step, zero = np.full(1, 0.01, np.float32), np.zeros(1, np.int8)
    inputs = [c.floats(1, 2, 3), *weights, c.floats(1, 8 * hidden), None, None, None, None]
    fixed = (1, 2, 3, 8, 9, 10, 11)
    c.add(*inputs, step, zero, step, zero, fixed=fixed, outputs=3, hidden_size=hidden)


def few_bits(c: Chance) -> None:
    """Products with one row, with a few and with many."""
    for rows in (1, 3, 17):
        bits, block, depth, width = c.pick(4, 8), c.pick(16, 32), c.pick(48, 80), c.pick(5, 33, 70)
        blocks = -(-depth // block)
        weights = c.integers("uint8", width, blocks, block * bits // 8, high=256)
        zeros = c.integers("uint8", width, -(-blocks * bits // 8), high=256)
        optional = c.pick([], [zeros])
        sizes = {"K": depth, "N": width, "bits": bits, "block_size": block}
        scales = c.floats(width, blocks, low=0.01, high=0.1 / bits)
        c.add(c.floats(2, rows, depth), weights, scales, *optional, fixed=(1, 2, 3), **sizes)


def quantised_rows(c: Chance) -> None:
    bits = c.pick(4, 8)
    table = c.integers("uint8", 20, 64 * bits // 8, high=256)
    zeros = c.integers("uint8", 20, 2 * bits // 8, high=256)
    ids = c.integers(c.pick("int32", "int64"), 2, 3, high=20)
    common = {"bits": bits, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
    c.add(table, ids, c.floats(20, 2), *c.pick([], [zeros]), fixed=(0, 2, 3), **common)


def grouped_heads(c: Chance) -> None:
    """A prompt, and new positions after a past that fills the cache."""
    for new, past in ((5, 0), (1, 7)):
        batch, heads, groups, size = c.pick(1, 2), 4, c.pick(1, 2), c.pick(16, 32)
        width, total = size * (heads + 2 * groups), new + past
        lengths, whole = np.full(batch, total - 1, np.int32), np.array(total, np.int32)
        caches = [c.floats(batch, groups, past, size) for _ in range(2)] if past else [None, None]
        angles = c.floats(32, size // 2)
        c.add(
            c.floats(batch, new, width), None, None, *caches, lengths, whole, np.cos(angles),
            np.sin(angles), fixed=(6, 7, 8), outputs=3, num_heads=heads, kv_num_heads=groups,
            do_rotary=c.pick(0, 1), rotary_interleaved=c.pick(0, 1),
        )  # fmt: skip


def experts(c: Chance) -> None:
    tokens, count, hidden, inner = c.pick(1, 7), 5, c.pick(16, 24), c.pick(8, 33)
    weights = c.floats(count, inner, hidden), c.floats(count, inner)
    back = c.floats(count, hidden, inner), c.floats(count, hidden)
    common = {"k": c.pick(1, 2), "activation_type": c.pick("relu", "gelu", "silu", "identity")}
    inputs = c.floats(tokens, hidden), c.floats(tokens, count), *weights, *back
    c.add(*inputs, fixed=(2, 3, 4, 5), normalize_routing_weights=c.pick(0, 1), **common)


def quantised_experts(c: Chance) -> None:
    tokens, count, hidden, inner, bits = c.pick(1, 7), 5, 32, 64, c.pick(4, 8)
    projections = []
    for width, depth in ((inner, hidden), (hidden, inner)):
        weights = c.integers("uint8", count, width, depth * bits // 8, high=256)
        projections += [
            weights,
            c.floats(count, width, low=0.2 / 2**bits, high=0.8 / 2**bits),
            None,
        ]
    common = {"k": c.pick(1, 2), "activation_type": c.pick("relu", "silu")}
    inputs = c.floats(tokens, hidden), c.floats(tokens, count), *projections[:-1]
    c.add(*inputs, fixed=(2, 3, 5, 6), expert_weight_bits=bits, **common)


CONTRIB_WRITERS: dict[str, Writer] = {
    **dict.fromkeys(("BiasGelu", "FastGelu"), biased), "BiasAdd": lambda c: c.add(
        c.floats(2, 5, 320), c.floats(320), c.floats(2, 5, 320)
    ),
    **dict.fromkeys(("Gelu", "QuickGelu"), unary()), "FusedConv": fused_conv,
    "FusedGemm": fused_gemm, "FusedMatMul": fused_matmul, "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_root_mean_norm, "EmbedLayerNormalization": embedding,
    "Attention": packed_attention, "MultiHeadAttention": many_heads,
    "RotaryEmbedding": rotary_by_position, "DynamicQuantizeMatMul": dynamic_matmul,
    "MatMulIntegerToFloat": matmul_to_float, "DynamicQuantizeLSTM": quantised_lstm,
    "MatMulNBits": few_bits, "GatherBlockQuantized": quantised_rows,
    "GroupQueryAttention": grouped_heads, "MoE": experts, "QMoE": quantised_experts,
}  # fmt: skip
