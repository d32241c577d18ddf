"""Attention and RotaryEmbedding of ai.onnx."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import widen_floats
from eps.cpu.scaled_attention import Masks, Scoring, as_bias, attend, check_scores, combine_biases
from ort_lite.ep import KernelDef, kernel, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

_STAGES = ("product", "capped", "biased", "softmax")


def split_heads(x: Array, heads: int) -> Array:
    """[B, L, heads * D] as [B, heads, L, D].

    Raises:
        ValueError: The last axis is not a multiple of `heads`.
    """
    if heads <= 0 or x.shape[2] % heads:
        raise ValueError(f"{x.shape[2]} columns cannot be split into {heads} heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def merge_heads(x: Array) -> Array:
    """[B, heads, L, D] as [B, L, heads * D]."""
    batch, heads, length, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attention:
    """Attributes of a node.

    Attributes:
        double: softmax_precision asks for float64.
        keep: What the fourth output is to show, or "".
    """

    scale: float | None
    softcap: float
    masks: Masks
    q_heads: int | None
    kv_heads: int | None
    double: bool
    keep: str

    def run(self, q: Array, k: Array, v: Array, *rest: Array | None) -> tuple[Array | None, ...]:
        """Y, present_key, present_value, qk_matmul_output."""
        optional: list[Array | None] = [*rest, *[None] * (4 - len(rest))]
        mask, past_key, past_value, lengths = optional
        if (past_key is None) != (past_value is None):
            raise ValueError("past_key and past_value must be provided together")
        if lengths is not None and past_key is not None:
            raise ValueError("nonpad_kv_seqlen cannot be combined with past_key")
        flat = q.ndim == 3
        if flat:
            q = split_heads(q, self.q_heads or 0)
            k, v = split_heads(k, self.kv_heads or 0), split_heads(v, self.kv_heads or 0)
        if past_key is not None and past_value is not None:
            k, v = np.concatenate((past_key, k), 2), np.concatenate((past_value, v), 2)
        queries, keys, values = (
            x.astype(np.float64) if self.double else widen_floats(x) for x in (q, k, v)
        )
        check_scores(q, k)
        offset = self._offset(q, past_key, lengths)
        bias = self._bias(queries, k.shape[2], mask, lengths, offset)
        scale = 1 / math.sqrt(q.shape[3] or 1) if self.scale is None else self.scale
        how = Scoring(scale=scale, softcap=self.softcap, keep=self.keep)
        scores = attend(queries, keys, values, bias, how)
        y = merge_heads(scores.y) if flat else scores.y
        kept = None if scores.kept is None else scores.kept.astype(q.dtype, copy=False)
        return y.astype(q.dtype, copy=False), k, v, kept

    @staticmethod
    def _offset(q: Array, past_key: Array | None, lengths: Array | None) -> Array | int:
        """How many keys lie before the first query, for the batch or for each entry of it."""
        if past_key is not None:
            return int(past_key.shape[2])
        return 0 if lengths is None else lengths.reshape(-1) - q.shape[2]

    def _bias(
        self,
        q: Array,
        total: int,
        mask: Array | None,
        lengths: Array | None,
        offset: Array | int,
    ) -> Array | None:
        bias = None
        if mask is not None:
            bias = as_bias(mask, q) if mask.dtype == np.bool_ else mask.astype(q.dtype)
            missing = total - bias.shape[-1]
            if missing > 0:
                width = [(0, 0)] * (bias.ndim - 1) + [(0, missing)]
                bias = np.pad(bias, width, constant_values=-np.inf)
        allowed = self.masks.allowed_keys(q.shape[2], total, offset)
        positions = None if allowed is None else as_bias(allowed, q)
        padding = None
        if lengths is not None:
            valid = np.arange(total) < lengths.reshape(-1, 1, 1, 1)
            padding = as_bias(valid, q)
        return combine_biases(bias, positions, padding)


def _attention(info: KernelInfo) -> KernelFn:
    """ONNX Attention-23, 24 and 25."""
    left, right = info.attr("left_window_size", -1), info.attr("right_window_size", -1)
    if left < -1 or right < -1:
        raise ValueError(f"window sizes {left} and {right} must be -1 or not negative")
    mode = info.attr("qk_matmul_output_mode", 0)
    if not 0 <= mode < len(_STAGES):
        raise ValueError(f"qk_matmul_output_mode is {mode}, expected 0 to 3")
    precision = info.attr("softmax_precision")
    attention = _Attention(
        scale=info.attr("scale"),
        softcap=float(info.attr("softcap", 0.0)),
        masks=Masks(causal=bool(info.attr("is_causal", 0)), left=left, right=right),
        q_heads=info.attr("q_num_heads"),
        kv_heads=info.attr("kv_num_heads"),
        double=precision is not None and numpy_dtype(precision) == np.float64,
        keep=_STAGES[mode] if info.is_output_used(3) else "",
    )
    return attention.run


def rotate_pairs(x: Array, cos: Array, sin: Array, *, interleaved: bool) -> Array:
    """Pairs of the last axis turned by angles.

    Args:
        x: [..., 2 * n].
        cos: [..., n], broadcast; of float32 or float64 as x.
        sin: As cos.
        interleaved: Pairs are neighbours, not halves of the axis.
    """
    half = x.shape[-1] // 2
    result = np.empty(x.shape, x.dtype)
    if interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
        result[..., 0::2] = cos * first - sin * second
        result[..., 1::2] = sin * first + cos * second
        return result
    first, second = x[..., :half], x[..., half:]
    result[..., :half] = cos * first - sin * second
    result[..., half:] = sin * first + cos * second
    return result


def _rotary_embedding(info: KernelInfo) -> KernelFn:
    """ONNX RotaryEmbedding-23."""
    interleaved, heads = bool(info.attr("interleaved", 0)), info.attr("num_heads", 0)
    size = info.attr("rotary_embedding_dim", 0)

    def run(x: Array, cos: Array, sin: Array, positions: Array | None = None) -> Array:
        wide = widen_floats(x)
        # Heads come after positions, as in the caches.
        rows = wide.transpose(0, 2, 1, 3) if x.ndim == 4 else _by_head(wide, heads)
        turned = size or rows.shape[3]
        angles: Sequence[Array] = [widen_floats(cos), widen_floats(sin)]
        if positions is not None:
            angles = [table[positions] for table in angles]
        if angles[0].shape[-1] != turned // 2 or angles[1].shape[-1] != turned // 2:
            raise ValueError(
                f"caches of {angles[0].shape[-1]} and {angles[1].shape[-1]} columns, "
                f"{turned // 2} are needed"
            )
        c, s = (table[:, :, None] for table in angles)
        result = rows.copy()
        result[..., :turned] = rotate_pairs(rows[..., :turned], c, s, interleaved=interleaved)
        back = result.transpose(0, 2, 1, 3) if x.ndim == 4 else result.reshape(x.shape)
        return back.astype(x.dtype, copy=False)

    return run


def _by_head(x: Array, heads: int) -> Array:
    if heads <= 0 or x.shape[2] % heads:
        raise ValueError(f"{x.shape[2]} columns cannot be split into {heads} heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads)


KERNELS: tuple[KernelDef, ...] = (
    kernel("Attention", since=(23, 25))(_attention),
    kernel("RotaryEmbedding", since=(23, 23))(_rotary_embedding),
)
