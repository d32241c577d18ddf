"""Sums of 8-bit products as int32, four neighbours in depth for each lane.

x86 multiplies bytes, unsigned by signed, and adds two neighbours' products in one instruction:
twice as many as pairs of 16-bit integers, but it holds a sum of two within 16 bits. So that it is
exact, two neighbouring weights may be 128 together and no more. What is over is put aside, and
quads of a vector of channels that have any of it are multiplied once more, by that. Trained
weights have some in a quarter of them, where each output channel has a scale of its own.

Packed weights are, for each panel and then each tap, quads of [channel, 4] bytes. A head follows:
what the sums begin with, and for each vector of channels where its rest begins and how many quads
that has. The rests come last: the offset of a quad in the input, and its weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.codegen.tile import Sums
from eps.opencl.compile.expression import vector_type
from eps.opencl.program_spec import INTEGER_LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.kernel import Code
    from eps.opencl.compile.codegen.tile import Contraction
    from eps.opencl.compile.tilings import Tile
    from eps.opencl.compile.views import View

    Array = np.ndarray[Any, np.dtype[Any]]

ACCUMULATORS = 9
"""Vectors of sums on a CPU of 16 registers."""
QUAD = 4
"""Bytes that are multiplied together."""
MOST = 128
"""Of the magnitudes of two neighbouring weights: 255 times that is within 16 bits."""
MOST_REST = 0.5
"""Part of the quads with a rest, beyond which pairs of 16-bit integers are faster."""
LANES = 8
"""Channels of a vector, for that estimate."""
SIGN = 0x80
"""Offset that makes a signed byte unsigned: 128."""
LINE = 32
"""Bytes of which a panel is a multiple, so that its vectors cross few cache lines."""


def fits_quads(x: View, axis: int, weights: Array | None) -> bool:
    """Whether this is the way to sum known weights [..., k, n] times bytes along an axis of `x`."""
    if weights is None or x.buffer.dtype == "int16":
        return False
    follows = x.strides[axis] == 1 or x.shape[axis] == 1
    bytes_only = weights.min(initial=0) >= -128 and weights.max(initial=0) <= 127
    return follows and bytes_only and _rest_share(weights) <= MOST_REST


def _rest_share(weights: Array) -> float:
    """Which part of the quads, of `LANES` channels each, has weights that are over."""
    depth, n = weights.shape[-2:]
    fill = [(0, 0)] * (weights.ndim - 2) + [(0, -depth % QUAD), (0, -n % LANES)]
    filled = np.abs(np.pad(weights.astype(np.int16), fill))
    pairs = filled.reshape(-1, filled.shape[-2] // 2, 2, filled.shape[-1]).sum(axis=2)
    over = (pairs > MOST).reshape(pairs.shape[0], -1, 2, pairs.shape[-1] // LANES, LANES)
    return float(over.any(axis=(2, 4)).mean()) if over.size else 0.0


def quad_line(depth: int, tile: Tile) -> int:
    """Bytes of one tap of one panel; a last quad that is not whole has its rest next to it."""
    return (depth // QUAD + (2 if depth % QUAD else 0)) * QUAD * tile.channels


def quad_panel(taps: int, depth: int, tile: Tile) -> int:
    """Bytes of one panel with its head."""
    return taps * quad_line(depth, tile) + QUAD * tile.channels + _rest_table(tile)


def _rest_table(tile: Tile) -> int:
    """Bytes of a head in addition to the sums: two integers for each vector."""
    return -(-2 * QUAD * tile.panels // LINE) * LINE


def pack_quads(weights: Array, tile: Tile, steps: tuple[int, int], *, signed: bool) -> Array:
    """[b, i, j, k, n] as the module says, flat int8; the last panel overlaps.

    Args:
        weights: Bytes, whatever their type.
        tile: Its channels are a panel.
        steps: Elements of the input from a tap to the next in a column, and in a row.
        signed: Whether the input is, and gets `SIGN` in each byte.
    """
    panels = _panels(weights, tile)
    kept, rest = _bound_weight_sums(panels)
    if weights.shape[-2] % QUAD:
        kept = np.concatenate([kept, rest[:, :, :, :, -1:]], axis=4)
        rest = np.concatenate([rest[:, :, :, :, :-1], np.zeros_like(kept[:, :, :, :, :2])], axis=4)
    b, p, i, j, quads = kept.shape[:5]
    begin = panels.sum(axis=(2, 3, 4, 6), dtype=np.int32) * (-SIGN if signed else 0)
    places = np.add.outer(
        np.add.outer(np.arange(i) * steps[0], np.arange(j) * steps[1]), np.arange(quads) * QUAD
    ).reshape(-1)
    main = np.ascontiguousarray(kept, np.int8).reshape(b * p, -1)
    extra = rest.reshape(b * p, -1, tile.panels, tile.vector * QUAD)
    heads, tail = [], []
    end = b * p * quad_panel(i * j, weights.shape[-2], tile)
    for each, first in zip(extra, begin.reshape(b * p, -1), strict=True):
        head = np.zeros(_rest_table(tile) // QUAD, np.int32)
        for vector in range(tile.panels):
            used = np.flatnonzero(each[:, vector].any(axis=1))
            head[2 * vector : 2 * vector + 2] = end, used.size
            tail.append(_with_places(places[used], each[used, vector]))
            end += tail[-1].size
        heads.append(np.concatenate([first, head]).view(np.int8))
    return np.concatenate([np.concatenate([main, np.stack(heads)], axis=1).reshape(-1), *tail])


def _with_places(places: Array, quads: Array) -> Array:
    """Each place as four bytes, its quad's bytes after it; flat."""
    rows = np.empty((places.size, QUAD + quads.shape[1]), np.int8)
    rows[:, :QUAD] = places.astype(np.int32).view(np.int8).reshape(-1, QUAD)
    rows[:, QUAD:] = quads
    return rows.reshape(-1)


def _panels(weights: Array, tile: Tile) -> Array:
    """[b, i, j, k, n] as [b, panel, i, j, quad, channel, 4], zeros after the last of a depth."""
    n, channels, depth = weights.shape[-1], tile.channels, weights.shape[-2]
    starts = [min(p * channels, n - channels) for p in range(-(-n // channels))]
    panels = np.stack([weights[..., s : s + channels] for s in starts], axis=1).astype(np.int16)
    filled = np.pad(panels, [*[(0, 0)] * 4, (0, -depth % QUAD), (0, 0)])
    shape = (*filled.shape[:4], -1, QUAD, channels)
    return np.moveaxis(filled.reshape(shape), -2, -1)


def _bound_weight_sums(panels: Array) -> tuple[Array, Array]:
    """Weights of which no two neighbours are over `MOST` together, and what was taken off."""
    pairs = panels.reshape(*panels.shape[:-1], 2, 2)
    over = np.maximum(np.abs(pairs).sum(axis=-1) - MOST, 0)
    first = np.abs(pairs[..., 0]) >= np.abs(pairs[..., 1])
    share = np.stack([np.where(first, over, 0), np.where(first, 0, over)], axis=-1)
    rest = (np.sign(pairs) * share).astype(np.int16)
    return (pairs - rest).reshape(panels.shape), rest.reshape(panels.shape)


def quad_sums() -> Sums:
    """How `write_contraction` sums bytes."""
    return Sums(
        dtype="int32",
        depth=QUAD,
        label=INTEGER_LABEL,
        write=_write_depth,
        begin=_write_begin,
        end=_write_rest,
    )


def _head(spec: Contraction, tile: Tile) -> int:
    taps = spec.sizes.taps[0] * spec.sizes.taps[1]
    return taps * quad_line(spec.sizes.depth, tile)


def _int(pointer: str, at: int) -> str:
    return f"as_int(vload4(0, {pointer} + {at}))"


def _load_words(pointer: str, at: int, vector: int) -> str:
    """Vector of 32-bit integers of bytes."""
    if vector == 1:
        return _int(pointer, at)
    return f"vload{vector}(0, (__global const int*)({pointer} + {at}))"


def _write_begin(code: Code, spec: Contraction, tile: Tile) -> None:
    kind = vector_type("int32", tile.vector)
    for i in range(tile.high * tile.wide):
        for j in range(tile.panels):
            at = _head(spec, tile) + j * QUAD * tile.vector
            code.add(f"{kind} a{i}_{j} = {_load_words('w', at, tile.vector)};")


def _write_depth(code: Code, spec: Contraction, tile: Tile, extra: Sequence[str]) -> None:
    depth = spec.sizes.depth
    whole, line = depth // QUAD * QUAD, QUAD * tile.channels
    if whole:
        code.open(f"for (int k = 0; k < {whole}; k += {QUAD})")
        code.add(*extra)
        _write_quad(code, spec, tile, QUAD)
        code.add(f"xp += {QUAD}; wp += {line};")
        code.close()
    for _ in range(2 if depth > whole else 0):
        code.open("")
        _write_quad(code, spec, tile, depth - whole)
        code.close()
        code.add(f"wp += {line};")


def _write_rest(code: Code, spec: Contraction, tile: Tile) -> None:
    """Quads of a vector of channels that are multiplied once more, by what was over."""
    head = _head(spec, tile) + QUAD * tile.channels
    for j in range(tile.panels):
        at = head + 2 * QUAD * j
        code.open("")
        code.add(f"__global const char* wp = p1 + {_int('w', at)};")
        code.open(f"for (int e = {_int('w', at + QUAD)}; e > 0; --e)")
        code.add(
            f"__global const {_pointee_type(spec)}* xp = xt + {_int('wp', 0)};", f"wp += {QUAD};"
        )
        _write_quad(code, spec, tile, QUAD, range(j, j + 1))
        code.add(f"wp += {QUAD * tile.vector};")
        code.close(2)


def _pointee_type(spec: Contraction) -> str:
    return "char" if spec.x[0].dtype == "int8" else "uchar"


def _write_quad(
    code: Code, spec: Contraction, tile: Tile, count: int, vectors: range | None = None
) -> None:
    """Multiply `count` bytes at `xp` by weights at `wp`, of all vectors of channels or of some."""
    kind, (row, column) = vector_type("int32", tile.vector), spec.x_steps[:2]
    signed = spec.x[0].dtype == "int8"
    for i in range(tile.high * tile.wide):
        at = i // tile.wide * row + i % tile.wide * column
        text = _int("xp", at) if count == QUAD else _load_partial_quad(at, count)
        flip = f" ^ ({kind})(0x80808080)" if signed else ""
        code.add(f"const {kind} x{i} = ({kind})({text}){flip};")
    for at, j in enumerate(vectors or range(tile.panels)):
        code.add(f"const {kind} w_{j} = {_load_words('wp', at * QUAD * tile.vector, tile.vector)};")
        for i in range(tile.high * tile.wide):
            code.add(f"a{i}_{j} = ol_dot(a{i}_{j}, x{i}, w_{j});")


def _load_partial_quad(at: int, count: int) -> str:
    """Fewer bytes than a quad has, zeros above them."""
    parts = [f"((int)(uchar)xp[{at + k}] << {8 * k})" for k in range(count)]
    return f"({' | '.join(parts)})"
