"""com.microsoft operators on the CPU EP, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu_contrib.peer import RANDOM, Array, agree, both, f32, i8, scale, steps_agree, u8


@pytest.mark.parametrize("shape", [(5,), (2, 3, 8), (0, 4)])
@pytest.mark.parametrize("op", ["Gelu", "QuickGelu", "FastGelu"])
def test_gelu_and_its_approximations(op: str, shape: tuple[int, ...]) -> None:
    agree(op, [f32(*shape) * 3])


def test_gelu_with_bias_and_alpha() -> None:
    agree("BiasGelu", [f32(2, 3, 8), f32(8)])
    agree("FastGelu", [f32(2, 3, 8), f32(8)])
    agree("QuickGelu", [f32(4, 4)], alpha=1.0)


@pytest.mark.parametrize("turn_a", [0, 1])
@pytest.mark.parametrize("turn_b", [0, 1])
def test_fused_matmul(turn_a: int, turn_b: int) -> None:
    a = f32(2, 5, 4) if turn_a else f32(2, 4, 5)
    b = f32(2, 3, 5) if turn_b else f32(2, 5, 3)
    agree("FusedMatMul", [a, b], alpha=0.5, transA=turn_a, transB=turn_b)


def test_fused_matmul_with_the_batch_inside() -> None:
    agree("FusedMatMul", [f32(4, 2, 5), f32(2, 5, 3)], transBatchA=1, transA=0)


@pytest.mark.parametrize("extra", [[], [f32(8)], [f32(8), f32(8)]], ids=["", "beta", "bias"])
def test_skip_layer_normalization(extra: list[Array]) -> None:
    agree("SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), *extra], epsilon=1e-5)


def test_the_sum_of_skip_layer_normalization_is_an_output() -> None:
    mine, theirs = both(
        "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)], 4, epsilon=1e-5
    )
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mine[3], theirs[3], rtol=1e-6)


def test_skip_simplified_layer_normalization() -> None:
    agree("SkipSimplifiedLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)], epsilon=1e-6)


def test_embed_layer_normalization() -> None:
    ids = RANDOM.integers(0, 20, (2, 5)).astype(np.int32)
    kinds = RANDOM.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    tables: list[Array | None] = [f32(20, 8), f32(16, 8), f32(2, 8), f32(8), f32(8)]
    agree("EmbedLayerNormalization", [ids, kinds, *tables, mask], 2, epsilon=1e-5)
    without = [ids, None, tables[0], tables[1], None, tables[3], tables[4]]
    agree("EmbedLayerNormalization", without, 2, epsilon=1e-5)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("make", [u8, i8], ids=["u8", "i8"])
def test_quantised_sums_and_products_saturate(op: str, make: Any) -> None:
    zero = make()
    a, b = make(3, 4, 5), make(4, 1)
    steps_agree(op, [a, scale(), zero, b, scale(0.05), zero, scale(0.03), zero])


@pytest.mark.parametrize("zero", [7, 8])
def test_the_middle_between_two_steps_is_rounded_as_by_onnxruntime(zero: int) -> None:
    """With the zero point by three operators, and before it by the others."""
    a, b = u8(1, 64) // 8, u8(1, 64) // 8
    half, from_, to = scale(0.5), np.array(3, np.uint8), np.array(zero, np.uint8)
    pair = [a, half, from_, b, half, from_]
    cases: list[tuple[str, list[Array | None], dict[str, Any]]] = [
        ("QLinearAdd", [*pair, scale(2), to], {}),
        ("QLinearMul", [*pair, scale(4), to], {}),
        ("QLinearAveragePool", [u8(1, 2, 12, 12) // 8, half, from_, half, to],
         {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("QLinearGlobalAveragePool", [u8(1, 40, 2, 2) // 8, half, from_, half, to],
         {"channels_last": 0}),
        ("QLinearLeakyRelu", [a, half, from_, scale(2), to], {"alpha": 0.5}),
        ("QLinearConcat", [scale(2), to, *pair], {"axis": 1}),
    ]  # fmt: skip
    for op, inputs, attributes in cases:
        mine, theirs = both(op, inputs, **attributes)
        np.testing.assert_array_equal(mine[0], theirs[0], err_msg=op)


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_quantised_activations(op: str) -> None:
    out = [scale(1 / 256), np.array(0, np.uint8)] if op == "QLinearSigmoid" else [scale(), u8()]
    steps_agree(op, [u8(3, 7), scale(), u8(), *out])


def test_quantised_pooling_softmax_and_concat() -> None:
    zero = np.array(100, np.uint8)
    steps_agree(
        "QLinearGlobalAveragePool",
        [u8(2, 3, 4, 5), scale(), zero, scale(0.01), zero],
        channels_last=0,
    )
    steps_agree(
        "QLinearSoftmax",
        [u8(2, 9), scale(), zero, scale(1 / 256), np.array(0, np.uint8)],
        axis=-1,
        opset=13,
    )
    steps_agree(
        "QLinearConcat",
        [scale(0.05), zero, u8(2, 3), scale(0.02), u8(), u8(2, 4), scale(0.1), u8()],
        axis=1,
    )


def test_matrix_products_of_integers() -> None:
    a, b = f32(3, 16), i8(16, 5)
    agree("DynamicQuantizeMatMul", [a, b, scale(), np.array(3, np.int8)])
    agree("DynamicQuantizeMatMul", [a, b, scale(), None, f32(5)])
    agree(
        "MatMulIntegerToFloat",
        [u8(3, 16), b, scale(), scale(0.1), np.array(7, np.uint8), np.array(3, np.int8), f32(5)],
    )


@pytest.mark.parametrize("zeros", [False, True])
def test_matrix_products_with_four_bit_weights(*, zeros: bool) -> None:
    depth, width, block = 64, 6, 32
    weights = u8(width, depth // block, block // 2)
    scales = np.abs(f32(width * depth // block)) * np.float32(0.1)
    extra: list[Array | None] = [u8(width * ((depth // block + 1) // 2))] if zeros else []
    agree(
        "MatMulNBits",
        [f32(3, depth), weights, scales, *extra],
        K=depth,
        N=width,
        bits=4,
        block_size=block,
    )


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_an_lstm_quantised_on_the_fly(direction: str) -> None:
    ways = 2 if direction == "bidirectional" else 1
    x, w, r = f32(6, 2, 8), i8(ways, 8, 20), i8(ways, 5, 20)
    s = np.full(ways, 0.01, np.float32)
    z = np.zeros(ways, np.int8)
    inputs = [
        x,
        w,
        r,
        f32(ways, 40) * 0.1,
        None,
        f32(ways, 2, 5),
        f32(ways, 2, 5),
        None,
        s,
        z,
        s,
        z,
    ]
    mine, theirs = both("DynamicQuantizeLSTM", inputs, 3, direction=direction, hidden_size=5)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=0.02)
