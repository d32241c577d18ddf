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
}  # fmt: skip
