"""Attention and rotary embedding, of ai.onnx and com.microsoft, as products and a softmax."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.ir import Concat, Gather, IrTensor, Softmax, Stretch, Unsupported
from eps.opencl.compile.lower.dense import product, transpose
from eps.opencl.compile.lower.node import NodeView, call, constant, number
from eps.opencl.compile.lower.shape import slice_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.expression import Expr

    Result = IrTensor | Sequence[IrTensor]

KNOWN = {
    "is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap",
    "softmax_precision",
}  # fmt: skip
"""Attributes of ONNX Attention-23; newer ones bound the window."""
LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How scores [B, N, S, L] become weights.

    Attributes:
        scale: Of the product of queries and keys.
        allowed: bool, broadcast to the scores; others get `fill`.
        bias: float32, broadcast to the scores, added.
        softcap: Scaled scores are softcap * tanh(score / softcap) where it is not 0.
        empty_rows: Whether a query may see no key; then its result is zero.
    """

    scale: float
    allowed: tuple[IrTensor, ...] = ()
    bias: tuple[IrTensor, ...] = ()
    fill: float = LOWEST
    softcap: float = 0.0
    empty_rows: bool = False


def attend(node: NodeView, q: IrTensor, k: IrTensor, v: IrTensor, rules: Rules) -> IrTensor:
    """[B, N, S, H], keys [B, N, L, H] and values [B, N, L, V] to [B, N, S, V]."""
    rank = len(k.shape)
    turned = transpose(node, k, (*range(rank - 2), rank - 1, rank - 2))
    scores = product(node, q, turned)

    def finish(s: Expr, *rest: Expr) -> Expr:
        s = call("mul", s, number(rules.scale, s))
        if rules.softcap:
            inner = call("tanh", call("mul", s, number(1 / rules.softcap, s)))
            s = call("mul", inner, number(rules.softcap, s))
        for added in rest[len(rules.allowed) :]:
            s = call("add", s, added)
        for allowed in rest[: len(rules.allowed)]:
            s = call("where", allowed, s, number(rules.fill, s), dtype=s.dtype)
        return s

    ready = node.pointwise(finish, [scores, *rules.allowed, *rules.bias])
    weights = IrTensor(ready.shape, "float32")
    node.emit(Softmax((ready,), weights, len(ready.shape) - 1))
    if rules.empty_rows and (rules.allowed or rules.bias):
        weights = node.pointwise(
            lambda w, *rest: _mask_weight(
                w, rest[: len(rules.allowed)], rest[len(rules.allowed) :]
            ),
            [weights, *rules.allowed, *rules.bias],
        )
    return product(node, weights, v)


def _mask_weight(weight: Expr, allowed: Sequence[Expr], bias: Sequence[Expr]) -> Expr:
    """Zero for a key that is not seen: a query that sees none gets zeros, not a mean."""
    zero = number(0, weight)
    for mask in allowed:
        weight = call("where", mask, weight, zero, dtype=weight.dtype)
    for added in bias:
        is_visible = call("gt", added, number(-np.inf, added), dtype="bool")
        weight = call("where", is_visible, weight, zero, dtype=weight.dtype)
    return weight


def split_heads(node: NodeView, x: IrTensor, heads: int) -> IrTensor:
    """[B, S, N * H] as [B, N, S, H]."""
    b, s, width = x.shape
    if heads < 1 or width % heads:
        raise Unsupported(f"{width} channels in {heads} heads")
    return transpose(node, node.reshape(x, (b, s, heads, width // heads)), (0, 2, 1, 3))


def join_heads(node: NodeView, x: IrTensor) -> IrTensor:
    """[B, N, S, H] as [B, S, N * H]."""
    b, n, s, h = x.shape
    return node.reshape(transpose(node, x, (0, 2, 1, 3)), (b, s, n * h))


def causal_mask(s: int, length: int) -> IrTensor:
    """[S, L]: a query sees keys up to its own place, the first of them `length - s` behind."""
    return constant(np.tril(np.ones((s, length), np.bool_), length - s))


def _padding_mask(node: NodeView, mask: IrTensor, batch: int, s: int, length: int) -> IrTensor:
    """A mask of com.microsoft as bool [B, 1, 1 or S, L].

    Forms: [B] numbers of valid keys, [B, L] and [B, S, L] with 0 for keys not seen.
    """
    if mask.dtype not in ("int32", "bool"):
        raise Unsupported(f"a mask of {mask.dtype}")
    if mask.shape == (batch,) and mask.dtype == "int32":
        counts = node.reshape(mask, (batch, 1, 1, 1))
        places = constant(np.arange(length, dtype=np.int32).reshape(1, 1, 1, length))
        return node.pointwise(lambda p, c: call("lt", p, c, dtype="bool"), [places, counts], "bool")
    shapes = {(batch, length): (batch, 1, 1, length), (batch, s, length): (batch, 1, s, length)}
    if mask.shape not in shapes:
        raise Unsupported(f"a mask of shape {list(mask.shape)}")
    apart = node.reshape(mask, shapes[mask.shape])
    return node.pointwise(lambda m: call("cast", m, dtype="bool"), [apart], "bool")


def _refuse(node: NodeView, unsupported: Mapping[int, str]) -> None:
    for position, what in unsupported.items():
        if node.has(position):
            raise Unsupported(f"{node.node.op_type} with {what}")


def _packed_attention(node: NodeView) -> IrTensor:
    """com.microsoft Attention: one product makes queries, keys and values."""
    node.require_float32(0, 1)
    _refuse(node, {4: "past keys", 6: "a length of the past"})
    if node.attr("do_rotary", 0):
        raise Unsupported("Attention with rotary embedding")
    x, heads = node.input(0), node.required_int("num_heads")
    made = product(node, x, node.input(1))
    if node.has(2):
        made = node.pointwise(lambda a, b: call("add", a, b), [made, node.input(2)])
    width = made.shape[-1]
    sizes = [int(n) for n in node.attr("qkv_hidden_sizes") or (width // 3,) * 3]
    if sum(sizes) != width or sizes[0] != sizes[1]:
        raise Unsupported(f"hidden sizes {sizes}")
    parts, at = [], 0
    for size in sizes:
        part = slice_tensor(node, made, [slice(None), slice(None), slice(at, at + size)])
        parts.append(split_heads(node, part, heads))
        at += size
    rules = _contrib_rules(node, parts[0], parts[1], mask=3, bias=5)
    return join_heads(node, attend(node, parts[0], parts[1], parts[2], rules))


def _contrib_rules(node: NodeView, q: IrTensor, k: IrTensor, *, mask: int, bias: int) -> Rules:
    (batch, _, s, h), length = q.shape, k.shape[2]
    allowed = []
    if node.has(mask):
        allowed.append(_padding_mask(node, node.input(mask), batch, s, length))
    if node.attr("unidirectional", 0):
        allowed.append(causal_mask(s, length))
    if len(allowed) > 1:
        raise Unsupported("a padding mask and a causal one")
    fill = node.attr("mask_filter_value", -10000.0) if node.has(mask) else LOWEST
    biases = (node.input(bias),) if node.has(bias) else ()
    # ONNX Runtime adds the filter value to the scores: the same but where nothing is allowed
    return Rules(
        scale=node.attr("scale", 0.0) or 1 / sqrt(h),
        allowed=tuple(allowed),
        bias=biases,
        fill=fill,
    )


def _multi_head(node: NodeView) -> IrTensor:
    """com.microsoft MultiHeadAttention: queries, keys and values come apart."""
    node.require_float32(0)
    _refuse(node, {6: "past keys", 7: "past values", 8: "a length of the past", 9: "a cache"})
    heads = node.required_int("num_heads")
    if not (node.has(1) and node.has(2)) or len(node.input(0).shape) != 3:
        raise Unsupported("queries, keys and values packed into one")
    projections = [node.input(i) for i in range(3)]
    for i, x in enumerate(projections):
        node.require_float32(i)
        if len(x.shape) not in (3, 4):
            raise Unsupported(f"input {i} of rank {len(x.shape)}")
    if node.has(3):
        if any(len(x.shape) == 4 for x in projections):
            raise Unsupported("a bias of keys that are split into heads")
        at = 0
        for i, x in enumerate(projections):
            part = slice_tensor(node, node.input(3), [slice(at, at + x.shape[-1])])
            projections[i] = node.pointwise(lambda a, b: call("add", a, b), [x, part])
            at += x.shape[-1]
    parts = [x if len(x.shape) == 4 else split_heads(node, x, heads) for x in projections]
    rules = _contrib_rules(node, parts[0], parts[1], mask=4, bias=5)
    return join_heads(node, attend(node, parts[0], parts[1], parts[2], rules))


def _attention(node: NodeView) -> list[IrTensor]:
    """ONNX Attention-23: present keys and values are the past ones with those given after."""
    node.require_float32(0, 1, 2)
    _refuse(node, {6: "lengths without padding"})
    unknown = node.node.attributes.keys() - KNOWN
    if unknown:
        raise Unsupported(f"Attention with {', '.join(sorted(unknown))}")
    has_output = [bool(name) for name in node.node.outputs]
    if len(has_output) > 3 and has_output[3]:
        raise Unsupported("scores as an output")
    q, k, v = (_input_heads(node, i) for i in range(3))
    if node.has(4) != node.has(5):
        raise Unsupported("past keys without past values")
    if node.has(4):
        k, v = (_join(node, [node.input(p), x], 2) for p, x in ((4, k), (5, v)))
    if q.shape[1] % k.shape[1] or k.shape[1] != v.shape[1]:
        raise Unsupported(f"{q.shape[1]} heads of queries for {k.shape[1]} of keys")
    groups = q.shape[1] // k.shape[1]
    keys, values = (_repeat_heads(node, x, groups) for x in (k, v))
    result = attend(node, q, keys, values, _standard_rules(node, q, k))
    if len(node.input(0).shape) == 3:
        result = join_heads(node, result)
    return [result, k, v]


def _input_heads(node: NodeView, position: int) -> IrTensor:
    x = node.input(position)
    if len(x.shape) == 4:
        return x
    heads = node.attr("q_num_heads" if position == 0 else "kv_num_heads")
    if len(x.shape) != 3 or not heads:
        raise Unsupported(f"input {position} of rank {len(x.shape)}")
    return split_heads(node, x, int(heads))


def _join(node: NodeView, parts: Sequence[IrTensor], axis: int) -> IrTensor:
    shape = list(parts[0].shape)
    shape[axis] = sum(p.shape[axis] for p in parts)
    output = IrTensor(tuple(shape), parts[0].dtype)
    node.emit(Concat(tuple(parts), output, axis))
    return output


def _repeat_heads(node: NodeView, x: IrTensor, groups: int) -> IrTensor:
    """Each head `groups` times, next to itself."""
    if groups == 1:
        return x
    b, n, length, h = x.shape
    apart = node.reshape(x, (b, n, 1, length, h))
    wide = (b, n, groups, length, h)
    return node.reshape(node.alias(apart, Stretch(wide), wide), (b, n * groups, length, h))


def _standard_rules(node: NodeView, q: IrTensor, k: IrTensor) -> Rules:
    s, length, h = q.shape[2], k.shape[2], q.shape[3]
    allowed: list[IrTensor] = []
    bias: list[IrTensor] = []
    if node.has(3):
        mask = node.input(3)
        if mask.shape[-1] != length:
            raise Unsupported(f"a mask of shape {list(mask.shape)} for {length} keys")
        (allowed if mask.dtype == "bool" else bias).append(mask)
        if mask.dtype not in ("bool", "float32"):
            raise Unsupported(f"a mask of {mask.dtype}")
    if node.attr("is_causal", 0):
        past = node.input(4).shape[2] if node.has(4) else 0
        allowed.append(constant(np.tril(np.ones((s, length), np.bool_), past)))
    scale = node.attr("scale")
    return Rules(
        scale=1 / sqrt(h) if scale is None else scale,
        allowed=tuple(allowed),
        bias=tuple(bias),
        softcap=node.attr("softcap", 0.0),
        empty_rows=node.has(3) or s > length,
    )


def _rotary_standard(node: NodeView) -> IrTensor:
    """ONNX RotaryEmbedding-23: X, cos and sin caches, and maybe positions."""
    node.require_float32(0, 1, 2)
    caches = node.input(1), node.input(2)
    if node.has(3):
        caches = (
            _pick_rows(node, caches[0], node.input(3)),
            _pick_rows(node, caches[1], node.input(3)),
        )
    return _rotate_pairs(node, caches)


def _rotary_contrib(node: NodeView) -> IrTensor:
    """com.microsoft RotaryEmbedding: X, positions or the first of them, cos and sin caches."""
    node.require_float32(0, 2, 3)
    if node.attr("scale", 1.0) != 1.0 or node.attr("is_packed_batching", 0):
        raise Unsupported("RotaryEmbedding with a scale or packed batches")
    x, places = node.input(0), node.input(1)
    if places.size == 1:
        steps = constant(np.arange(x.shape[-2], dtype=places.dtype).reshape(1, -1))
        first = node.reshape(places, (1, 1))
        places = node.pointwise(lambda a, b: call("add", a, b), [first, steps])
    return _rotate_pairs(node, tuple(_pick_rows(node, node.input(i), places) for i in (2, 3)))


def _pick_rows(node: NodeView, cache: IrTensor, places: IrTensor) -> IrTensor:
    output = IrTensor((*places.shape, *cache.shape[1:]), cache.dtype)
    node.emit(Gather((cache, places), output, 0))
    return output


def _rotate_pairs(node: NodeView, caches: Sequence[IrTensor]) -> IrTensor:
    """Pairs of channels turned: (a, b) to (a cos - b sin, a sin + b cos)."""
    source = node.input(0)
    x, heads = source, int(node.attr("num_heads", 0))
    turned = int(node.attr("rotary_embedding_dim", 0))
    if len(source.shape) == 3:
        if not heads:
            if turned:
                raise Unsupported("RotaryEmbedding of a part without num_heads")
            heads = source.shape[2] // (2 * caches[0].shape[-1])
        x = split_heads(node, source, heads)
    turned = turned or x.shape[3]
    half = turned // 2
    if caches[0].shape[-1] != half:
        raise Unsupported(f"a cache of {caches[0].shape[-1]} for {half} pairs")
    cos, sin = (node.reshape(c, (c.shape[0], 1, *c.shape[1:])) for c in caches)
    whole = [slice(None)] * 3
    part = slice_tensor(node, x, [*whole, slice(0, turned)])
    if node.attr("interleaved", 0):
        pairs = node.reshape(part, (*x.shape[:3], half, 2))
        a, b = (_last_input(node, pairs, i) for i in (0, 1))
    else:
        a, b = (slice_tensor(node, part, [*whole, slice(s, s + half)]) for s in (0, half))
    first = node.pointwise(_real_part, [a, b, cos, sin])
    second = node.pointwise(_imaginary_part, [a, b, cos, sin])
    if node.attr("interleaved", 0):
        ends = [node.reshape(t, (*t.shape, 1)) for t in (first, second)]
        result = node.reshape(_join(node, ends, 4), part.shape)
    else:
        result = _join(node, [first, second], 3)
    if turned < x.shape[3]:
        rest = slice_tensor(node, x, [*whole, slice(turned, None)])
        result = _join(node, [result, rest], 3)
    return join_heads(node, result) if len(source.shape) == 3 else result


def _last_input(node: NodeView, x: IrTensor, at: int) -> IrTensor:
    picked = slice_tensor(node, x, [slice(None)] * 4 + [slice(at, at + 1)])
    return node.reshape(picked, x.shape[:-1])


def _real_part(a: Expr, b: Expr, c: Expr, s: Expr) -> Expr:
    return call("sub", call("mul", a, c), call("mul", b, s))


def _imaginary_part(a: Expr, b: Expr, c: Expr, s: Expr) -> Expr:
    return call("add", call("mul", a, s), call("mul", b, c))


LOWERINGS: Mapping[str, Callable[[NodeView], Result]] = {
    "Attention": _attention,
    "RotaryEmbedding": _rotary_standard,
}
CONTRIB: Mapping[str, Callable[[NodeView], Result]] = {
    "Attention": _packed_attention,
    "MultiHeadAttention": _multi_head,
    "RotaryEmbedding": _rotary_contrib,
}
