"""A random case for every operator of com.microsoft that has OpenCL kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from operator_cases import image
from operator_chance import unary

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


CONTRIB_WRITERS: dict[str, Writer] = {
    **dict.fromkeys(("BiasGelu", "FastGelu"), biased), "BiasAdd": lambda c: c.add(
        c.floats(2, 5, 320), c.floats(320), c.floats(2, 5, 320)
    ),
    **dict.fromkeys(("Gelu", "QuickGelu"), unary()), "FusedConv": fused_conv,
    "FusedGemm": fused_gemm, "FusedMatMul": fused_matmul, "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_root_mean_norm, "EmbedLayerNormalization": embedding,
    "Attention": packed_attention, "MultiHeadAttention": many_heads,
    "RotaryEmbedding": rotary_by_position,
}  # fmt: skip
