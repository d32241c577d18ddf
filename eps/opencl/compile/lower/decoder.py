"""com.microsoft operators of language models: weights of 4 or 8 bits, and a cache of keys."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.decoder_op import (
    BlockGather,
    BlockMatMul,
    CacheAppend,
    CachePlace,
    GroupAttention,
)
from eps.opencl.compile.element_types import HALF
from eps.opencl.compile.ir import IrTensor, Unsupported
from eps.opencl.compile.lower.node import NodeView, call, cast_half, constant, normal_axis
from eps.opencl.compile.lower.shape import slice_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.lower.node import Array

    Result = IrTensor | Sequence[IrTensor]

BITS = (4, 8)
CACHES = (3, 4)
"""Inputs of a GroupQueryAttention that are past keys and values."""
INT8_LEVEL = 4
"""accuracy_level of a MatMulNBits that allows inputs of 8 bits."""


def _bits(node: NodeView) -> int:
    bits = int(node.attr("bits", 4))
    if bits not in BITS:
        raise Unsupported(f"weights of {bits} bits")
    return bits


def _matmul_nbits(node: NodeView) -> IrTensor:
    """MatMulNBits-1; its weights keep their bits in memory."""
    node.require_float32(0)
    bits, block = _bits(node), int(node.attr("block_size", 32))
    depth, width = node.required_int("K"), node.required_int("N")
    if node.has(4):
        raise Unsupported("a group index for each row of weights")
    if block < 16 or block & (block - 1):
        raise Unsupported(f"blocks of {block} weights")
    x, blocks = node.input(0), -(-depth // block)
    if not x.shape or x.shape[-1] != depth or width < 1:
        raise Unsupported(f"an input of shape {list(x.shape)} for K = {depth}, N = {width}")
    weights = node.constant(1, "a weight of few bits")
    scales = node.constant(2, "the scale of a weight")
    if weights.dtype != np.uint8 or weights.size != width * blocks * block * bits // 8:
        raise Unsupported(f"weights {weights.dtype}{list(weights.shape)}")
    if scales.dtype != np.float32 or scales.size != width * blocks:
        raise Unsupported(f"scales {scales.dtype}{list(scales.shape)}")
    operands = [weights.reshape(width, blocks, -1), scales.reshape(width, blocks)]
    if node.has(3):
        operands.append(_read_zeros(node.constant(3, "a zero point"), (width, blocks), bits))
    output = IrTensor((*x.shape[:-1], width), "float32")
    inputs = (x, *map(constant, operands))
    float_zeros = len(operands) > 2 and operands[2].dtype == np.float32
    byte_inputs = node.attr("accuracy_level", 0) == INT8_LEVEL and not float_zeros
    node.emit(
        BlockMatMul(inputs=inputs, output=output, bits=bits, block=block, byte_inputs=byte_inputs)
    )
    if node.has(5):
        node.require_float32(5)
        output = node.pointwise(lambda a, b: call("add", a, b), [output, node.input(5)])
    return output


def _read_zeros(zeros: Array, shape: tuple[int, int], bits: int) -> Array:
    """Zero points [N, blocks]: floats as they are, or bytes that have been taken apart."""
    width, blocks = shape
    if zeros.dtype == np.float32 and zeros.size == width * blocks:
        return zeros.reshape(shape)
    if zeros.dtype != np.uint8 or zeros.size != width * -(-blocks * bits // 8):
        raise Unsupported(f"zero points {zeros.dtype}{list(zeros.shape)}")
    packed = zeros.reshape(width, -1)
    if bits == 8:
        return packed
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(width, -1)[:, :blocks]


def _gather_block_quantized(node: NodeView) -> IrTensor:
    """GatherBlockQuantized-1 of rows of bytes, quantised along the last axis."""
    bits, block = _bits(node), int(node.attr("block_size", 128))
    data, indices, scales = node.input(0), node.input(1), node.input(2)
    rank = len(data.shape)
    axis = normal_axis(node.attr("gather_axis", 0), rank)
    if normal_axis(node.attr("quantize_axis", 1), rank) != rank - 1 or axis:
        raise Unsupported("rows that are not quantised along the last axis")
    if data.dtype != "uint8" or indices.dtype not in ("int32", "int64"):
        raise Unsupported(f"elements of {data.dtype} picked by {indices.dtype}")
    width, blocks = data.shape[0], scales.shape[-1]
    weights = node.constant(0, "a table of few bits")
    factors = node.constant(2, "the scale of a table")
    if rank != 2 or data.shape[1] * 8 // bits != blocks * block or block * bits % 32:
        raise Unsupported(f"rows {list(data.shape)} in {blocks} blocks of {block}")
    if factors.dtype != np.float32 or factors.shape != (width, blocks):
        raise Unsupported(f"scales {factors.dtype}{list(factors.shape)}")
    operands = [weights.reshape(width, blocks, -1), factors]
    if node.has(3):
        operands.append(_read_zeros(node.constant(3, "a zero point"), (width, blocks), bits))
    output = IrTensor((*indices.shape, blocks * block), "float32")
    inputs = (indices, *map(constant, operands))
    node.emit(BlockGather(inputs=inputs, output=output, bits=bits, block=block))
    return output


def _group_query_attention(node: NodeView) -> list[IrTensor]:
    """GroupQueryAttention-1 in float32; caches of float16 stay so in memory."""
    half = node.input(0).dtype == HALF
    kinds = {x.dtype for x in node.present_inputs() if x.dtype.startswith("float")}
    if len(kinds) != 1:
        raise Unsupported(f"GroupQueryAttention with inputs of {' and '.join(sorted(kinds))}")
    if half:
        node = _widen_inputs(node)
    node.require_float32(0)
    _refuse_forms(node)
    heads, groups = node.required_int("num_heads"), node.required_int("kv_num_heads")
    if groups < 1 or heads % groups:
        raise Unsupported(f"{heads} heads of queries for {groups} of keys")
    q, k, v = _split_packed(node, heads, groups)
    batch, new = q.shape[:2]
    size = q.shape[2] // heads
    if k.shape != (batch, new, groups * size) or v.shape != k.shape:
        raise Unsupported(f"keys {list(k.shape)} and values {list(v.shape)} for {list(q.shape)}")
    total = node.integers(6, "the total length of a sequence")[0]
    past = node.input(3).shape[2] if node.has(3) else 0
    room = max(total, past)
    lengths = node.reshape(node.input(5), (batch,))
    if lengths.dtype != "int32" or new > room:
        raise Unsupported(f"lengths of {lengths.dtype}, {new} new positions in {room}")
    tables = (node.input(7), node.input(8)) if node.attr("do_rotary", 0) else ()
    for table in tables:
        if table.dtype != "float32" or len(table.shape) != 2 or 2 * table.shape[1] > size:
            raise Unsupported(f"a table of angles {table.dtype}{list(table.shape)}")

    def place(first: int, *, rotates: bool) -> CachePlace:
        """Of an operation whose inputs from `first` on are lengths and tables."""
        at = (first + 1, first + 2) if rotates and tables else (0, 0)
        return CachePlace(
            length=first, new=new, starts_empty=new == total, cos=at[0], sin=at[1],
            interleaved=bool(node.attr("rotary_interleaved", 0)),
        )  # fmt: skip

    caches = []
    for x, index, rotates in ((k, 3, True), (v, 4, False)):
        before = (node.input(index),) if node.has(3) else ()
        first = 1 + len(before)
        inputs = (x, *before, lengths, *(tables if rotates else ()))
        cache = IrTensor((batch, groups, room, size), HALF if half else "float32")
        node.emit(
            CacheAppend(
                inputs=inputs, output=cache, place=place(first, rotates=rotates), past=len(before)
            )
        )
        caches.append(cache)
    sinks = (node.input(11),) if node.has(11) else ()
    inputs = (q, *caches, lengths, *tables, *sinks)
    output = IrTensor(q.shape, "float32")
    node.emit(
        GroupAttention(
            inputs=inputs,
            output=output,
            place=place(3, rotates=True),
            scale=float(node.attr("scale", 0.0)) or 1 / sqrt(size),
            softcap=float(node.attr("softcap", 0.0)),
            window=max(0, int(node.attr("local_window_size", -1))),
            sink=len(inputs) - 1 if sinks else 0,
            smooth=node.attr("smooth_softmax", -1) == 1,
        )
    )
    return [cast_half(node, output) if half else output, *caches]


def _widen_inputs(node: NodeView) -> NodeView:
    """The node with float32 inputs in place of float16 ones, caches excepted.

    An input that was float32 before is read as it was: nothing is rounded between.
    """
    inputs = list(node.inputs)
    for position, x in enumerate(inputs):
        if x is None or x.dtype != HALF or position in CACHES:
            continue
        if x.constant is not None:
            inputs[position] = constant(x.constant.astype(np.float32))
        else:
            inputs[position] = x.single or cast_half(node, x)
    return replace(node, inputs=tuple(inputs))


def _refuse_forms(node: NodeView) -> None:
    """Refuse what no kernel computes, with the name of it."""
    for position, what in {9: "position ids", 10: "a bias of the scores"}.items():
        if node.has(position):
            raise Unsupported(f"GroupQueryAttention with {what}")
    if any(x is not None for x in node.inputs[12:]) or node.attr("sliding_window_cache", 0):
        raise Unsupported("GroupQueryAttention with a quantised or windowed cache")
    if not node.attr("causal", 1) or len([n for n in node.node.outputs if n]) > 3:
        raise Unsupported("GroupQueryAttention that is not causal, or with scores as an output")
    if node.has(3) != node.has(4):
        raise Unsupported("past keys without past values")
    if node.has(11):
        node.require_float32(11)
    if not node.attr("local_window_size", -1):
        raise Unsupported("a window of no keys")


def _split_packed(node: NodeView, heads: int, groups: int) -> tuple[IrTensor, IrTensor, IrTensor]:
    """Queries, keys and values, which may be in one tensor."""
    packed = node.input(0)
    if len(packed.shape) != 3:
        raise Unsupported(f"queries of shape {list(packed.shape)}")
    if node.has(1) and node.has(2):
        node.require_float32(1, 2)
        return packed, node.input(1), node.input(2)
    size = packed.shape[2] // (heads + 2 * groups)
    ends = (heads * size, (heads + groups) * size, (heads + 2 * groups) * size)
    if ends[2] != packed.shape[2]:
        raise Unsupported(f"{packed.shape[2]} channels in {heads} and twice {groups} heads")
    parts = [
        slice_tensor(node, packed, [slice(None), slice(None), slice(begin, end)])
        for begin, end in zip((0, *ends), ends, strict=False)
    ]
    return parts[0], parts[1], parts[2]


CONTRIB: Mapping[str, Callable[[NodeView], Result]] = {
    "MatMulNBits": _matmul_nbits,
    "GatherBlockQuantized": _gather_block_quantized,
    "GroupQueryAttention": _group_query_attention,
}
