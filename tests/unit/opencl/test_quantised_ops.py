"""Quantised operators on the device: integers exact, the rest against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_models import NodeSet

Array = np.ndarray[Any, np.dtype[Any]]


def bytes_of(random: np.random.Generator, *shape: int, signed: bool = False) -> Array:
    """Small and extreme 8-bit integers; signed ones within 63 of zero.

    onnxruntime saturates sums of larger ones on processors without VNNI.
    """
    if signed:
        return random.integers(-63, 64, shape).astype(np.int8)
    return random.choice([0, 1, 7, 200, 255], shape).astype(np.uint8)


def scale(value: float) -> Array:
    return np.array(value, np.float32)


def test_integer_products_are_exact_however_deep() -> None:
    random = np.random.default_rng(5)
    nodes, right = NodeSet(), []
    for depth, fixed in ((9, ()), (300, (1,)), (700, ()), (2000, (1,))):
        a, b = bytes_of(random, 3, depth), bytes_of(random, depth, 5)
        a[:2], b[:, :2] = 255, 255
        zeros = np.array(0, np.uint8), np.array(3, np.uint8)
        nodes.add("MatMulInteger", [a, b, *zeros], fixed)
        right.append(a.astype(np.int32) @ (b.astype(np.int32) - 3))
    rows = np.array([4, 0, 255], np.uint8)
    a, b = bytes_of(random, 3, 8), bytes_of(random, 8, 5, signed=True)
    columns = random.integers(-5, 5, 5).astype(np.int8)
    nodes.add("MatMulInteger", [a, b, rows, columns], (1, 3))
    centred = a.astype(np.int32) - rows[:, None]
    right.append(centred @ (b.astype(np.int32) - columns))
    for mine, theirs in zip(nodes.run(), right, strict=True):
        assert mine.dtype == np.int32
        np.testing.assert_array_equal(mine, theirs)


def add_quantised_nodes(nodes: NodeSet, random: np.random.Generator) -> None:
    x = (random.standard_normal((2, 6, 5, 4)) * 40).astype(np.float32)
    point = np.array(131, np.uint8)
    nodes.add("QuantizeLinear", [x, scale(0.37), point], (1, 2))
    signed = random.integers(-9, 9, 6).astype(np.int8)
    each = random.random(6).astype(np.float32) + np.float32(0.1)
    nodes.add("QuantizeLinear", [x, each, signed], (1, 2), axis=1)
    nodes.add("QuantizeLinear", [x, scale(0.01), np.array(7, np.int16)], (1, 2))
    blocks = random.random((2, 3, 5, 4)).astype(np.float32) + np.float32(0.1)
    nodes.add("QuantizeLinear", [x, blocks], (1,), axis=1, block_size=2)
    held = bytes_of(random, 2, 6, 5, 4)
    nodes.add("DequantizeLinear", [held, scale(0.2), point], (1, 2))
    nodes.add("DequantizeLinear", [held.view(np.int8), each, signed], (1, 2), axis=1)
    nodes.add("DequantizeLinear", [held.astype(np.int32) - 99, scale(0.2)], (1,))
    for values in (x, np.abs(x) + 1, -np.abs(x) - 1, np.zeros_like(x)):
        nodes.add("DynamicQuantizeLinear", [values], (), 3)


def add_requantised_nodes(nodes: NodeSet, random: np.random.Generator) -> None:
    def zero(value: int, kind: type[np.generic] = np.uint8) -> Array:
        return np.array(value, kind)

    image = bytes_of(random, 1, 8, 9, 7)
    kernel = bytes_of(random, 6, 8, 3, 3, signed=True)
    each = random.random(6).astype(np.float32) / 100
    none = np.zeros(6, np.int8)
    bias = random.integers(-9000, 9000, 6).astype(np.int32)
    nodes.add(
        "QLinearConv",
        [image, scale(0.1), zero(7), kernel, each, none, scale(0.5), zero(120), bias],
        range(1, 9),
        pads=[1, 1, 1, 1],
        strides=[2, 1],
    )
    alone = bytes_of(random, 8, 1, 3, 3, signed=True)
    nodes.add(
        "QLinearConv",
        [image, scale(0.1), zero(7), alone, scale(0.02), zero(0, np.int8), scale(0.5), zero(120)],
        range(1, 8),
        group=8,
    )
    nodes.add("ConvInteger", [image, np.abs(kernel).view(np.uint8), zero(3), zero(2)], (1, 2, 3))
    wide = bytes_of(random, 1, 200, 4, 4)
    deep = bytes_of(random, 5, 200, 3, 3)
    nodes.add("ConvInteger", [wide, deep, zero(5)], (1, 2))
    left, right = bytes_of(random, 3, 40), bytes_of(random, 40, 6)
    scales = scale(0.02), zero(9), scale(0.9), zero(100)
    nodes.add(
        "QLinearMatMul",
        [left, scale(0.1), zero(3), right, *scales],
        (1, 2, 3, 4, 5, 6, 7),
    )


@pytest.mark.parametrize("platform", ["", "portable"])
def test_quantising_agrees_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_quantised_nodes(nodes, np.random.default_rng(6))
    nodes.check(platform=platform, rtol=2e-7, atol=0)


@pytest.mark.parametrize("platform", ["", "portable"])
def test_quantised_products_agree_with_onnxruntime(platform: str) -> None:
    """To one step of the result: the three scales are multiplied in another order."""
    nodes = NodeSet()
    add_requantised_nodes(nodes, np.random.default_rng(7))
    nodes.check(platform=platform, rtol=0, atol=1)


def add_products_to_floats(nodes: NodeSet, random: np.random.Generator) -> None:
    domain = {"domain": "com.microsoft"}
    a = (random.standard_normal((2, 3, 40)) * 4).astype(np.float32)
    b, bias = bytes_of(random, 40, 6, signed=True), random.standard_normal(6).astype(np.float32)
    each = random.random(6).astype(np.float32)
    none = np.array(0, np.int8)
    nodes.add("DynamicQuantizeMatMul", [a, b, scale(0.1), none], (1, 2, 3), **domain)
    nodes.add("DynamicQuantizeMatMul", [a, b, each, None, bias], (1, 2, 4), **domain)
    nodes.add("DynamicQuantizeMatMul", [a, b, scale(0.1), none, bias], (), **domain)
    held, point = bytes_of(random, 3, 40), np.array(7, np.uint8)
    scales = [scale(0.1), scale(0.02)]
    nodes.add("MatMulIntegerToFloat", [held, b, *scales], (1, 2, 3), **domain)
    nodes.add(
        "MatMulIntegerToFloat",
        [held, b, scale(0.1), each, point, np.zeros(6, np.int8), bias],
        (1, 2, 3, 4, 5, 6),
        **domain,
    )


@pytest.mark.parametrize("platform", ["", "portable"])
def test_integer_products_to_floats_agree_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_products_to_floats(nodes, np.random.default_rng(8))
    nodes.check(platform=platform, rtol=1e-6, atol=1e-5)


def test_quantised_operators_that_no_kernel_fits_are_refused_with_the_reason() -> None:
    x, held = np.ones((2, 6), np.float32), np.ones((2, 6), np.uint8)
    image, kernel = np.ones((1, 2, 4, 4), np.uint8), np.ones((3, 2, 3, 3), np.uint8)
    nodes = NodeSet()
    asked = {
        nodes.add("QuantizeLinear", [x, x[:, :3]], axis=1, block_size=2): "scales of blocks",
        nodes.add("DequantizeLinear", [held, scale(1).astype(np.float16)]): "float16",
        nodes.add("ConvInteger", [image, kernel]): "weight of a convolution is not known",
    }
    found = nodes.refusals()
    for name, reason in asked.items():
        assert reason in found[name.split("/")[0]]
