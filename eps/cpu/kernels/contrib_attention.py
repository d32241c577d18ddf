"""com.microsoft attention over as many key heads as query heads: BERT's, GPT's and T5's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import outer_checked, widen_floats
from eps.cpu.kernels.attention import merge_heads, split_heads
from eps.cpu.products import matmul
from eps.cpu.scaled_attention import Scoring, attend, check_scores, combine_biases
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"
_LOWEST = np.finfo(np.float32).min


@dataclass(frozen=True, slots=True)
class _Heads:
    """Attributes that the operators of this file share.

    Attributes:
        filtered: What is added to the score of a masked key.
    """

    count: int
    scale: float | None
    filtered: float
    causal: bool
    keep: str = ""

    @classmethod
    def of(cls, info: KernelInfo, keep: str = "") -> _Heads:
        """Those of a node.

        Raises:
            ValueError: There is no head.
        """
        count = int(info.attr("num_heads", 0))
        if count <= 0:
            raise ValueError(f"{info.op_type}: num_heads is {count}")
        return cls(
            count,
            info.attr("scale"),
            float(info.attr("mask_filter_value", -10000.0)),
            bool(info.attr("unidirectional", 0)),
            keep,
        )

    def run(
        self, qkv: Sequence[Array], mask: Array | None, bias: Array | None
    ) -> tuple[Array, Array | None]:
        """Attention of heads [B, N, L, H]; the result [B, L, N * H], and the scores to keep."""
        q, k, v = (widen_floats(x) for x in qkv)
        check_scores(q, k)
        batch, _, length, size = q.shape
        total = k.shape[2]
        masks = None if mask is None else self._mask(mask, (batch, length, total))
        if self.causal:
            later = np.arange(total) > np.arange(length)[:, None] + (total - length)
            triangle = np.where(later, _LOWEST, np.float32(0))
            # Two of the lowest numbers would add to -infinity, and a row of them to NaN.
            masks = triangle if masks is None else np.maximum(masks + triangle, _LOWEST)
        added = None if bias is None else widen_floats(bias)
        scale = 1 / math.sqrt(size) if not self.scale else self.scale
        scores = attend(q, k, v, combine_biases(masks, added), Scoring(scale=scale, keep=self.keep))
        return merge_heads(scores.y).astype(qkv[0].dtype, copy=False), scores.kept

    def _mask(self, mask: Array, sizes: tuple[int, int, int]) -> Array:
        """[B or 1, 1, L or 1, T] of 0 if a key counts: attention_cpu_base.h PrepareMask.

        Raises:
            ValueError: The mask has none of the shapes that are known.
        """
        batch, length, total = sizes
        keys = np.arange(total)
        if mask.ndim == 1 and mask.size in (batch, 2 * batch):
            ends = mask[:batch, None]
            starts = mask[batch:, None] if mask.size > batch else 0
            is_visible = (keys < ends) & (keys >= starts)
            return self._filter(is_visible[:, None, None])
        if mask.shape == (batch, total) or mask.shape == (1, total):
            return self._filter(mask[:, None, None] > 0)
        if mask.shape == (batch, length, total):
            return self._filter(mask[:, None] > 0)
        raise ValueError(
            f"mask of shape {list(mask.shape)} for a batch of {batch}, {length} queries and "
            f"{total} keys"
        )

    def _filter(self, is_visible: Array) -> Array:
        return np.where(is_visible, np.float32(0), np.float32(self.filtered))


def _is_unsupported(info: KernelInfo, *attributes: str) -> bool:
    return any(info.attr(name, 0) for name in attributes)


def _project_packed(projected: Array, sizes: Sequence[int], heads: int) -> list[Array]:
    """[B, L, sum of sizes] as queries, keys and values [B, heads, L, size / heads]."""
    if projected.shape[2] != sum(sizes):
        raise ValueError(f"{projected.shape[2]} columns for Q, K and V of {list(sizes)}")
    edges = [sizes[0], sizes[0] + sizes[1]]
    return [split_heads(part, heads) for part in np.split(projected, edges, axis=2)]


def _with_past(k: Array, v: Array, past: Array | None) -> tuple[Array, Array]:
    """Keys and values with those of earlier positions, [2, B, N, P, H], in front."""
    if past is None:
        return k, v
    before = past.astype(k.dtype, copy=False)
    return np.concatenate((before[0], k), 2), np.concatenate((before[1], v), 2)


def _attention(info: KernelInfo) -> KernelFn | None:
    """com.microsoft Attention-1; buffers shared between past and present are declined."""
    if _is_unsupported(info, "past_present_share_buffer", "do_rotary"):
        return None
    heads, sizes = _Heads.of(info), info.attr("qkv_hidden_sizes")

    def run(*inputs: Array | None) -> tuple[Array, ...]:
        x, w, b, mask, past, bias = (*inputs, *(None,) * (6 - len(inputs)))[:6]
        assert x is not None
        assert w is not None
        projected = matmul(widen_floats(x), widen_floats(w))
        if b is not None:
            projected += widen_floats(b)
        parts = sizes or [w.shape[1] // 3] * 3
        q, k, v = _project_packed(projected.astype(x.dtype, copy=False), parts, heads.count)
        k, v = _with_past(k, v, past)
        y, _ = heads.run((q, k, v), mask, bias)
        return (y, np.stack((k, v))) if info.n_outputs > 1 else (y,)

    return run


def _q_attention(info: KernelInfo) -> KernelFn | None:
    """com.microsoft QAttention-1: the projection is of 8-bit integers, the rest of floats."""
    if _is_unsupported(info, "past_present_share_buffer", "do_rotary"):
        return None
    heads = _Heads.of(info)

    def run(*inputs: Array | None) -> tuple[Array, ...]:
        operands = (*inputs, *(None,) * (9 - len(inputs)))
        x, w, b, x_scale, w_scale, mask, x_zero, w_zero, past = operands
        assert x is not None
        assert w is not None
        assert x_scale is not None
        assert w_scale is not None
        left, right = x.astype(np.float32), w.astype(np.float32)
        if x_zero is not None:
            left -= x_zero.astype(np.float32)
        if w_zero is not None:
            right -= w_zero.astype(np.float32)
        projected = matmul(left, right)
        projected *= x_scale * w_scale
        if b is not None:
            projected += b
        q, k, v = _project_packed(projected, [w.shape[1] // 3] * 3, heads.count)
        k, v = _with_past(k, v, past)
        y, _ = heads.run((q, k, v), mask, None)
        return (y, np.stack((k, v))) if info.n_outputs > 1 else (y,)

    return run


def _multi_head(info: KernelInfo) -> KernelFn | None:
    """com.microsoft MultiHeadAttention-1; shared buffers and beams are declined."""
    if any(i < info.n_inputs and info.node.inputs[i] for i in (8, 9)):
        return None
    heads = _Heads.of(info, "softmax" if info.is_output_used(3) else "")

    def run(*inputs: Array | None) -> tuple[Array | None, ...]:
        operands = (*inputs, *(None,) * (8 - len(inputs)))
        q, k, v, bias, mask, added, past_key, past_value = operands[:8]
        assert q is not None
        q, k, v = _split_heads(q, k, v, bias, heads.count)
        if past_key is not None and past_value is not None:
            k, v = np.concatenate((past_key, k), 2), np.concatenate((past_value, v), 2)
        y, kept = heads.run((q, k, v), mask, added)
        return (y, k, v, kept)[: info.n_outputs]

    return run


def _split_heads(
    q: Array, k: Array | None, v: Array | None, bias: Array | None, heads: int
) -> tuple[Array, Array, Array]:
    """Queries, keys and values [B, N, L, H] of whichever layout they come in, bias added.

    Raises:
        ValueError: Keys come without values.
    """
    if q.ndim == 5:  # all three packed: [B, L, N, 3, H]
        q, k, v = (q[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    elif k is not None and k.ndim == 5:  # keys and values packed: [B, L, N, 2, H]
        q = split_heads(q, heads)
        k, v = (k[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
    elif k is not None and v is not None:  # those of four dimensions have their heads apart
        q, k, v = (x if x.ndim == 4 else split_heads(x, heads) for x in (q, k, v))
    if k is None or v is None:
        raise ValueError("query without key and value")
    if bias is None:
        return q, k, v
    sizes = [heads * x.shape[3] for x in (q, k, v)]
    parts = np.split(bias, [sizes[0], sizes[0] + sizes[1]])
    shaped = (p.reshape(1, heads, 1, -1) for p in parts)
    add = outer_checked(np.add)
    summed = [add(x, b) for x, b in zip((q, k, v), shaped, strict=True)]
    return summed[0], summed[1], summed[2]


KERNELS: tuple[KernelDef, ...] = (
    kernel("Attention", domain=DOMAIN)(_attention),
    kernel("QAttention", domain=DOMAIN)(_q_attention),
    kernel("MultiHeadAttention", domain=DOMAIN)(_multi_head),
)
