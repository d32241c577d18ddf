"""Weights of 2, 4 or 8 bits in blocks, as `onnxruntime.quantization` has its binding make them.

The functions fill arrays of the caller's, whose bytes are then those that ONNX Runtime makes:
onnxruntime/core/mlas/lib/q4_dq.cpp, contrib_ops/cpu/quantization/blockwise_quant_block_bnb4.h.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

BLOCK_SIZES = (16, 32, 64, 128, 256)
_ONE, _ZERO = np.float32(1), np.float32(0)


def quantize_matmul_nbits(  # noqa: PLR0913 - onnxruntime's signature
    bits: int,
    dst: Array,
    src: Array,
    scale: Array,
    zero_points: Array,
    block_size: int,
    width: int,
    depth: int,
    is_symmetric: bool,  # noqa: FBT001 - onnxruntime's signature
    /,
) -> None:
    """Quantise a matrix for MatMulNBits: blocks along K of each column, columns one by one.

    Args:
        bits: 2, 4 or 8.
        dst: uint8 [N, blocks, block_size * bits / 8], filled as far as K goes.
        src: float32 or float16 [K, N].
        scale: Of the type of `src`, [N, blocks].
        zero_points: uint8 [N, (blocks * bits + 7) / 8]; left alone where `is_symmetric`.
        block_size: 16, 32, 64, 128 or 256.
        width: N.
        depth: K.
        is_symmetric: Whether 0 is the middle of the steps.

    Raises:
        TypeError: An array of another element type, or not contiguous.
        ValueError: A size that does not fit the others.
    """
    blocks = _blocks(depth, block_size)
    _check(src, scale, dst, zero_points)
    each, row_bytes = 8 // bits, blocks * block_size * bits // 8
    out = _room("dst", dst, width * row_bytes).reshape(width, row_bytes)
    matrix = _room("src", src, width * depth).reshape(depth, width)
    scales = _room("scale", scale, width * blocks)
    columns = np.ascontiguousarray(matrix.T, np.float32)
    low, high = _extremes(columns, blocks, block_size)
    middle = np.float32(1 << (bits - 1))
    if is_symmetric:
        block_scales = (-np.where(np.abs(high) > np.abs(low), high, low) / middle).astype(src.dtype)
        zeros = np.full(block_scales.shape, middle, np.float32)
    else:
        steps, zeros = _range(low, high, _ZERO, np.float32((1 << bits) - 1))
        block_scales = steps.astype(src.dtype)
        packed = _pack(zeros.astype(np.uint8), bits, fill=int(middle))
        _room("zero_points", zero_points, packed.size)[:] = packed.reshape(-1)
    scales[:] = block_scales.reshape(-1)
    by_row = np.repeat(_reciprocal(block_scales), block_size, axis=1)[:, :depth]
    zero = np.repeat(zeros, block_size, axis=1)[:, :depth]
    values = np.clip(_round(columns * by_row + zero), 0, (1 << bits) - 1).astype(np.uint8)
    data = _pack(_tail_filled(values, each, each * block_size), bits)
    out[:, : data.shape[1]] = data


quantize_matmul_2bits = partial(quantize_matmul_nbits, 2)
"""`quantize_matmul_nbits` without its first argument, as the two below."""
quantize_matmul_4bits = partial(quantize_matmul_nbits, 4)
quantize_matmul_8bits = partial(quantize_matmul_nbits, 8)


def quantize_qdq_matmul_4bits(  # noqa: PLR0913 - onnxruntime's signature
    dst: Array,
    src: Array,
    scale: Array,
    zero_points: Array,
    block_size: int,
    width: int,
    depth: int,
    is_symmetric: bool,  # noqa: FBT001 - onnxruntime's signature
    /,
) -> bool:
    """Quantise a matrix for DequantizeLinear: blocks along K, all steps row by row.

    Args:
        dst: uint8, room for K * N steps.
        src: float32 or float16 [K, N].
        scale: Of the type of `src`, [blocks, N].
        zero_points: uint8, room for blocks * N steps; left alone where `is_symmetric`.
        block_size: 1 or more; K for one step a column.
        width: N.
        depth: K.
        is_symmetric: Whether the steps are signed, with 0 for 0.

    Returns:
        Whether the steps are signed.

    Raises:
        TypeError: An array of another element type, or not contiguous.
        ValueError: A size that does not fit the others.
    """
    if block_size < 1:
        raise ValueError(f"block size is {block_size}, expected 1 or more")
    bits, blocks = 4, -(-depth // block_size)
    _check(src, scale, dst, zero_points)
    matrix = _room("src", src, width * depth).reshape(depth, width).astype(np.float32)
    scales = _room("scale", scale, width * blocks)
    low, high = _extremes(np.ascontiguousarray(matrix.T), blocks, block_size)
    low, high = low.T, high.T
    half = np.float32(1 << (bits - 1))
    if is_symmetric:
        block_scales = (-np.where(np.abs(high) > np.abs(low), high, low) / half).astype(src.dtype)
        zeros, least, most = np.zeros(block_scales.shape, np.float32), -int(half), int(half) - 1
    else:
        least, most = 0, (1 << bits) - 1
        steps, zeros = _range(low, high, _ZERO, np.float32(most))
        block_scales = steps.astype(src.dtype)
        _put_steps(zero_points, zeros.astype(np.uint8), bits, "zero_points")
    scales[:] = block_scales.reshape(-1)
    by_row = np.repeat(_reciprocal(block_scales), block_size, axis=0)[:depth]
    zero = np.repeat(zeros, block_size, axis=0)[:depth].astype(np.int32)
    values = np.clip(_round(matrix * by_row).astype(np.int32) + zero, least, most)
    _put_steps(dst, (values & ((1 << bits) - 1)).astype(np.uint8), bits, "dst")
    return bool(is_symmetric)


quantize_qdq_matmul_2bits = quantize_qdq_matmul_4bits
"""Of 4 bits, as in ONNX Runtime 1.31.1, where no tool calls it; odd widths are right here."""

_FP4_PIVOTS = (0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333)
_FP4_CODES = np.array([0b0000, 0b0001, 0b0110, 0b0111, 0b0100, 0b0101, 0b0010, 0b0011], np.uint8)
_NF4_PIVOTS = (
    *(-0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544),
    *(-0.23460740596055984, -0.13791173323988914, -0.045525018125772476, 0.03979014977812767),
    *(0.1202552504837513, 0.2035212516784668, 0.2920137718319893, 0.3893125355243683),
    *(0.5016634166240692, 0.6427869200706482, 0.8614784181118011),
)


def quantize_matmul_bnb4(  # noqa: PLR0913 - onnxruntime's signature
    dst: Array,
    src: Array,
    absmax: Array,
    block_size: int,
    quant_type: int,
    width: int,
    depth: int,
    /,
) -> None:
    """Quantise for MatMulBnb4: blocks of all elements in order, each with its largest value.

    Args:
        dst: uint8, half as many as elements; the first of two steps is in the high bits.
        src: float32 or float16, N * K elements.
        absmax: Of the type of `src`, one for each block.
        block_size: 16, 32, 64, 128 or 256.
        quant_type: 0 for FP4, 1 for NF4.
        width: N.
        depth: K.

    Raises:
        TypeError: An array of another element type, or not contiguous.
        ValueError: A size that does not fit the others, or another type.
    """
    count = width * depth
    blocks = _blocks(count, block_size)
    _check(src, absmax, dst)
    flat, largest_of = _room("src", src, count), _room("absmax", absmax, blocks)
    out = _room("dst", dst, (count + 1) // 2)
    if quant_type not in (0, 1):
        raise ValueError(f"quant_type is {quant_type}, expected 0 (FP4) or 1 (NF4)")
    padded = np.zeros(blocks * block_size, np.float32)
    padded[:count] = flat
    table = padded.reshape(blocks, block_size)
    largest = np.abs(table).max(axis=1)
    largest_of[:] = largest.astype(src.dtype)
    values = (table * _reciprocal(largest)[:, None]).reshape(-1)
    if quant_type == 0:
        pivots = np.array(_FP4_PIVOTS, np.float32)
        codes = _FP4_CODES[np.searchsorted(pivots, np.abs(values), side="left")]
        codes = codes + np.where(values < 0, 8, 0).astype(np.uint8)
    else:
        pivots = np.array(_NF4_PIVOTS, np.float32)
        codes = np.searchsorted(pivots, values, side="left").astype(np.uint8)
    pairs = codes.reshape(-1, 2)
    out[:] = (pairs[:, 0] << 4 | pairs[:, 1])[: len(out)]


def _extremes(rows: Array, blocks: int, block_size: int) -> tuple[Array, Array]:
    """Least and largest element of each block along the last axis: [rows, blocks]."""
    starts = np.arange(blocks) * block_size
    return np.minimum.reduceat(rows, starts, axis=1), np.maximum.reduceat(rows, starts, axis=1)


def _range(low: Array, high: Array, least: np.float32, most: np.float32) -> tuple[Array, Array]:
    """Step and zero point, float32 both, of steps from `least` to `most` that reach 0."""
    low, high = np.minimum(low, _ZERO), np.maximum(high, _ZERO)
    step = (high - low) / (most - least)
    some = step != 0
    zero = np.where(some, least - low / np.where(some, step, _ONE), low)
    return step, _round(np.clip(zero, least, most))


def _reciprocal(scale: Array) -> Array:
    wide = scale.astype(np.float32)
    return np.where(wide != 0, _ONE / np.where(wide != 0, wide, _ONE), _ZERO)


def _round(values: Array) -> Array:
    """C's roundf: halves go away from zero."""
    whole = np.trunc(values)
    away = np.abs(values - whole) >= np.float32(0.5)
    return whole + np.where(away, np.copysign(_ONE, values), _ZERO)


def _tail_filled(values: Array, each: int, group: int) -> Array:
    """Whole bytes of steps: ONNX Runtime leaves those of the byte before behind the last ones."""
    depth = values.shape[1]
    over = -depth % each
    if not over:
        return values
    begin = (depth - 1) // group * group  # of the rows that are quantised together
    before = [place - each for place in range(depth, depth + over)]
    tail = [
        values[:, place] if place >= begin else np.zeros(len(values), np.uint8) for place in before
    ]
    return np.concatenate([values, np.stack(tail, axis=1)], axis=1)


def _pack(values: Array, bits: int, fill: int = 0) -> Array:
    """Steps of the last axis in bytes, the first one lowest; the last byte filled with `fill`."""
    each = 8 // bits
    over = ((0, 0), (0, -values.shape[1] % each))
    filled = np.pad(values, over, constant_values=fill)
    parts = [filled[:, i::each] << (bits * i) for i in range(each)]
    return np.asarray(np.bitwise_or.reduce(parts))


def _put_steps(place: Array, steps: Array, bits: int, name: str) -> None:
    """Steps in order into bytes; bits behind the last one stay as they are."""
    packed = _pack(steps.reshape(1, -1), bits)[0]
    flat = _room(name, place, packed.size)
    used = steps.size * bits % 8
    if used:
        keep = 0xFF & ~((1 << used) - 1)
        packed[-1] |= flat[packed.size - 1] & keep
    flat[:] = packed


def _blocks(count: int, block_size: int) -> int:
    if block_size not in BLOCK_SIZES:
        raise ValueError(f"block size is {block_size}, expected one of {BLOCK_SIZES}")
    return -(-count // block_size)


def _check(src: Array, like_src: Array, *places: Array) -> None:
    if src.dtype not in (np.float32, np.float16) or like_src.dtype != src.dtype:
        raise TypeError(
            f"weights and scales are {src.dtype} and {like_src.dtype}, expected float32 or "
            "float16 both"
        )
    if any(place.dtype != np.uint8 for place in places):
        raise TypeError(f"steps are {[str(p.dtype) for p in places]}, expected uint8")
    if not all(place.flags.c_contiguous for place in (src, like_src, *places)):
        raise TypeError("an array is not contiguous")


def _room(name: str, place: Array, count: int) -> Array:
    """The first `count` elements in order, in place."""
    if place.size < count:
        raise ValueError(f"{name} has {place.size} elements, {count} are needed")
    return place.reshape(-1)[:count]
