"""Hashes of tensors' elements: com.microsoft MurmurHash3."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593


def murmur3(data: bytes, seed: int) -> int:
    """MurmurHash3_x86_32 of `data`, by its published description."""
    state = seed & _MASK
    whole = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        state ^= _scramble(block)
        state = (_rotate(state, 13) * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        state ^= _scramble(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    state = ((state ^ state >> 16) * 0x85EBCA6B) & _MASK
    state = ((state ^ state >> 13) * 0xC2B2AE35) & _MASK
    return state ^ state >> 16


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _MASK


def _scramble(block: int) -> int:
    return (_rotate((block * _C1) & _MASK, 15) * _C2) & _MASK


def _murmur_hash(info: KernelInfo) -> KernelFn:
    """com.microsoft MurmurHash3-1: uint32, or int32 where `positive` is 0, of each element.

    A number is hashed as its bytes, a string as its UTF-8.
    """
    seed = int(info.attr("seed", 0))
    kind = np.uint32 if info.attr("positive", 1) else np.int32

    def run(x: Array) -> Array:
        if x.dtype == object:
            pieces = [v if isinstance(v, bytes) else str(v).encode() for v in x.ravel()]
        else:
            data, size = np.ascontiguousarray(x).tobytes(), x.dtype.itemsize
            pieces = [data[i : i + size] for i in range(0, len(data), size)]
        hashes = np.array([murmur3(piece, seed) for piece in pieces], np.uint32)
        return hashes.astype(kind).reshape(x.shape)

    return run


KERNELS: tuple[KernelDef, ...] = (kernel("MurmurHash3", domain="com.microsoft")(_murmur_hash),)
