"""com.microsoft convolutions, products and pools on the CPU EP, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu_contrib.peer import RANDOM, agree, both, f32, i8, scale, steps_agree, u8

from eps.cpu.kernels import few_bit_panels

ZERO = np.array(110, np.uint8)
ACTIVATIONS: list[tuple[str, list[float]]] = [
    ("Relu", []),
    ("Tanh", []),
    ("Sigmoid", []),
    ("LeakyRelu", [0.2]),
    ("Clip", [-0.5, 1.5]),
    ("HardSigmoid", [0.3, 0.4]),
]


@pytest.mark.parametrize(("name", "parameters"), ACTIVATIONS, ids=lambda v: str(v))
def test_a_convolution_with_an_activation(name: str, parameters: list[float]) -> None:
    extra: dict[str, Any] = {"activation_params": parameters} if parameters else {}
    inputs = [f32(1, 4, 9, 9), f32(6, 4, 3, 3), f32(6)]
    agree("FusedConv", inputs, pads=[1, 1, 1, 1], activation=name, **extra)


def test_a_convolution_that_adds_a_tensor() -> None:
    inputs = [f32(1, 4, 9, 9), f32(6, 4, 3, 3), f32(6), f32(1, 6, 7, 7)]
    agree("FusedConv", inputs, activation="Relu")
    agree("FusedConv", [inputs[0], inputs[1], None, inputs[3]])


@pytest.mark.parametrize(("name", "parameters"), ACTIVATIONS[:4], ids=lambda v: str(v))
def test_a_product_with_an_activation(name: str, parameters: list[float]) -> None:
    extra: dict[str, Any] = {"activation_alpha": parameters[0]} if parameters else {}
    agree("FusedGemm", [f32(3, 5), f32(4, 5), f32(4)], transB=1, activation=name, **extra)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("attributes", [{}, {"pads": [1] * 4}, {"ceil_mode": 1}], ids=str)
def test_a_maximum_pool_with_channels_last(dtype: type, attributes: dict[str, Any]) -> None:
    x = RANDOM.integers(0, 100, (2, 8, 8, 5)).astype(dtype)
    agree("NhwcMaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], **attributes)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("group", [1, 4])
def test_a_quantised_convolution_with_channels_last(last: int, group: int) -> None:
    x = u8(1, 7, 7, 8) if last else u8(1, 8, 7, 7)
    w, zero = i8(8, 8 // group, 3, 3), np.array(0, np.int8)
    inputs = [x, scale(), ZERO, w, scale(0.01), zero, scale(0.1), ZERO]
    inputs.append(RANDOM.integers(-500, 500, 8).astype(np.int32))
    steps_agree(
        "QLinearConv",
        inputs,
        constants=tuple(range(1, 9)),
        pads=[1, 1, 1, 1],
        group=group,
        channels_last=last,
    )


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("attributes", [{}, {"pads": [1] * 4}, {"count_include_pad": 1}], ids=str)
def test_a_quantised_average_pool(last: int, attributes: dict[str, Any]) -> None:
    x = u8(1, 8, 8, 5) if last else u8(1, 5, 8, 8)
    inputs = [x, scale(), ZERO, scale(0.03), np.array(7, np.uint8)]
    steps_agree("QLinearAveragePool", inputs, kernel_shape=[3, 3], channels_last=last, **attributes)


def test_a_quantised_choice() -> None:
    chosen = RANDOM.integers(0, 2, (3, 4)).astype(bool)
    inputs = [chosen, u8(3, 4), scale(), ZERO, u8(3, 4), scale(0.05), ZERO, scale(0.04), ZERO]
    steps_agree("QLinearWhere", inputs)


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("columns", [False, True])
def test_a_quantised_gemm(*, turn: int, columns: bool) -> None:
    a, b = u8(6, 40), i8(9, 40) if turn else i8(40, 9)
    b_scale = np.abs(f32(9)) * np.float32(0.01) if columns else scale(0.01)
    b_zero = np.zeros(9, np.int8) if columns else np.array(3, np.int8)
    c = RANDOM.integers(-500, 500, 9).astype(np.int32)
    inputs = [a, scale(), ZERO, b, b_scale, b_zero, c]
    agree("QGemm", inputs, transB=turn, constants=(1, 2, 3, 4, 5, 6))
    steps_agree("QGemm", [*inputs, scale(0.3), ZERO], transB=turn, constants=(3, 4, 5))


@pytest.mark.parametrize("constants", [(), (1, 2, 3)], ids=["inputs", "initializers"])
def test_a_deep_product_quantised_on_the_fly(constants: tuple[int, ...]) -> None:
    inputs = [f32(2, 3, 700), i8(700, 9), np.abs(f32(9)) * np.float32(0.01), np.zeros(9, np.int8)]
    agree("DynamicQuantizeMatMul", inputs, constants=constants)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "packed"])
@pytest.mark.parametrize("constants", [(), (1, 2)], ids=["inputs", "initializers"])
def test_a_product_with_weights_of_few_bits(
    bits: int, zeros: str, constants: tuple[int, ...]
) -> None:
    depth, width, block = 80, 6, 32
    blocks = -(-depth // block)
    weights = u8(width, blocks, block * bits // 8)
    inputs = [f32(2, 3, depth), weights, np.abs(f32(width, blocks)) * np.float32(0.1)]
    if zeros == "packed":
        inputs.append(u8(width, -(-blocks * bits // 8)))
        constants = (*constants, 3) if constants else ()
    options = {"K": depth, "N": width, "bits": bits, "block_size": block}
    agree("MatMulNBits", inputs, constants=constants, **options)


@pytest.mark.parametrize(
    ("bits", "zeros"),
    [
        *[(bits, zeros) for bits in (2, 4, 8) for zeros in ("none", "packed")],
        *[(bits, "floats") for bits in (2, 4)],  # onnxruntime's CPU has none of 8 bits
    ],
)
def test_large_weights_are_unpacked_by_panels(
    bits: int, zeros: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last panel has fewer columns, and the last block fewer elements than the others."""
    monkeypatch.setattr(few_bit_panels, "PANEL_BYTES", 5 * 80 * 4)
    depth, width, block, blocks = 80, 23, 32, 3
    inputs = [f32(3, depth), u8(width, blocks, block * bits // 8), np.abs(f32(width, blocks))]
    if zeros == "packed":
        inputs.append(u8(width, -(-blocks * bits // 8)))
    elif zeros == "floats":
        inputs.append(f32(width, blocks))
    (mine,), (theirs,) = both("MatMulNBits", inputs, K=depth, N=width, bits=bits, block_size=block)
    atol = 1e-6 * np.abs(theirs).max()  # large products may cancel each other
    np.testing.assert_allclose(mine, theirs, rtol=3e-5, atol=atol)


def test_steps_of_a_byte_are_in_the_order_of_its_bits() -> None:
    packed = np.array([[0b11_10_01_00, 0b00_01_10_11]], np.uint8)[:, ::-1]
    assert few_bit_panels.unpack_bits(packed, 2).tolist() == [[3, 2, 1, 0, 0, 1, 2, 3]]
    assert few_bit_panels.unpack_bits(packed, 4).tolist() == [[0b1011, 0b0001, 0b0100, 0b1110]]
    assert few_bit_panels.unpack_bits(packed, 8) is packed


@pytest.mark.parametrize("kind", [0, 1], ids=["FP4", "NF4"])
def test_a_product_with_codes_of_four_bits(kind: int) -> None:
    inputs = [f32(3, 64), u8(64 * 5 // 2), np.abs(f32(64 * 5 // 32))]
    agree("MatMulBnb4", inputs, K=64, N=5, block_size=32, quant_type=kind, constants=(1, 2))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_a_quantised_table(*, zeros: bool, bits: int) -> None:
    columns = 64
    table = u8(20, columns * bits // 8)
    inputs = [table, np.array([[0, 7], [19, 3]], np.int64), np.abs(f32(20, 2))]
    if zeros:
        inputs.append(u8(20, 2 * bits // 8))
    constants = tuple(i for i in range(len(inputs)) if i != 1)
    agree(
        "GatherBlockQuantized",
        inputs,
        bits=bits,
        block_size=32,
        quantize_axis=1,
        gather_axis=0,
        constants=constants,
    )


def test_scales_and_zero_points_of_16_bits() -> None:
    x, zero = f32(4, 6) * np.float32(50), np.array(300, np.uint16)
    agree("QuantizeLinear", [x, scale(), zero])
    agree("DequantizeLinear", [RANDOM.integers(0, 999, (4, 6)).astype(np.uint16), scale(), zero])
    agree("QuantizeLinear", [x, np.abs(f32(6)), np.zeros(6, np.uint8)], axis=1)


def test_operators_that_onnx_has_too() -> None:
    agree("Pad", [f32(3, 4), np.array([1, 0, 2, 1], np.int64), scale(7)])
    agree("Trilu", [f32(4, 5), np.array(1, np.int64)], upper=0)
    agree("GatherND", [f32(3, 4), np.array([[0, 1], [2, 3]], np.int64)])
    agree("GridSample", [f32(1, 2, 5, 5), f32(1, 3, 3, 2)], align_corners=1)
    agree("Range", [np.array(1, np.float32), np.array(7, np.float32), np.array(2, np.float32)])
    agree("Range", [np.array([3], np.int64), np.array([9], np.int64)])
    agree("ExpandDims", [f32(3, 4), np.array(-1, np.int32)])


def test_small_operators() -> None:
    agree("Unique", [np.array([3, 1, 3, 2, 1, 1], np.float32)], 3)
    agree("Inverse", [f32(2, 4, 4) + 4 * np.eye(4, dtype=np.float32)])
    agree("CDist", [f32(4, 8), f32(5, 8)], metric="sqeuclidean")
    agree("CDist", [f32(4, 8), f32(5, 8)], metric="euclidean")
    agree("MatMulInteger16", [i8(3, 4).astype(np.int16), i8(4, 5).astype(np.int16)])
    ids = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 5, 4]], np.int64)
    agree("NGramRepeatBlock", [ids, f32(2, 8)], ngram_size=3)


@pytest.mark.parametrize("rows", [2, 0])
def test_simplified_layer_normalization_of_the_onnx_domain(rows: int) -> None:
    mine, theirs = both(
        "SimplifiedLayerNormalization", [f32(rows, 3, 8), f32(8)], domain="", epsilon=1e-6
    )
    assert mine[0].shape == theirs[0].shape
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5, atol=1e-5)
