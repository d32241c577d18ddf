"""The differences between float and integer products: registers, packed weights, sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.integer import (
    has_quads,
    integer_sums,
    integer_target,
    pack_pairs,
    size_packed_tap,
)
from eps.opencl.compile.codegen.quads import ACCUMULATORS as QUAD_ACCUMULATORS
from eps.opencl.compile.codegen.quads import (
    fits_quads,
    pack_quads,
    quad_line,
    quad_panel,
    quad_sums,
)
from eps.opencl.compile.codegen.tile import float_sums

if TYPE_CHECKING:
    from eps.opencl.compile.codegen.tile import Contraction, Sums
    from eps.opencl.compile.tilings import Tile
    from eps.opencl.compile.views import View
    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]

LARGEST_HALF = 65504.0
FLOAT_BITS = 32
"""`Arithmetic.bits` of floats; integers have fewer."""


class Arithmetic(Protocol):
    """One kind of numbers."""

    @property
    def bits(self) -> int:
        """Of an element of the input."""
        ...

    def target(self, target: Target) -> Target:
        """The device with its registers as this kind fills them."""
        ...

    def pack(self, weights: Array, tile: Tile, target: Target, taps: tuple[int, int]) -> Array:
        """[b, i, j, k, n] panel by panel, flat; the last panel overlaps.

        `taps` are steps in the input from a tap to the next in a column, and in a row.
        """
        ...

    def line(self, depth: int, tile: Tile) -> int:
        """Elements of packed weights at one tap of one panel."""
        ...

    def panel(self, taps: int, depth: int, tile: Tile) -> int:
        """Elements of packed weights from one panel to the next."""
        ...

    def sums(self, spec: Contraction) -> Sums:
        """How a kernel sums them."""
        ...


@dataclass(frozen=True, slots=True)
class _Floats:
    bits: int = FLOAT_BITS

    def target(self, target: Target) -> Target:
        return target

    def pack(self, weights: Array, tile: Tile, target: Target, taps: tuple[int, int]) -> Array:  # noqa: ARG002 - as Arithmetic says
        return pack_panels(weights, tile, half=target.half)

    def line(self, depth: int, tile: Tile) -> int:
        return depth * tile.channels

    def panel(self, taps: int, depth: int, tile: Tile) -> int:
        return taps * self.line(depth, tile)

    def sums(self, spec: Contraction) -> Sums:
        return float_sums(spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    quads: bool
    constant: bool
    bits: int

    def target(self, target: Target) -> Target:
        return integer_target(target)

    def pack(self, weights: Array, tile: Tile, target: Target, taps: tuple[int, int]) -> Array:  # noqa: ARG002 - as Arithmetic says
        return pack_pairs(weights, tile, quads=self.quads)

    def line(self, depth: int, tile: Tile) -> int:
        return size_packed_tap(depth, tile)

    def panel(self, taps: int, depth: int, tile: Tile) -> int:
        return taps * self.line(depth, tile)

    def sums(self, spec: Contraction) -> Sums:  # noqa: ARG002 - as Arithmetic says
        return integer_sums(quads=self.quads, packed=self.constant)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quads:
    signed: bool
    bits: int = 8

    def target(self, target: Target) -> Target:
        return integer_target(target, QUAD_ACCUMULATORS)

    def pack(self, weights: Array, tile: Tile, target: Target, taps: tuple[int, int]) -> Array:  # noqa: ARG002 - as Arithmetic says
        return pack_quads(weights, tile, taps, signed=self.signed)

    def line(self, depth: int, tile: Tile) -> int:
        return quad_line(depth, tile)

    def panel(self, taps: int, depth: int, tile: Tile) -> int:
        return quad_panel(taps, depth, tile)

    def sums(self, spec: Contraction) -> Sums:  # noqa: ARG002 - as Arithmetic says
        return quad_sums()


def arithmetic_of(x: View, axis: int, weights: Array | None) -> Arithmetic:
    """For an input whose channels lie along `axis`, and weights if they are known."""
    if x.buffer.dtype == "float32":
        return _Floats()
    if fits_quads(x, axis, weights):
        return _Quads(signed=x.buffer.dtype == "int8")
    bits = 16 if x.buffer.dtype == "int16" else 8
    return _Pairs(quads=has_quads(x, axis), constant=weights is not None, bits=bits)


def pack_panels(weights: Array, tile: Tile, *, half: bool = False) -> Array:
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
