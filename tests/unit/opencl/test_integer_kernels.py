"""Products of 8-bit integers on every platform: exact sums, and QDQ as ONNX defines it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from device_models import NodeSet
from onnx.reference import ReferenceEvaluator
from opencl_devices import device_names, first_working_device

from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.runtime.describe_target import describe_target
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

DEVICES = device_names()
KINDS = (np.uint8, np.int8)


def integers(random: np.random.Generator, kind: type[np.integer[Any]], *shape: int) -> Array:
    """The whole range, its ends often."""
    info = np.iinfo(kind)
    drawn = random.integers(info.min, info.max + 1, shape)
    ends = random.choice([info.min, info.max], shape)
    return np.asarray(np.where(random.random(shape) < 0.2, ends, drawn), kind)


def weights(random: np.random.Generator, kind: type[np.integer[Any]], *shape: int) -> Array:
    """As `integers`, or as trained ones: most are small and signed, with neighbours at the ends."""
    if kind is np.uint8 or random.random() < 0.4:
        return integers(random, kind, *shape)
    drawn = np.clip(np.rint(random.standard_normal(shape) * 20), -60, 60)
    flat = drawn.reshape(-1)
    for at in range(0, flat.size, max(37, flat.size // 9)):
        flat[at : at + 2] = random.choice([-128, 127, 100, -1], 2)[: flat[at : at + 2].size]
    return np.asarray(drawn, np.int8)


def product_cases() -> tuple[NodeSet, list[Array]]:
    """MatMulInteger over types, ranks, zero points, known weights and weights that are inputs."""
    random = np.random.default_rng(1)
    nodes, right = NodeSet(), []
    shapes = [
        ((5, 7), (7, 9)), ((3, 8), (8, 16)), ((1, 33), (33, 40)), ((2, 3, 12), (12, 5)),
        ((2, 6, 4), (2, 4, 3)), ((11,), (11, 4)), ((9, 130), (130, 1)), ((4, 1), (1, 6)),
        ((2, 1, 5, 6), (3, 6, 2)), ((20, 64), (64, 24)),
        ((7, 256), (256, 33)), ((5, 403), (403, 16)), ((3, 255), (255, 48)),
        ((2, 5, 90), (2, 90, 17)),
    ]  # fmt: skip
    for index, (left, below) in enumerate(shapes):
        for known in ((), (1,)):
            a_kind, b_kind = KINDS[index % 2], KINDS[(index // 2 + len(known)) % 2]
            a, b = integers(random, a_kind, *left), weights(random, b_kind, *below)
            zeros = integers(random, a_kind, 1)[0], integers(random, b_kind, 1)[0]
            given = [np.array(z) for z in zeros[: index % 3]]
            fixed = (*known, *range(2, 2 + len(given) * (index % 2)))
            nodes.add("MatMulInteger", [a, b, *given], fixed)
            shift = [int(z) for z in zeros[: index % 3]] + [0, 0]
            right.append((a.astype(np.int32) - shift[0]) @ (b.astype(np.int32) - shift[1]))
    rows, columns = integers(random, np.uint8, 6), integers(random, np.int8, 10)
    a, b = integers(random, np.uint8, 6, 21), integers(random, np.int8, 21, 10)
    for fixed in ((), (1, 2, 3), (1, 3)):
        nodes.add("MatMulInteger", [a, b, rows, columns], fixed)
        right.append((a.astype(np.int32) - rows[:, None]) @ (b.astype(np.int32) - columns))
    return nodes, right


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_integers_are_exact(device: str) -> None:
    nodes, right = product_cases()
    for mine, theirs in zip(nodes.run_on(device, times=2), right, strict=True):
        assert mine.dtype == np.int32
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("device", DEVICES)
def test_deep_sums_are_exact_and_wrap(device: str) -> None:
    """Beyond 2**24, to which float32 counts, and beyond int32, as onnxruntime does."""
    nodes, right = NodeSet(), []
    for depth, value in ((3001, 255), (40_001, 255)):
        a = np.full((2, depth), value, np.uint8)
        b = np.full((depth, 3), value, np.uint8)
        b[0, 1], b[:, 2] = 254, 1
        nodes.add("MatMulInteger", [a, b], (1,))
        nodes.add("MatMulInteger", [a, b], ())
        exact = a.astype(np.int64) @ b.astype(np.int64)
        right += 2 * [exact.astype(np.int32)]
    assert exact.max() > np.iinfo(np.int32).max
    for mine, theirs in zip(nodes.run_on(device), right, strict=True):
        np.testing.assert_array_equal(mine, theirs)


CONVOLUTIONS: Sequence[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = (
    ((1, 3, 9, 8), (5, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 8, 7, 6), (16, 8, 1, 1), {}),
    ((1, 16, 9, 9), (24, 16, 3, 3), {"pads": [0, 1, 2, 1], "strides": [2, 2]}),
    ((1, 6, 8, 7), (9, 2, 3, 2), {"group": 3, "pads": [1, 0, 1, 2]}),
    ((1, 12, 9, 8), (12, 1, 3, 3), {"group": 12, "pads": [1, 1, 1, 1], "strides": [2, 1]}),
    ((1, 9, 10, 9), (9, 1, 5, 3), {"group": 9, "pads": [2, 3, 1, 0], "dilations": [1, 2]}),
    ((1, 5, 9, 9), (4, 5, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((2, 4, 20), (6, 4, 5), {"pads": [2, 1], "strides": [2]}),
    ((1, 40, 4, 4), (8, 40, 4, 4), {}),
)
"""Shapes of input and weights, and attributes."""


def convolution_cases(op_type: str) -> NodeSet:
    """Each shape with other types; zero points known, not known, for each channel, or absent."""
    random = np.random.default_rng(2)
    nodes = NodeSet()
    for index, (left, below, attributes) in enumerate(CONVOLUTIONS):
        x_kind, w_kind = KINDS[index % 2], KINDS[(index + 1) // 2 % 2]
        x, w = integers(random, x_kind, *left), weights(random, w_kind, *below)
        zero = np.array(integers(random, x_kind, 1)[0])
        away = np.array(integers(random, w_kind, 1)[0])
        if op_type == "ConvInteger":
            nodes.add(op_type, [x, w], (1,), **attributes)
            nodes.add(op_type, [x, w, zero], (1, 2), **attributes)
            nodes.add(op_type, [x, w, zero, away], (1, 3), **attributes)
            continue
        if len(left) == 3:
            continue  # onnx.reference accepts one scale for all channels there
        each = (random.random(below[0]) / 4000 + 1e-4).astype(np.float32)
        scale, out = np.array(0.37, np.float32), np.array(0.29, np.float32)
        held = np.array(integers(random, w_kind, 1)[0])
        zeros = np.broadcast_to(np.array(0, w_kind), below[:1]).copy()
        place = np.array(integers(random, x_kind, 1)[0])
        bias = random.integers(-3000, 3000, below[0]).astype(np.int32)
        nodes.add(
            op_type, [x, scale, zero, w, each, zeros, out, place, bias], range(1, 9), **attributes
        )
        nodes.add(
            op_type,
            [x, scale, zero, w, each[:1].reshape(()), held, out, place],
            range(1, 8),
            **attributes,
        )
    return nodes


def reference(nodes: NodeSet) -> list[Array]:
    """What onnx.reference gives."""
    return list(ReferenceEvaluator(nodes.model).run(None, nodes.feeds))


@pytest.mark.parametrize("device", DEVICES)
def test_convolutions_of_integers_are_exact(device: str) -> None:
    nodes = convolution_cases("ConvInteger")
    found = nodes.run_on(device, times=2)
    for mine, theirs, node in zip(found, reference(nodes), nodes.model.graph.node, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=node.name)


@pytest.mark.parametrize("device", DEVICES)
def test_requantised_convolutions_are_those_of_the_reference(device: str) -> None:
    """Scaled in float32 here and in float64 there: one result in a thousand may be a step off."""
    nodes = convolution_cases("QLinearConv")
    found = nodes.run_on(device, times=2)
    away = [
        np.abs(mine.astype(np.int32) - theirs.astype(np.int32)).reshape(-1)
        for mine, theirs in zip(found, reference(nodes), strict=True)
    ]
    steps = np.concatenate(away)
    assert steps.max() <= 1
    assert np.count_nonzero(steps) <= steps.size // 1000


def trained(random: np.random.Generator, *shape: int) -> Array:
    """Weights of which few neighbours are over 128 together: the kernel of quads, with a rest."""
    drawn = np.rint(random.standard_normal(shape) * 24).clip(-127, 127)
    drawn[0, ..., :2] = 127
    drawn[1, ..., :1] = -128
    return np.asarray(drawn, np.int8)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_quads_with_a_rest_are_exact(device: str, kind: type[np.integer[Any]]) -> None:
    """At the ends of both ranges, where two products do not fit into 16 bits."""
    random = np.random.default_rng(11)
    nodes, right = NodeSet(), []
    for depth, width in ((64, 40), (66, 24), (131, 17), (1021, 9), (4, 8)):
        a, b = integers(random, kind, 9, depth), trained(random, depth, width)
        a[:3] = np.iinfo(kind).max
        a[3:5] = np.iinfo(kind).min
        nodes.add("MatMulInteger", [a, b, np.array(3, kind)], (1, 2))
        right.append((a.astype(np.int32) - 3) @ b.astype(np.int32))
    for mine, theirs in zip(nodes.run_on(device, times=2), right, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    images = NodeSet()
    for shape, group, attributes in (
        ((16, 24, 3, 3), 1, {"pads": [1, 1, 1, 1]}),
        ((24, 9, 3, 2), 2, {"pads": [1, 0, 0, 2], "strides": [2, 1]}),
        ((8, 30, 2, 2), 1, {"dilations": [2, 2], "pads": [1, 1, 1, 1]}),
    ):
        w = np.moveaxis(trained(random, *shape[1:], shape[0]), -1, 0)
        x = integers(random, kind, 2, shape[1] * group, 9, 8)
        images.add("ConvInteger", [x, w, np.array(5, kind)], (1, 2), group=group, **attributes)
    for mine, theirs in zip(images.run_on(device, times=2), reference(images), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_kernel_of_quads_is_what_trained_weights_get() -> None:
    """And pairs of 16-bit integers those of which every quad would be multiplied twice."""
    random = np.random.default_rng(12)
    target = describe_target(first_working_device())
    for b, called in (
        (trained(random, 64, 40), "ol_dot"),
        (integers(random, np.int8, 64, 40), "ol_madd"),
    ):
        nodes = NodeSet()
        nodes.add("MatMulInteger", [integers(random, np.uint8, 9, 64), b], (1,))
        loaded = loader.load(nodes.model.SerializeToString(), SessionOptions())
        whole = loader.resolve(loaded.model, {})
        found = compile_partition(
            whole.extract(range(1), "product"), {"MatMulInteger0.0": (9, 64)}, target
        )
        body = found.source[found.source.index(found.calls[0].kernel) :]
        assert called in body
