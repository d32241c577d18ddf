"""What differs between products of floats and of integers: registers, packed weights, sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.codegen.integer import (
    has_quads,
    integer_sums,
    integer_target,
    pack_pairs,
    packed_line,
)
from eps.opencl.codegen.tile import float_sums

if TYPE_CHECKING:
    from eps.opencl.codegen.tile import Contraction, Sums
    from eps.opencl.device import Target
    from eps.opencl.tilings import Tile
    from eps.opencl.views import View

    Array = np.ndarray[Any, np.dtype[Any]]

LARGEST_HALF = 65504.0
FLOAT_BITS = 32
"""What `Arithmetic.bits` of floats is; integers have fewer."""


class Arithmetic(Protocol):
    """One kind of numbers."""

    @property
    def bits(self) -> int:
        """Of an element of the input."""
        ...

    def target(self, target: Target) -> Target:
        """The device with its registers as this kind fills them."""
        ...

    def packed(self, weights: Array, tile: Tile, target: Target) -> Array:
        """[b, i, j, k, n] panel by panel, flat; the last panel overlaps."""
        ...

    def line(self, depth: int, tile: Tile) -> int:
        """Elements of packed weights at one tap of one panel."""
        ...

    def sums(self, spec: Contraction) -> Sums:
        """How a kernel sums them."""
        ...


@dataclass(frozen=True, slots=True)
class _Floats:
    bits: int = FLOAT_BITS

    def target(self, target: Target) -> Target:
        return target

    def packed(self, weights: Array, tile: Tile, target: Target) -> Array:
        return packed_panels(weights, tile, half=target.half)

    def line(self, depth: int, tile: Tile) -> int:
        return depth * tile.channels

    def sums(self, spec: Contraction) -> Sums:
        return float_sums(spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Integers:
    quads: bool
    constant: bool
    bits: int

    def target(self, target: Target) -> Target:
        return integer_target(target)

    def packed(self, weights: Array, tile: Tile, target: Target) -> Array:  # noqa: ARG002 - as Arithmetic says
        return pack_pairs(weights, tile, quads=self.quads)

    def line(self, depth: int, tile: Tile) -> int:
        return packed_line(depth, tile)

    def sums(self, spec: Contraction) -> Sums:  # noqa: ARG002 - as Arithmetic says
        return integer_sums(quads=self.quads, packed=self.constant)


def arithmetic_of(x: View, axis: int, *, constant: bool) -> Arithmetic:
    """For an input whose channels lie along `axis`; `constant` says whether weights are known."""
    if x.buffer.dtype == "float32":
        return _Floats()
    bits = 16 if x.buffer.dtype == "int16" else 8
    return _Integers(quads=has_quads(x, axis), constant=constant, bits=bits)


def packed_panels(weights: Array, tile: Tile, *, half: bool = False) -> Array:
    """[b, i, j, k, n] as [b, panel, i, j, k, channels of the panel]; the last panel overlaps.

    `half` as in `weights_dtype`.
    """
    n, channels = weights.shape[-1], tile.channels
    starts = [min(p * channels, n - channels) for p in range(-(-n // channels))]
    panels = np.stack([weights[..., s : s + channels] for s in starts], axis=1)
    return np.ascontiguousarray(panels, weights_dtype(weights, half=half)).reshape(-1)


def weights_dtype(weights: Array, *, half: bool) -> type[np.float16 | np.float32]:
    """Halves where `half` wants them and none of the values is beyond their range, else floats."""
    fits = half and bool(np.abs(weights).max(initial=0) <= LARGEST_HALF)
    return np.float16 if fits else np.float32
