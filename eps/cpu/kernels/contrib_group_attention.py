"""com.microsoft GroupQueryAttention and RotaryEmbedding: decoders with a cache of keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation, widen_floats
from eps.cpu.kernels.attention import merge_heads, rotate_pairs, split_heads
from eps.cpu.products import matmul
from eps.cpu.scaled_attention import check_scores
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def rotate_heads(
    x: Array, positions: Array, tables: tuple[Array, Array], *, interleaved: bool
) -> Array:
    """Heads [B, N, L, H] turned by the angles of their positions [B, L].

    Tables [positions, n] of cosines and sines turn the first 2 * n columns of a head.

    Raises:
        ValueError: A position lies outside the tables, or a head is smaller than they are.
    """
    cos, sin = (widen_floats(table) for table in tables)
    size = 2 * cos.shape[1]
    if size > x.shape[3]:
        raise ValueError(f"caches of {cos.shape[1]} columns for heads of {x.shape[3]}")
    if positions.size and not 0 <= int(positions.min()) <= int(positions.max()) < len(cos):
        raise ValueError(f"positions up to {int(positions.max())} in caches of {len(cos)}")
    wide = widen_floats(x)
    angles = (cos[positions][:, None], sin[positions][:, None])
    result: Array = wide.copy()
    result[..., :size] = rotate_pairs(wide[..., :size], *angles, interleaved=interleaved)
    return np.asarray(result, x.dtype)


def _rotary_embedding(info: KernelInfo) -> KernelFn | None:
    """com.microsoft RotaryEmbedding-1; a single position is that of the first element."""
    if info.attr("is_packed_batching", 0):
        return None
    interleaved, heads = bool(info.attr("interleaved", 0)), int(info.attr("num_heads", 0))
    size = int(info.attr("rotary_embedding_dim", 0))

    def run(x: Array, positions: Array, cos: Array, sin: Array) -> Array:
        flat = x.ndim == 3
        if flat:
            each = 2 * cos.shape[1]
            x = split_heads(x, heads if size and heads else x.shape[2] // max(each, 1))
        places = positions
        if places.ndim == 1:
            places = np.broadcast_to(
                places.reshape(1, 1) + np.arange(x.shape[2]), (x.shape[0], x.shape[2])
            )
        result = rotate_heads(x, places, (cos, sin), interleaved=interleaved)
        return merge_heads(result) if flat else result

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupAttention:
    """Attributes of a node.

    Attributes:
        window: How many keys a query sees, up to its own position; -1 for all.
        smooth: A sink of score 0 takes part in each softmax.
        keep: 1 for scores before the softmax, 2 after it, 0 for none.
        empty: Allocates a cache; see KernelInfo.
    """

    heads: int
    kv_heads: int
    scale: float
    softcap: float
    window: int
    causal: bool
    rotary: bool
    interleaved: bool
    smooth: bool
    keep: int
    empty: Callable[..., Array]

    def run(self, *inputs: Array | None) -> tuple[Array | None, ...]:
        """Output, present key, present value, and scores if asked for."""
        operands = (*inputs, *(None,) * (12 - len(inputs)))
        query, key, value, past_key, past_value, lasts, total = operands[:7]
        cos, sin, positions, bias, sink = operands[7:12]
        assert query is not None
        assert lasts is not None
        assert total is not None
        q, k, v = self._split_packed(query, key, value)
        totals = lasts.reshape(-1).astype(np.int64) + 1
        prompt = q.shape[2] == int(total.reshape(-1)[0])
        before = np.zeros_like(totals) if prompt else totals - q.shape[2]
        if bool((before < 0).any()):
            raise ValueError(f"{q.shape[2]} new positions, but totals of {totals.tolist()}")
        if self.rotary and cos is not None and sin is not None:
            places = before[:, None] + np.arange(q.shape[2])
            if positions is not None and not prompt:
                places = positions
            q, k = (
                rotate_heads(x, places, (cos, sin), interleaved=self.interleaved) for x in (q, k)
            )
        room = max(int(total.reshape(-1)[0]), 0 if past_key is None else past_key.shape[2])
        keys = self._append_to_cache(k, past_key, before, room)
        values = self._append_to_cache(v, past_value, before, room)
        total_seen = int(totals.max(initial=0))
        cached = (keys[:, :, :total_seen], values[:, :, :total_seen])
        y, kept = self._attend(q, cached, before, bias, sink)
        return merge_heads(y).astype(query.dtype, copy=False), keys, values, kept

    def _append_to_cache(self, new: Array, past: Array | None, before: Array, room: int) -> Array:
        """A cache [B, G, room, H]: `before` entries of the past, then the new ones, then zeros.

        In the memory of the past, what it has there stays.
        """
        batch, groups, length, size = new.shape
        shape = check_allocation((batch, groups, room, size), new.dtype)
        result: Array = self.empty(shape, new.dtype)
        is_past = past is not None and result.ctypes.data == past.ctypes.data
        for b, start in enumerate(before.tolist()):
            end = min(start + length, room)
            result[b, :, start:end] = new[b, :, : end - start]
            if is_past:
                continue
            if past is not None:
                result[b, :, :start] = past[b, :, :start]
            result[b, :, end:] = 0
            if past is None:
                result[b, :, :start] = 0
        return result

    def _split_packed(
        self, query: Array, key: Array | None, value: Array | None
    ) -> tuple[Array, Array, Array]:
        if key is None or value is None:
            size = query.shape[2] // (self.heads + 2 * self.kv_heads)
            edges = [self.heads * size, (self.heads + self.kv_heads) * size]
            query, key, value = np.split(query, edges, axis=2)
        return (
            split_heads(query, self.heads),
            split_heads(key, self.kv_heads),
            split_heads(value, self.kv_heads),
        )

    def _attend(
        self,
        q: Array,
        cache: tuple[Array, Array],
        before: Array,
        bias: Array | None,
        sink: Array | None,
    ) -> tuple[Array, Array | None]:
        """Attention of q [B, N, L, H] to keys and values [B, G, T, H]."""
        check_scores(q, cache[0])
        batch, heads, length, size = q.shape
        k, v = widen_floats(cache[0]), widen_floats(cache[1])
        groups, total = k.shape[1:3]
        wide = widen_floats(q) * np.float32(self.scale or 1 / math.sqrt(size))
        rows = heads // groups * length
        scores = matmul(wide.reshape(batch, groups, rows, size), k.swapaxes(2, 3))
        scores = scores.reshape(batch, heads, length, total)
        if self.softcap:
            scores = np.tanh(scores / np.float32(self.softcap)) * np.float32(self.softcap)
        if bias is not None:
            scores = scores + widen_floats(bias[..., :total])
        is_visible = self._visible_keys(before, length, total)
        raw = np.where(is_visible, scores, np.float32(0)) if self.keep == 1 else None
        scores = np.where(is_visible, scores, np.float32(-np.inf))
        weights = self._softmax(scores, sink)
        mixed = matmul(weights.reshape(batch, groups, rows, total), v)
        kept = weights if self.keep == 2 else raw
        return mixed.reshape(batch, heads, length, size), kept

    def _visible_keys(self, before: Array, length: int, total: int) -> Array:
        """Boolean [B, 1, L, T]: which keys a query attends to."""
        own = (before[:, None] + np.arange(length))[:, None, :, None]
        keys = np.arange(total)
        is_visible = keys <= own if self.causal else keys < (before + length)[:, None, None, None]
        if self.window >= 0:
            is_visible = is_visible & (keys > own - self.window)
        return is_visible

    def _softmax(self, scores: Array, sink: Array | None) -> Array:
        peak = np.maximum.reduce(scores, -1, keepdims=True, initial=-np.inf)  # without batch
        extra = None
        if sink is not None:
            extra = widen_floats(sink).reshape(1, -1, 1, 1)
        elif self.smooth:
            extra = np.zeros((1, 1, 1, 1), np.float32)
        if extra is not None:
            peak = np.maximum(peak, extra)
        peak = np.where(np.isneginf(peak), 0, peak)
        weights = np.exp(scores - peak)
        sums = np.add.reduce(weights, -1, keepdims=True)
        if extra is not None:
            sums = sums + np.exp(extra - peak)
        return np.asarray(weights / np.where(sums == 0, 1, sums))


def _group_attention(info: KernelInfo) -> KernelFn | None:
    """com.microsoft GroupQueryAttention-1; quantised and windowed caches are declined."""
    if info.attr("k_quant_type", "NONE") != "NONE" or info.attr("v_quant_type", "NONE") != "NONE":
        return None
    if info.attr("sliding_window_cache", 0) or any(info.node.inputs[12:]):
        return None
    heads, kv_heads = int(info.attr("num_heads", 0)), int(info.attr("kv_num_heads", 0))
    if kv_heads <= 0 or heads % kv_heads:
        raise ValueError(f"GroupQueryAttention: {heads} heads for {kv_heads} key heads")
    attention = _GroupAttention(
        heads=heads,
        kv_heads=kv_heads,
        scale=float(info.attr("scale", 0.0)),
        softcap=float(info.attr("softcap", 0.0)),
        window=int(info.attr("local_window_size", -1)),
        causal=bool(info.attr("causal", 1)),
        rotary=bool(info.attr("do_rotary", 0)),
        interleaved=bool(info.attr("rotary_interleaved", 0)),
        smooth=info.attr("smooth_softmax", -1) == 1,
        empty=info.empty,
        keep=int(info.attr("qk_output", 0)) if info.is_output_used(3) else 0,
    )
    return lambda *inputs: attention.run(*inputs)[: info.n_outputs]


KERNELS: tuple[KernelDef, ...] = (
    kernel("RotaryEmbedding", domain=DOMAIN)(_rotary_embedding),
    kernel("GroupQueryAttention", domain=DOMAIN)(_group_attention),
)
