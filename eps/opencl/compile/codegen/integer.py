"""Sums of 8-bit products as int32: two neighbours in depth for each lane and instruction.

x86 multiplies pairs of 16-bit integers and adds the two products in one instruction (pmaddwd). That
is exact, and twice as many products as a fused multiplication of floats has. Weights are packed so
that a vector has pairs of each channel side by side, one byte each, and are widened as they are
loaded. Four neighbours of the input are one 32-bit load, whose even and odd bytes are two pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.codegen.kernel import load
from eps.opencl.compile.codegen.tile import Sums
from eps.opencl.compile.expression import vector_type
from eps.opencl.program_spec import INTEGER_LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.kernel import Code
    from eps.opencl.compile.codegen.tile import Contraction
    from eps.opencl.compile.tilings import Tile
    from eps.opencl.compile.views import View
    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]
    Pair = tuple[int, int | None]

MOST_LANES = 8
"""Of int32: the pairs of a vector are twice as many, and OpenCL C has no more than 16."""
ACCUMULATORS = 8
"""Vectors of sums where a CPU has 16 registers: two vectors of weights for each panel take more."""
MANY_ACCUMULATORS = 16
"""The same for devices with more registers."""
QUAD = 4
"""Neighbours that are one load of 32 bits."""


def integer_target(target: Target, accumulators: int = ACCUMULATORS) -> Target:
    """The device with so many accumulators, or more where it has many registers."""
    few = target.accumulators < MANY_ACCUMULATORS
    most = accumulators if few else target.accumulators
    return replace(target, vector=min(MOST_LANES, target.vector), accumulators=most)


def pairs(depth: int, *, quads: bool) -> list[Pair]:
    """Channels that are multiplied side by side, in the order of packed weights.

    Of four bytes the even ones are a pair and the odd ones another; a rest is in pairs of
    neighbours, the last alone where `depth` is odd.
    """
    whole = depth // QUAD * QUAD if quads else 0
    whole_quads: list[Pair] = []
    for k in range(0, whole, QUAD):
        whole_quads += [(k, k + 2), (k + 1, k + 3)]
    return [*whole_quads, *((k, k + 1 if k + 1 < depth else None) for k in range(whole, depth, 2))]


def has_quads(x: View, axis: int) -> bool:
    """Whether neighbours along an axis of `x` are bytes that follow each other."""
    return x.buffer.dtype != "int16" and (x.strides[axis] == 1 or x.shape[axis] == 1)


def pack_pairs(weights: Array, tile: Tile, *, quads: bool) -> Array:
    """[b, i, j, k, n] as [b, panel, i, j, pair, channel, 2], flat; the last panel overlaps.

    One byte for each where all of them fit, else two.
    """
    n, channels = weights.shape[-1], tile.channels
    starts = [min(p * channels, n - channels) for p in range(-(-n // channels))]
    panels = np.stack([weights[..., s : s + channels] for s in starts], axis=1)
    return _interleave_pairs(panels, quads=quads)


def pack_taps(taps: Array) -> Array:
    """[tap, channel] as [pair of taps, channel, 2], flat, in one byte each or two."""
    return _interleave_pairs(taps, quads=False)


def _interleave_pairs(weights: Array, *, quads: bool) -> Array:
    """[..., k, n] as [..., pair, n, 2], flat; the last of an odd number is paired with zeros."""
    depth = weights.shape[-2]
    filled = np.concatenate([weights, np.zeros_like(weights[..., :1, :])], axis=-2)
    order = [[a, depth if b is None else b] for a, b in pairs(depth, quads=quads)]
    packed = np.moveaxis(filled[..., np.array(order), :], -2, -1)
    low, high = weights.min(initial=0), weights.max(initial=0)
    dtype = np.int8 if low >= -128 and high <= 127 else np.int16
    return np.ascontiguousarray(packed, dtype).reshape(-1)


def size_packed_tap(depth: int, tile: Tile) -> int:
    """Elements that `pack_pairs` makes of one tap."""
    return -(-depth // 2) * 2 * tile.channels


def integer_sums(*, quads: bool, packed: bool) -> Sums:
    """How `write_contraction` sums integers.

    Args:
        quads: Whether the input has four channels in each 32 bits.
        packed: Whether the weights are in pairs, or rows in the model's order.
    """

    def write(code: Code, spec: Contraction, tile: Tile, extra: Sequence[str]) -> None:
        _write_depth(code, _Inner(spec, tile, quads=quads, packed=packed), extra)

    return Sums(dtype="int32", depth=QUAD if quads else 2, label=INTEGER_LABEL, write=write)


def zip_vectors(dtype: str, vector: int, first: str, second: str) -> str:
    """Vectors side by side, element by element, as 16-bit integers; "" stands for zeros."""
    other = second or f"({vector_type(dtype, vector)})(0)"
    return f"convert_short{2 * vector}(ol_zip({first}, {other}))"


class _Inner:
    """Texts of one step in depth: a register's worth of weights and of the input."""

    def __init__(self, spec: Contraction, tile: Tile, *, quads: bool, packed: bool) -> None:
        self.spec = spec
        self.tile = tile
        self.quads = quads
        self.packed = packed
        self.vector = tile.vector
        self.x_type, self.w_type = spec.x[0].dtype, spec.w[0].dtype

    @property
    def step_x(self) -> int:
        return self.spec.x_steps[4]

    def pixel(self, i: int) -> int:
        """Offset of a pixel of the tile."""
        row, column = self.spec.x_steps[:2]
        return i // self.tile.wide * row + i % self.tile.wide * column

    def step_w(self, channels: int) -> int:
        """Elements of weights that so many channels take."""
        if self.packed:
            return size_packed_tap(channels, self.tile)
        return channels * self.spec.w_steps[2]

    def weights(self, pair: int, channels: Pair, j: int) -> str:
        """Pairs of a panel's channels as 16-bit integers; pair `pair` from `wp` on."""
        v = self.vector
        if self.packed:
            at = pair * 2 * self.tile.channels + j * 2 * v
            text = f"vload{2 * v}(0, wp + {at})"
            return text if self.w_type == "int16" else f"convert_short{2 * v}({text})"
        return zip_vectors(self.w_type, v, *(self._row(k, j) for k in channels))

    def _row(self, k: int | None, j: int) -> str:
        if k is None:
            return ""
        return load("wp", str(k * self.spec.w_steps[2] + j * self.vector), 1, self.vector)

    def spread_pairs(self, text: str) -> str:
        """The 32-bit integer in each lane, as pairs of 16-bit integers."""
        kind = vector_type("int32", self.vector)
        return f"as_short{2 * self.vector}(({kind})({text}))"

    def quad(self, i: int) -> list[str]:
        """Pairs of the even and of the odd of four bytes, as x<i>_0 and x<i>_1."""
        v2, signed = 2 * self.vector, self.x_type == "int8"
        name = f"b{i}"
        load = self.spread_pairs(f"as_int(vload4(0, xp + {self.pixel(i)}))")
        odd = f"as_short{v2}(as_{'' if signed else 'u'}short{v2}({name}) >> (ushort)8)"
        even = f"{name} & (short)255"
        if signed:
            even = f"({name} << (ushort)8) >> (ushort)8"
            odd = f"{name} >> (ushort)8"
        kind = f"const short{v2}"
        return [f"{kind} {name} = {load};", f"{kind} x{i}_0 = {even}, x{i}_1 = {odd};"]

    def pair(self, i: int, channels: Pair) -> list[str]:
        """One pair, as x<i>_0."""
        first, second = channels
        at = self.pixel(i)
        if self.x_type == "int16" and self.step_x == 1 and second is not None:
            text = f"as_int(vload2(0, xp + {at + first}))"
        else:
            low, high = (
                "0" if k is None else f"xp[{at + k * self.step_x}]" for k in (first, second)
            )
            text = f"ol_pair({low}, {high})"
        return [f"const short{2 * self.vector} x{i}_0 = {self.spread_pairs(text)};"]


def _write_depth(code: Code, inner: _Inner, extra: Sequence[str]) -> None:
    depth, step = inner.spec.sizes.depth, QUAD if inner.quads else 2
    whole = depth // step * step
    if whole:
        code.open(f"for (int k = 0; k < {whole}; k += {step})")
        code.add(*extra)
        _write_step(code, inner, pairs(step, quads=inner.quads), quad=inner.quads)
        code.add(f"xp += {inner.step_x * step}; wp += {inner.step_w(step)};")
        code.close()
    for at, channels in enumerate(pairs(depth - whole, quads=False)):
        code.open("")
        _write_step(code, inner, [channels], quad=False, first=at)
        code.close()


def _write_step(
    code: Code, inner: _Inner, steps: Sequence[Pair], *, quad: bool, first: int = 0
) -> None:
    tile = inner.tile
    for p, channels in enumerate(steps):
        for j in range(tile.panels):
            kind = f"const short{2 * inner.vector}"
            code.add(f"{kind} w{p}_{j} = {inner.weights(first + p, channels, j)};")
    for i in range(tile.high * tile.wide):
        code.add(*(inner.quad(i) if quad else inner.pair(i, steps[0])))
        for p in range(len(steps)):
            for j in range(tile.panels):
                code.add(f"a{i}_{j} += ol_madd(x{i}_{p}, w{p}_{j});")
