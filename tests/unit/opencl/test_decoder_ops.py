"""Operators of language models on OpenCL devices: weights of few bits, attention to a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_models import NodeSet
from onnx import TensorProto
from system_limits import WINDOWS

Array = np.ndarray[Any, np.dtype[Any]]

CONTRIB = "com.microsoft"
HEADS, GROUPS, SIZE = 4, 2, 16
RANDOM = np.random.default_rng(21)


def f32(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def add_product(
    nodes: NodeSet,
    sizes: tuple[int, int, int],
    *,
    bits: int = 4,
    block: int = 32,
    zeros: bool = False,
    bias: bool = False,
    accuracy_level: int = 0,
) -> str:
    """A MatMulNBits of M, K and N."""
    rows, depth, width = sizes
    blocks = -(-depth // block)
    inputs: list[Array | None] = [
        f32(rows, depth), u8(width, blocks, block * bits // 8),
        (RANDOM.uniform(0.5, 1.5, (width, blocks)) / (1 << bits)).astype(np.float32),
    ]  # fmt: skip
    inputs.append(u8(width, -(-blocks * bits // 8)) if zeros else None)
    inputs += [None, f32(width)] if bias else []
    shape = {"K": depth, "N": width, "bits": bits, "block_size": block}
    shape["accuracy_level"] = accuracy_level
    return nodes.add("MatMulNBits", inputs, (1, 2, 3, 5), domain=CONTRIB, **shape)


def add_attention(
    nodes: NodeSet,
    new: int,
    past: int,
    *,
    room: int = 0,
    batch: int = 1,
    kind: type[np.floating[Any]] = np.float32,
    **fields: Any,
) -> str:
    """A GroupQueryAttention after `past` positions, in a cache that has room for more."""
    total = max(new + past, room)
    query = f32(batch, new, HEADS * SIZE)
    keys, values = (f32(batch, new, GROUPS * SIZE) for _ in range(2))
    caches = [f32(batch, GROUPS, room or past, SIZE) for _ in range(2)]
    lengths = np.full(batch, new + past - 1, np.int32)
    angles = f32(max(64, total), SIZE // 2)
    inputs = [query, keys, values, *(caches if room or past else (None, None)), lengths]
    inputs += [np.array(total, np.int32), np.cos(angles), np.sin(angles)]
    inputs = [x.astype(kind) if x is not None and x.dtype == np.float32 else x for x in inputs]
    return nodes.add(
        "GroupQueryAttention", inputs, (6, 7, 8), 3, domain=CONTRIB, num_heads=HEADS,
        kv_num_heads=GROUPS, **fields,
    )  # fmt: skip


NO_POCL = pytest.mark.skipif(WINDOWS, reason="PyPI has no PoCL for Windows")
OPTIONS = ({}, pytest.param({"platform": "portable"}, marks=NO_POCL), {"templates": "gpu"})
"""The first device, PoCL's, and kernels of work-groups."""


def check(nodes: NodeSet, options: dict[str, str], valid: dict[str, int] | None = None) -> None:
    """As onnxruntime, whose sums of products are of another order.

    Args:
        nodes: What is run.
        options: Of the EP.
        valid: Positions of a node's caches that are compared; others are nobody's business.
    """
    found, right = nodes.run_with(options), nodes.run_elsewhere()
    for info, mine, theirs in zip(nodes.model.graph.output, found, right, strict=True):
        end = (valid or {}).get(info.name.split("/")[0])
        part = (slice(None), slice(None), slice(end if mine.ndim == 4 else None))
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        limit = 1e-4 if mine.dtype == np.float32 else 4e-3  # float16 has steps of 2**-11
        np.testing.assert_allclose(mine[part[: mine.ndim]], theirs[part[: mine.ndim]], limit, limit)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_products_with_weights_of_few_bits_agree_with_onnxruntime(options: dict[str, str]) -> None:
    nodes = NodeSet()
    for rows in (1, 2, 9):
        add_product(nodes, (rows, 300, 70), block=128, zeros=True)
        add_product(nodes, (rows, 64, 33), bits=8, block=16, bias=True)
    add_product(nodes, (1, 512, 3), block=256)
    add_product(nodes, (2, 64, 40), bits=8, zeros=True)
    check(nodes, options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_zero_points_may_be_floats(options: dict[str, str]) -> None:
    nodes = NodeSet()
    for rows in (1, 9):
        inputs = [
            f32(rows, 96), u8(40, 3, 16),
            RANDOM.uniform(0.01, 0.1, (40, 3)).astype(np.float32),
            RANDOM.uniform(0, 16, (40, 3)).astype(np.float32),
        ]  # fmt: skip
        shape = {"K": 96, "N": 40, "bits": 4, "block_size": 32}
        nodes.add("MatMulNBits", inputs, (1, 2, 3), domain=CONTRIB, **shape)
    check(nodes, options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_products_of_many_rows_in_parts_of_their_depth_agree_with_onnxruntime(
    options: dict[str, str],
) -> None:
    nodes = NodeSet()
    add_product(nodes, (17, 1100, 192), zeros=True)  # three parts, three or six panels
    add_product(nodes, (13, 1041, 64), bits=8, block=128, bias=True)  # an odd depth
    add_product(nodes, (6, 512, 8), block=256)
    check(nodes, options)


@pytest.mark.parametrize(
    ("level", "options"),
    [
        (0, {}),
        pytest.param(0, {"platform": "portable"}, marks=NO_POCL),
        (0, {"templates": "gpu"}),
        (4, {}),
    ],
    ids=str,
)
def test_operations_after_a_product_with_few_bits_agree_with_onnxruntime(
    level: int, options: dict[str, str]
) -> None:
    nodes = NodeSet()
    for rows, depth, width, block in (
        (1, 64, 96, 32), (3, 96, 40, 16), (9, 1100, 64, 32), (17, 512, 72, 64),
    ):  # fmt: skip
        sizes = (rows, depth, width)
        gate = add_product(nodes, sizes, block=block, bias=True, accuracy_level=level)
        up = add_product(nodes, sizes, block=block, zeros=True, accuracy_level=level)
        smooth = nodes.add("Sigmoid", [gate])
        gated = nodes.add("Mul", [nodes.add("Mul", [gate, smooth]), up])
        nodes.add("Add", [nodes.add("Mul", [gated, np.float32([0.5])], (1,)), f32(rows, width)])
    last = [name for name in (o.name for o in nodes.model.graph.output) if name.startswith("Add")]
    del nodes.model.graph.output[:]
    for name in last:
        nodes.model.graph.output.add().name = name
    found = nodes.run_with(options)
    for mine, theirs in zip(found, nodes.run_elsewhere(), strict=True):
        limit = 2e-2 if level else 1e-4  # a device may take inputs of 8 bits, or not
        assert float(np.abs(mine - theirs).max()) <= limit * float(np.abs(theirs).max())


def quantise_inputs(x: Array, block: int) -> Array:
    """[M, K] with each block of a row rounded to 127ths of its largest magnitude.

    As MLAS's CompInt8 products of MatMulNBits have it, where `accuracy_level` is 4.
    """
    rows, depth = x.shape
    filled = np.pad(x, ((0, 0), (0, -depth % block))).reshape(rows, -1, block)
    most = np.abs(filled).max(axis=2, keepdims=True)
    steps = np.rint(filled * (np.float32(127) / np.where(most > 0, most, np.float32(1))))
    return (steps * most / np.float32(127)).reshape(rows, -1)[:, :depth]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_products_of_accuracy_level_4_may_be_those_of_inputs_of_8_bits(
    options: dict[str, str],
) -> None:
    nodes = NodeSet()
    blocks = {}
    for sizes, block, zeros in (
        ((1, 896, 96), 32, False), ((1, 300, 70), 128, True), ((2, 64, 40), 16, True),
        ((4, 96, 64), 32, False), ((9, 72, 33), 16, False), ((40, 1041, 64), 64, False),
        ((67, 512, 96), 256, True),
    ):  # fmt: skip
        name = add_product(nodes, sizes, block=block, zeros=zeros, accuracy_level=4)
        blocks[f"{name.split('/')[0]}.0"] = block
    found = nodes.run_with(options)
    for node in nodes.model.graph.node:
        next(a for a in node.attribute if a.name == "accuracy_level").i = 0
    exact = nodes.run_elsewhere()
    for x, block in blocks.items():
        nodes.feeds[x] = quantise_inputs(nodes.feeds[x], block)
    by_bytes = nodes.run_elsewhere()
    near = [all(map(is_near, found, truth)) for truth in (exact, by_bytes)]
    takes_bytes = ["platform" in options] if options else [False, True]  # PoCL's is the CPU
    assert near in [[not taken, taken] for taken in takes_bytes]


def is_near(found: Array, right: Array) -> bool:
    """Within a rounding of few inputs to the other of two neighbours."""
    return float(np.abs(found - right).max()) < 1e-3 * float(np.abs(right).max())


def test_products_of_bytes_do_not_hide_what_is_not_finite() -> None:
    nodes = NodeSet()
    x = add_product(nodes, (3, 64, 32), accuracy_level=4).split("/")[0] + ".0"
    nodes.feeds[x][0, 5], nodes.feeds[x][1, 40] = np.nan, -np.inf
    (found,) = nodes.run()
    assert not np.isfinite(found[:2]).any()
    assert np.isfinite(found[2]).all()


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_attention_to_a_cache_agrees_with_onnxruntime(
    options: dict[str, str], kind: type[np.floating[Any]]
) -> None:
    nodes, valid = NodeSet(), {}
    fields: dict[str, Any]
    for new, past, room, fields in (
        (7, 0, 0, {"do_rotary": 1}),
        (1, 5, 0, {"local_window_size": 4, "softcap": 2.0}),
        (1, 40, 50, {"do_rotary": 1, "rotary_interleaved": 1, "scale": 0.3}),
        (3, 4, 20, {"do_rotary": 1}),
        (6, 0, 20, {"smooth_softmax": 1}),
        (1, 6, 0, {"do_rotary": 1, "batch": 3}),
        (40, 0, 0, {"do_rotary": 1, "batch": 2}),
        (37, 21, 60, {"do_rotary": 1, "rotary_interleaved": 1, "softcap": 1.5}),
        (33, 0, 40, {"local_window_size": 5, "smooth_softmax": 1}),
        (1, 600, 620, {"scale": 1.5}),  # three blocks of keys for a work-group
        (5, 520, 530, {"local_window_size": 300, "softcap": 3.0}),
    ):
        name = add_attention(nodes, new, past, room=room, kind=kind, **fields)
        valid[name.split("/")[0]] = new + past
    check(nodes, options, valid)


def test_attention_of_a_cache_in_another_type_than_its_queries_is_refused() -> None:
    """ONNX Runtime's schema has one type for both; a model may say otherwise."""
    nodes = NodeSet()
    name = add_attention(nodes, 1, 5, room=10)
    for position in (3, 4):
        key = f"{name.split('/')[0]}.{position}"
        nodes.feeds[key] = nodes.feeds[key].astype(np.float16)
        info = next(info for info in nodes.model.graph.input if info.name == key)
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    assert "inputs of float16 and float32" in nodes.refusals()[name.split("/")[0]]


def test_decoder_operators_that_no_kernel_fits_are_refused_with_the_reason() -> None:
    nodes = NodeSet()
    prompt, lengths = f32(1, 2, 128), np.ones(1, np.int32)
    fields = {"domain": CONTRIB, "num_heads": HEADS, "kv_num_heads": GROUPS}
    packed = [prompt, None, None, None, None, lengths]
    total = np.array(2, np.int32)
    bias = [*packed, total, None, None, None, f32(1, 4, 2, 2)]
    product = [f32(2, 32), u8(8, 1, 16), f32(8, 1)]
    shape = {"domain": CONTRIB, "K": 32, "N": 8, "block_size": 32}
    asked = {
        nodes.add("GroupQueryAttention", [*packed, total], **fields): "not known before the run",
        nodes.add("GroupQueryAttention", bias, (6,), **fields): "a bias of the scores",
        nodes.add("MatMulNBits", product, **shape): "not known before the run",
        nodes.add("MatMulNBits", [f32(2, 32), u8(8, 1, 8), f32(8, 1)], (1, 2), bits=2, **shape): (
            "weights of 2 bits"
        ),
    }
    found = nodes.refusals()
    for name, reason in asked.items():
        assert reason in found[name.split("/")[0]]


def test_a_length_that_the_cache_has_no_room_for_is_an_error() -> None:
    nodes = NodeSet()
    add_attention(nodes, 1, 5, room=10)
    lengths = next(name for name in nodes.feeds if name.endswith(".5"))
    nodes.feeds[lengths] = np.array([10], np.int32)
    with pytest.raises(Exception, match="index") as caught:
        nodes.run()
    assert type(caught.value).__module__.startswith("ort_lite")
