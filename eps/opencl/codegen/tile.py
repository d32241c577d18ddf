"""One register tile for products and convolutions: pixels by channels, weights packed.

A work-item keeps `high * wide` output pixels by `panels` vectors of output channels in
registers, and runs over the window and the input channels: one element of the input times one
vector of packed weights. It does so for several tiles of pixels while its weights stay in
cache. The last tile of a row is moved back to end where the row ends, so that there is no
code for remainders; what is computed twice is stored twice, with equal values.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.codegen.kernel import Code, Kernel, decode, load, offset_of, store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.codegen.kernel import Finish
    from eps.opencl.device import Target
    from eps.opencl.views import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Contraction:
    """y[b, r, c, n] = sum over taps (i, j) and k of x[b, r, c, i, j, k] * w[b, i, j, k, n].

    Strides are in elements of the buffer they belong to; offsets come first in their tuples.

    Attributes:
        batch: Sizes of the outer axes.
        x, w, y: (buffer, offset, strides of the batch axes).
        x_steps: Strides of (row, column, tap row, tap column, depth).
        w_steps: Strides of (tap row, tap column, depth, panel); a panel's channels follow
            each other.
        y_steps: Strides of (row, column, channel).
        packed: Channels in a panel where `w` is packed, else 0 and channels follow each other.
    """

    batch: tuple[int, ...]
    rows: int
    columns: int
    taps: tuple[int, int]
    depth: int
    width: int
    x: tuple[Buffer, int, tuple[int, ...]]
    w: tuple[Buffer, int, tuple[int, ...]]
    y: tuple[Buffer, int, tuple[int, ...]]
    x_steps: tuple[int, int, int, int, int]
    w_steps: tuple[int, int, int, int]
    y_steps: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Tile:
    """Pixels (high * wide) by channels (panels * vector) that one work-item keeps."""

    high: int
    wide: int
    panels: int
    vector: int

    @property
    def channels(self) -> int:
        """Output channels of the tile."""
        return self.panels * self.vector


def choose_tile(target: Target, rows: int, columns: int, width: int) -> Tile:
    """The tile with the least waste among those that fill the registers.

    Cost per useful result: overlap at the edges, times loads per multiplication.
    """
    vector = target.vector
    while vector > width:
        vector //= 2
    best, best_cost = Tile(1, 1, 1, vector), float("inf")
    for panels in (1, 2, 3):
        if panels * vector > width:
            break
        for pixels in range(1, target.accumulators // panels + 1):
            for wide in {min(pixels, columns), *(d for d in (pixels,) if d <= columns)}:
                high = min(pixels // wide, rows)
                cost = _cost(Tile(high, wide, panels, vector), rows, columns, width)
                if cost < best_cost:
                    best, best_cost = Tile(high, wide, panels, vector), cost
    return best


def _cost(tile: Tile, rows: int, columns: int, width: int) -> float:
    pixels = tile.high * tile.wide
    computed = -(-rows // tile.high) * tile.high * -(-columns // tile.wide) * tile.wide
    channels = -(-width // tile.channels) * tile.channels
    waste = computed * channels / (rows * columns * width)
    loads = (tile.panels + pixels) / (tile.panels * pixels)  # for each multiplication
    short = 8 / (tile.panels * pixels) if tile.panels * pixels < 8 else 0  # latency of one
    return waste * (1 + loads + short)


def write_contraction(spec: Contraction, tile: Tile, finish: Finish, target: Target) -> Kernel:
    """The kernel; parameters are x, w, the epilogue's operands, y."""
    panels = -(-spec.width // tile.channels)
    down, across = -(-spec.rows // tile.high), -(-spec.columns // tile.wide)
    outer = prod(spec.batch) * panels
    groups, each = share_tiles(down * across, outer, target.tasks, work_of(spec))
    code = Code()
    code.add("const int id = get_global_id(0);")
    names = decode(code, "id", [*spec.batch, panels, groups], "b")
    *batch, panel, group = names
    y_index = len(finish.views) + 2
    first = "0" if panels == 1 else f"min({panel} * {tile.channels}, {spec.width - tile.channels})"
    code.add(f"const int n0 = {first};")
    code.add(f"__global const float* x = p0 + {_at(batch, spec.x)};")
    code.add(f"__global const float* w = p1 + {_weights_at(spec, batch, panel)};")
    code.add(f"__global float* y = p{y_index} + {_at(batch, spec.y)} + n0 * {spec.y_steps[2]};")
    hoisted = _hoist(code, finish, tile, batch)
    start, stop = f"{group} * {each}", f"min({group} * {each} + {each}, {down * across})"
    code.open(f"for (int t = {start}; t < {stop}; ++t)")
    row, column = (
        _edge("t", across, down, tile.high, spec.rows, 0),
        _edge("t", across, down, tile.wide, spec.columns, 1),
    )
    code.add(f"const int r0 = {row}, c0 = {column};")
    _write_sums(code, spec, tile)
    for i in range(tile.high * tile.wide):
        for j in range(tile.panels):
            _write_store(code, spec, tile, finish, hoisted, batch, (i, j))
    code.close()
    operands = (spec.x[0], spec.w[0], *(v.buffer for v in finish.views), spec.y[0])
    return Kernel(code.text(), operands, outer * groups, work=work_of(spec))


def work_of(spec: Contraction) -> int:
    """Multiplications and additions."""
    taps = spec.taps[0] * spec.taps[1]
    return 2 * prod(spec.batch) * spec.rows * spec.columns * spec.width * spec.depth * taps


SMALLEST_TASK = 100_000
"""Operations below which starting a work-group costs more than it brings."""


def share_tiles(tiles: int, outer: int, tasks: int, work: int) -> tuple[int, int]:
    """(groups, tiles in each): enough groups to have `tasks` work-items in all."""
    tasks = min(tasks, max(1, work // SMALLEST_TASK))
    groups = min(tiles, max(1, -(-tasks // outer)))
    each = -(-tiles // groups)
    return -(-tiles // each), each


def _at(batch: Sequence[str], place: tuple[Buffer, int, tuple[int, ...]]) -> str:
    return offset_of(zip(batch, place[2], strict=True), place[1])


def _weights_at(spec: Contraction, batch: Sequence[str], panel: str) -> str:
    base = _at(batch, spec.w)
    step = spec.w_steps[3]
    return f"{base} + {panel} * {step}" if step else f"{base} + n0"


def _edge(t: str, across: int, down: int, step: int, size: int, axis: int) -> str:
    """First row or column of tile `t`; the last one is moved back to end at the edge."""
    count = down if axis == 0 else across
    if count == 1:
        return "0"
    index = (
        (t if across == 1 else f"{t} / {across}")
        if axis == 0
        else (t if down == 1 else f"{t} % {across}")
    )
    return f"min(({index}) * {step}, {size - step})"


def _hoist(
    code: Code, finish: Finish, tile: Tile, batch: Sequence[str]
) -> dict[tuple[int, int], str]:
    """Load operands that are the same for every pixel, once: (operand, panel) to C name."""
    found = {}
    for i, view in enumerate(finish.views, 1):
        *outer, rows, columns, channel = view.strides
        if rows or columns:
            continue
        base = f"{offset_of(zip(batch, outer, strict=True), view.offset)} + n0 * {channel}"
        for j in range(tile.panels):
            index = f"{base} + {j * tile.vector * channel}"
            text = load(f"p{finish.first + i - 1}", index, channel, tile.vector)
            kind = f"float{tile.vector}" if tile.vector > 1 else "float"
            code.add(f"const {kind} h{i}_{j} = {text};")
            found[(i, j)] = f"h{i}_{j}"
    return found


def _write_sums(code: Code, spec: Contraction, tile: Tile) -> None:
    v, pixels = tile.vector, tile.high * tile.wide
    kind = f"float{v}" if v > 1 else "float"
    row, column, tap_row, tap_column, depth = spec.x_steps
    code.add(f"__global const float* xt = x + r0 * {row} + c0 * {column};")
    for i in range(pixels):
        names = ", ".join(f"a{i}_{j} = 0.0f" for j in range(tile.panels))
        code.add(f"{kind} {names};")
    blocks = 0
    xp, wp = "xt", "w"
    for name, count, x_step, w_step in (
        ("i", spec.taps[0], tap_row, spec.w_steps[0]),
        ("j", spec.taps[1], tap_column, spec.w_steps[1]),
    ):
        if count > 1:
            code.open(f"for (int {name} = 0; {name} < {count}; ++{name})")
            blocks += 1
            xp, wp = f"{xp} + {name} * {x_step}", f"{wp} + {name} * {w_step}"
    code.add(f"__global const float* xp = {xp};", f"__global const float* wp = {wp};")
    unroll = next(u for u in (4, 2, 1) if spec.depth % u == 0)
    code.open(f"for (int k = 0; k < {spec.depth}; k += {unroll})")
    for u in range(unroll):
        _write_step(code, spec, tile, u)
    advance_x, advance_w = depth * unroll, spec.w_steps[2] * unroll
    code.add(f"xp += {advance_x}; wp += {advance_w};")
    code.close(blocks + 1)


def _write_step(code: Code, spec: Contraction, tile: Tile, u: int) -> None:
    v = tile.vector
    kind = f"float{v}" if v > 1 else "float"
    row, column, _, _, depth = spec.x_steps
    for j in range(tile.panels):
        at = u * spec.w_steps[2] + j * v
        code.add(f"const {kind} w{u}_{j} = {load('wp', str(at), 1, v)};")
    for i in range(tile.high * tile.wide):
        at = i // tile.wide * row + i % tile.wide * column + u * depth
        code.add(f"const float x{u}_{i} = xp[{at}];")
        for j in range(tile.panels):
            factor = f"({kind})(x{u}_{i})" if v > 1 else f"x{u}_{i}"
            code.add(f"a{i}_{j} = mad({factor}, w{u}_{j}, a{i}_{j});")


def _write_store(  # noqa: PLR0913 - one pixel and panel of all that a tile is
    code: Code,
    spec: Contraction,
    tile: Tile,
    finish: Finish,
    hoisted: dict[tuple[int, int], str],
    batch: Sequence[str],
    place: tuple[int, int],
) -> None:
    i, j = place
    r, c, v = i // tile.wide, i % tile.wide, tile.vector
    loads = {}
    for number, view in enumerate(finish.views, 1):
        if (number, j) in hoisted:
            loads[number] = hoisted[(number, j)]
            continue
        *outer, rows, columns, channel = view.strides
        base = offset_of(
            [*zip(batch, outer, strict=True), ("r0", rows), ("c0", columns), ("n0", channel)],
            view.offset + r * rows + c * columns + j * v * channel,
        )
        loads[number] = load(f"p{finish.first + number - 1}", base, channel, v)
    value = finish.write(code, f"a{i}_{j}", loads, v, f"q{i}_{j}_")
    row, column, channel = spec.y_steps
    at = f"r0 * {row} + c0 * {column} + {r * row + c * column + j * v * channel}"
    code.add(*store("y", at, channel, v, value))
