"""com.microsoft operators on weights of 2, 4 or 8 bits, quantised block by block."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import FLOAT32, axis_in, check_allocation, widen_floats
from eps.cpu.kernels.few_bit_panels import multiply_by_panels, scale_steps, unpack_bits
from eps.cpu.kernels.quantize import repeat_elements
from eps.cpu.products import matmul
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"

PREPARED_BYTES = 1 << 24
"""Larger weights are unpacked anew by every run: as floats a language model would not fit."""

_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
_BNB4: Mapping[int, tuple[float, ...]] = MappingProxyType(
    {0: (*_FP4, *(-value for value in _FP4)), 1: _NF4}
)
"""Values of the 16 codes, by quant_type: contrib_ops/cpu/quantization/blockwise_quant_*."""


def _bits(info: KernelInfo) -> int:
    bits = int(info.attr("bits", 4))
    if bits not in (2, 4, 8):
        raise ValueError(f"{info.op_type}: bits is {bits}, expected 2, 4 or 8")
    return bits


def _matmul_nbits(info: KernelInfo) -> KernelFn:
    """A [..., K] times B [N, K], whose rows are blocks of steps: MatMulNBits-1."""
    bits = _bits(info)
    depth, width = int(info.attr("K")), int(info.attr("N"))

    def weights(b: Array, scales: Array, zeros: Array | None, groups: Array | None) -> Array:
        """Some columns of B as float32 [columns, K]; all arguments have those alone."""
        steps = unpack_bits(b, bits)
        factor = widen_floats(scales)[:, :, None]
        shift = _block_zeros(zeros, scales.shape, bits)
        if groups is None:
            return scale_steps(steps, shift, factor)[:, :depth]
        rows = steps.reshape(len(b), -1)[:, :depth]  # the block of each column is listed
        places = groups[:depth]
        shift = np.broadcast_to(shift, factor.shape)[:, places, 0]
        return np.asarray((rows - shift) * factor[:, places, 0])

    def by_columns(b: Array, scales: Array, zeros: Array | None) -> tuple[Array, ...]:
        b = b.reshape(width, -1, b.shape[-1])
        rows = () if zeros is None else (zeros.reshape(width, -1),)
        return b, scales.reshape(width, -1), *rows

    fixed = [info.constant(i) for i in range(1, 5)]
    present = [i for i in range(1, 5) if i < info.n_inputs and info.node.inputs[i]]
    prepared = None
    small = width * depth * 4 <= PREPARED_BYTES
    if small and all(info.constant(i) is not None for i in present):
        b, scales, *rest = by_columns(*fixed[:3])
        prepared = weights(b, scales, rest[0] if rest else None, fixed[3]).T

    def run(a: Array, *rest: Array | None) -> Array:
        optional: list[Array | None] = [*rest, *[None] * (5 - len(rest))]
        b, scales, zeros, groups, bias = optional
        assert b is not None
        assert scales is not None
        rows = widen_floats(a).reshape(-1, a.shape[-1])
        if prepared is not None:
            result = matmul(rows, prepared, info.empty)
        else:
            parts = by_columns(b, scales, zeros)

            def unpack(columns: slice) -> Array:
                some = [part[columns] for part in parts]
                return weights(some[0], some[1], some[2] if some[2:] else None, groups)

            result = multiply_by_panels(rows, width, unpack, info)
        if bias is not None:
            result += widen_floats(bias)
        return np.asarray(result.reshape(*a.shape[:-1], width), a.dtype)

    return run


def _block_zeros(zeros: Array | None, shape: tuple[int, int], bits: int) -> Array:
    """Zero points [N, blocks, 1]: the middle where none are given; packed as B, or floats."""
    width, blocks = shape
    if zeros is None:
        return np.full((1, 1, 1), 1 << (bits - 1), np.float32)
    if zeros.dtype != np.uint8:
        return np.asarray(widen_floats(zeros).reshape(width, blocks, 1))
    steps = unpack_bits(zeros.reshape(width, -1), bits)
    return steps[:, :blocks, None].astype(np.float32)


def _matmul_bnb4(info: KernelInfo) -> KernelFn:
    """A times B of 4-bit codes for floats, scaled block by block: MatMulBnb4-1."""
    depth, width = int(info.attr("K")), int(info.attr("N"))
    size, turn = int(info.attr("block_size")), bool(info.attr("transB", 1))
    kind = int(info.attr("quant_type"))
    if kind not in _BNB4:
        raise ValueError(f"MatMulBnb4: quant_type is {kind}, expected 0 (FP4) or 1 (NF4)")
    values = np.array(_BNB4[kind], np.float32)

    def run(a: Array, b: Array, largest: Array) -> Array:
        codes = np.empty((b.size, 2), np.uint8)
        codes[:, 0], codes[:, 1] = b.reshape(-1) >> 4, b.reshape(-1) & 15
        flat = values[codes.reshape(-1)[: depth * width]]
        flat *= repeat_elements(widen_floats(largest).reshape(-1), size, 0)[: flat.size]
        right = flat.reshape(width, depth)
        return np.asarray(matmul(widen_floats(a), right.T if turn else right, info.empty), a.dtype)

    return run


def _gather_block_quantized(info: KernelInfo) -> KernelFn:
    """Gather of quantised rows, dequantised: GatherBlockQuantized-1."""
    bits, size = int(info.attr("bits", 4)), int(info.attr("block_size", 128))
    at, along = int(info.attr("gather_axis", 0)), int(info.attr("quantize_axis", 1))

    def run(data: Array, indices: Array, scales: Array, zeros: Array | None = None) -> Array:
        axis, blocked = axis_in(at, data.ndim), axis_in(along, data.ndim)
        packed = data.dtype == np.uint8
        count = data.shape[axis]
        inside = (indices >= -count) & (indices < count)
        places = np.where(inside, indices, 0)
        check_allocation((places.size, data.size // max(count, 1)), FLOAT32)
        steps = np.take(data, places, axis)
        shift: Array | None = None
        if packed:
            steps = unpack_bits(steps, bits)
            shift = np.array(1 << (bits - 1), np.float32)
        # The quantised axis, counted from behind where gathering adds axes before it.
        axis_now = blocked if blocked < axis else blocked + indices.ndim - 1
        length = steps.shape[axis_now]

        def spread(values: Array) -> Array:
            picked = np.take(values, places, axis)
            wide = repeat_elements(picked.astype(np.float32), size, axis_now)
            return np.take(wide, np.arange(length), axis_now)

        if zeros is not None:
            blocks = scales.shape[blocked]
            whole = unpack_bits(zeros, bits) if packed else zeros
            shift = spread(np.take(whole, np.arange(blocks), blocked) if packed else whole)
        wide = steps.astype(np.float32)
        if shift is not None:
            wide -= shift
        wide *= spread(scales)
        if not inside.all():
            before = (1,) * axis
            after = (1,) * (wide.ndim - axis - indices.ndim)
            wide *= inside.reshape(*before, *inside.shape, *after)
        return np.asarray(wide, scales.dtype)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("MatMulNBits", domain=DOMAIN)(_matmul_nbits),
    kernel("MatMulBnb4", domain=DOMAIN)(_matmul_bnb4),
    kernel("GatherBlockQuantized", domain=DOMAIN)(_gather_block_quantized),
)
