"""com.microsoft attention operators on the CPU EP, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu.single_node import run_node
from unit.cpu_contrib.peer import RANDOM, Array, agree, both, f32, i8, scale, u8

MS = "com.microsoft"
B, L, N, H = 2, 5, 3, 16
HIDDEN = N * H


def mask_of(kind: str, total: int) -> Array:
    ends = np.array([total - 2, total], np.int32)
    if kind == "ends":
        return ends
    if kind == "ends and starts":
        return np.concatenate((ends, np.array([0, 1], np.int32)))
    if kind == "keys":
        return (np.arange(total) < ends[:, None]).astype(np.int32)
    return RANDOM.integers(0, 2, (B, L, total)).astype(np.int32)


@pytest.mark.parametrize("kind", ["ends", "ends and starts", "keys", "queries and keys"])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_takes_every_form_of_mask(kind: str, causal: int) -> None:
    inputs = [f32(B, L, 16), f32(16, 3 * HIDDEN), f32(3 * HIDDEN), mask_of(kind, L)]
    agree("Attention", inputs, num_heads=N, unidirectional=causal)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_a_past_and_a_bias(causal: int) -> None:
    past = f32(2, B, N, 4, H)
    inputs = [f32(B, L, 16), f32(16, 3 * HIDDEN), f32(3 * HIDDEN), None, past]
    agree("Attention", inputs, 2, num_heads=N, unidirectional=causal)
    added = f32(1, N, L, L)
    inputs = [f32(B, L, 16), f32(16, 3 * HIDDEN), f32(3 * HIDDEN), None, None, added]
    agree("Attention", inputs, num_heads=N, unidirectional=causal)


def test_attention_with_values_of_another_size_and_a_scale() -> None:
    sizes = [HIDDEN, HIDDEN, 2 * HIDDEN]
    inputs = [f32(B, L, 16), f32(16, sum(sizes)), f32(sum(sizes))]
    agree("Attention", inputs, num_heads=N, qkv_hidden_sizes=sizes, scale=0.3)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_on_quantised_inputs(causal: int) -> None:
    w, zero = i8(16, 3 * HIDDEN), np.array(3, np.int8)
    inputs = [u8(B, L, 16), w, f32(3 * HIDDEN), scale(0.01), scale(0.02), None]
    inputs += [np.array(120, np.uint8), zero]
    agree("QAttention", inputs, num_heads=N, unidirectional=causal)
    inputs[5] = mask_of("keys", L)
    agree("QAttention", inputs, num_heads=N)


def qkv(total: int = L) -> list[Array]:
    return [f32(B, L, HIDDEN), f32(B, total, HIDDEN), f32(B, total, HIDDEN)]


@pytest.mark.parametrize(
    "inputs",
    [
        qkv(),
        qkv(7),
        [*qkv(), f32(3 * HIDDEN)],
        [*qkv(7), None, mask_of("keys", 7)],
        [*qkv(7), None, mask_of("ends", 7)],
        [*qkv(), None, None, f32(B, N, L, L)],
        [*qkv(), f32(3 * HIDDEN), mask_of("keys", L), f32(1, 1, L, L)],
        [f32(B, L, HIDDEN), f32(B, N, 7, H), f32(B, N, 7, H)],
    ],
    ids=["self", "cross", "bias", "keys", "ends", "added", "all", "4-d"],
)
def test_multi_head_attention(inputs: list[Any]) -> None:
    agree("MultiHeadAttention", inputs, num_heads=N)


def test_packed_queries_keys_and_values_are_as_those_apart() -> None:
    packed = f32(B, L, N, 3, H)
    q, k, v = (np.ascontiguousarray(packed[:, :, :, i]).reshape(B, L, HIDDEN) for i in range(3))
    wanted = run_node("MultiHeadAttention", q, k, v, num_heads=N, domain=MS)
    for inputs in ([packed], [q, np.ascontiguousarray(packed[:, :, :, 1:])]):
        found = run_node("MultiHeadAttention", *inputs, num_heads=N, domain=MS)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_attention_with_a_past(causal: int) -> None:
    inputs = [*qkv(), None, None, None, f32(B, N, 4, H), f32(B, N, 4, H)]
    agree("MultiHeadAttention", inputs, 3, num_heads=N, unidirectional=causal)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    cos, sin = f32(32, H // 2), f32(32, H // 2)
    places = RANDOM.integers(0, 32, (B, L)).astype(np.int64)
    agree("RotaryEmbedding", [f32(B, L, HIDDEN), places, cos, sin], interleaved=interleaved)
    start = np.array([3], np.int64)
    agree("RotaryEmbedding", [f32(B, N, L, H), start, cos, sin], interleaved=interleaved)


def test_rotary_embedding_of_a_part_of_each_head() -> None:
    places = np.arange(L, dtype=np.int64)[None].repeat(B, 0)
    inputs = [f32(B, L, HIDDEN), places, f32(32, 2), f32(32, 2)]
    agree("RotaryEmbedding", inputs, num_heads=N, rotary_embedding_dim=4)


def grouped(
    *, new: int, past: int, room: int = 0, rotary: bool = False, packed: bool = False
) -> list[Array | None]:
    """Inputs of GroupQueryAttention with 4 heads and 2 key heads."""
    heads, groups, batch = 4, 2, B if new == 1 or not past else 1
    total = new + past
    kv = groups * H
    if packed:
        inputs: list[Array | None] = [f32(batch, new, heads * H + 2 * kv), None, None]
    else:
        inputs = [f32(batch, new, heads * H), f32(batch, new, kv), f32(batch, new, kv)]
    length = max(room, past)
    inputs += [f32(batch, groups, length, H), f32(batch, groups, length, H)]
    inputs += [np.full(batch, total - 1, np.int32), np.array(total, np.int32)]
    if rotary:
        inputs += [f32(64, H // 2), f32(64, H // 2)]
    return inputs


@pytest.mark.parametrize("sizes", [(6, 0), (1, 7), (3, 4)], ids=["prompt", "token", "several"])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"local_window_size": 3},
        {"softcap": 2.0},
        {"smooth_softmax": 1},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1, "scale": 0.2},
    ],
    ids=str,
)
def test_group_query_attention(sizes: tuple[int, int], attributes: dict[str, Any]) -> None:
    new, past = sizes
    inputs = grouped(new=new, past=past, rotary="do_rotary" in attributes)
    agree("GroupQueryAttention", inputs, 3, num_heads=4, kv_num_heads=2, **attributes)


def test_group_query_attention_of_packed_inputs_in_a_larger_cache() -> None:
    inputs = grouped(new=1, past=5, packed=True)
    agree("GroupQueryAttention", inputs, 3, num_heads=4, kv_num_heads=2)
    inputs = grouped(new=1, past=5, room=12)
    mine, theirs = both("GroupQueryAttention", inputs, 3, num_heads=4, kv_num_heads=2)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(mine[1][:, :, :6], theirs[1][:, :, :6])


def test_group_query_attention_with_sinks_and_a_bias() -> None:
    inputs = grouped(new=6, past=0)
    agree(
        "GroupQueryAttention",
        [*inputs, None, None, None, None, f32(4)],
        3,
        num_heads=4,
        kv_num_heads=2,
    )
    bias = f32(1, 4, 6, 6)
    agree(
        "GroupQueryAttention",
        [*inputs, None, None, None, bias],
        3,
        num_heads=4,
        kv_num_heads=2,
    )


@pytest.mark.parametrize(("new", "past"), [(1, 5), (3, 0)])
@pytest.mark.parametrize("smooth", [0, 1])
def test_group_query_attention_without_batch(new: int, past: int, smooth: int) -> None:
    """ONNX Runtime divides by the batch there, which ends the process (1.31)."""
    heads, groups, total = 4, 2, new + past
    caches = [np.zeros((0, groups, past, H), np.float32) for _ in range(2)]
    inputs = [np.zeros((0, new, n * H), np.float32) for n in (heads, groups, groups)]
    y, key, value = run_node(
        "GroupQueryAttention", *inputs, *caches, np.zeros(0, np.int32), np.array(total, np.int32),
        outputs=3, domain=MS, num_heads=heads, kv_num_heads=groups, smooth_softmax=smooth,
    )  # fmt: skip
    assert y.shape == (0, new, heads * H)
    assert key.shape == value.shape == (0, groups, total, H)
