"""LinearAttention and CausalConvWithState: attention and convolution that carry a state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import allocate_checked, check_allocation, widen_floats
from eps.cpu.convolution import convolve
from eps.cpu.kernels.activation import swish
from eps.cpu.kernels.attention import merge_heads, split_heads
from eps.cpu.kernels.conv import add_bias
from eps.cpu.windows import AxisWindow
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

_RULES = ("linear", "gated", "delta", "gated_delta")


def _optional(name: str, rule: str, value: Array | None, *, needed: bool) -> None:
    if needed != (value is not None):
        verb = "requires" if needed else "forbids"
        raise ValueError(f"update_rule '{rule}' {verb} input {name}")


def _linear_attention(info: KernelInfo) -> KernelFn:
    """ONNX LinearAttention-27: a state [B, G, K, V] that steps decay, write and read."""
    rule = info.attr("update_rule", "gated_delta")
    if rule not in _RULES:
        raise ValueError(f"update_rule is '{rule}', expected one of {', '.join(_RULES)}")
    q_heads, kv_heads = info.attr("q_num_heads"), info.attr("kv_num_heads")
    if q_heads <= 0 or kv_heads <= 0 or q_heads % kv_heads:
        raise ValueError(f"q_num_heads {q_heads} is not a multiple of kv_num_heads {kv_heads}")
    scale = info.attr("scale", 0.0)

    def run(q: Array, k: Array, v: Array, *rest: Array | None) -> tuple[Array, Array]:
        optional: list[Array | None] = [*rest, *[None] * (3 - len(rest))]
        past, decay, beta = optional
        _optional("decay", rule, decay, needed="gated" in rule)
        _optional("beta", rule, beta, needed="delta" in rule)
        queries = split_heads(widen_floats(q), q_heads)
        keys, values = (
            split_heads(widen_floats(k), kv_heads),
            split_heads(widen_floats(v), kv_heads),
        )
        batch, _, steps, depth = queries.shape
        shape = (batch, kv_heads, depth, values.shape[3])
        if past is not None and past.shape != shape:
            raise ValueError(f"past_state has shape {past.shape}, expected {shape}")
        check_allocation(shape, queries.dtype)
        state = np.zeros(shape, queries.dtype) if past is None else widen_floats(past).copy()
        fades = None if decay is None else np.exp(_per_head(decay, kv_heads))
        gains = None if beta is None else _per_head(beta, beta.shape[2])
        result = allocate_checked((*queries.shape[:3], shape[3]), queries.dtype)
        for t in range(steps):
            if fades is not None:
                state *= fades[:, :, t, :, None]
            key, value = keys[:, :, t], values[:, :, t]
            if gains is not None:
                value = gains[:, :, t] * (value - np.matmul(key[:, :, None], state)[:, :, 0])
            state += key[..., None] * value[:, :, None]
            rows = queries[:, :, t].reshape(batch, kv_heads, -1, depth)
            result[:, :, t] = (rows @ state).reshape(batch, q_heads, -1)
        result *= scale or 1 / math.sqrt(depth)
        kind = q.dtype if past is None else past.dtype
        return merge_heads(result).astype(q.dtype, copy=False), state.astype(kind, copy=False)

    return run


def _per_head(x: Array, heads: int) -> Array:
    """[B, T, heads * n] as [B, heads, T, n]."""
    return split_heads(widen_floats(x), heads)


def _causal_conv(info: KernelInfo) -> KernelFn:
    """ONNX CausalConvWithState-27: a depthwise filter over what was and what is."""
    activation = info.attr("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise ValueError(f"activation is '{activation}', expected none, silu or swish")

    def run(
        x: Array, w: Array, bias: Array | None = None, past: Array | None = None
    ) -> tuple[Array, Array]:
        if x.ndim != 3 or w.ndim != 3:
            raise ValueError(f"X of rank {x.ndim} and W of rank {w.ndim}, expected 3 and 3")
        taps = w.shape[2]
        before = np.zeros((*x.shape[:2], taps - 1), x.dtype) if past is None else past
        whole = np.concatenate((before, x), 2)
        axis = AxisWindow(taps, 1, 1, 0, 0, whole.shape[2], whole.shape[2] - taps + 1)
        y = convolve(widen_floats(whole), widen_floats(w), (axis,), x.shape[1])
        y = add_bias(y, None if bias is None else widen_floats(bias)).astype(x.dtype, copy=False)
        if activation != "none":
            y = swish(widen_floats(y), 1.0).astype(x.dtype, copy=False)
        return y, whole[:, :, whole.shape[2] - (taps - 1) :]

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("LinearAttention", since=(27, 27))(_linear_attention),
    kernel("CausalConvWithState", since=(27, 27))(_causal_conv),
)
