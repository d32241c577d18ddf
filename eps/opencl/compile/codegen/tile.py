"""One register tile for products and convolutions: pixels by channels, weights packed.

A work-item keeps `high * wide` output pixels by `panels` vectors of output channels in
registers, and runs over the window and the input channels: one element of the input times one
vector of packed weights. It does so for several tiles of pixels while its weights stay in
cache. The last tile of a row is moved back to end where the row ends, so that there is no
code for remainders; what is computed twice is stored twice, with equal values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.kernel import (
    UNNAMED,
    Code,
    Kernel,
    decode,
    load,
    load_packed,
    offset_of,
    pointee_type,
    store,
)
from eps.opencl.compile.codegen.prefetch import PanelAhead
from eps.opencl.compile.codegen.tiling import share_tiles
from eps.opencl.compile.expression import literal, vector_type
from eps.opencl.compile.tilings import Tile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.opencl.compile.codegen.kernel import Finish
    from eps.opencl.compile.tilings import Problem, Tiling
    from eps.opencl.compile.views import Storage
    from eps.opencl.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Contraction:
    """y[b, r, c, n] = sum over taps (i, j) and k of x[b, r, c, i, j, k] * w[b, i, j, k, n].

    Strides are in elements of the buffer they belong to; offsets come first in their tuples.

    Attributes:
        sizes: Of everything that is summed or stored.
        batch: Sizes of the outer axes, whose product is that of `sizes`.
        x, w, y: (buffer, offset, strides of the batch axes).
        x_steps: Strides of (row, column, tap row, tap column, depth).
        w_steps: Strides of (tap row, tap column, depth, panel); a panel's channels follow
            each other.
        y_steps: Strides of (row, column, channel).
    """

    sizes: Problem
    batch: tuple[int, ...]
    x: tuple[Storage, int, tuple[int, ...]]
    w: tuple[Storage, int, tuple[int, ...]]
    y: tuple[Storage, int, tuple[int, ...]]
    x_steps: tuple[int, int, int, int, int]
    w_steps: tuple[int, int, int, int]
    y_steps: tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """How products are summed.

    Attributes:
        dtype: Of the sums.
        depth: Channels in a step of the innermost loop.
        label: What the kernel's name begins with.
        write: Adds what sums over the channels at one tap, from `xp` and `wp` into
            a<pixel>_<panel>; the lines that it is given go into each step.
        begin: Declares a<pixel>_<panel>, which starts as zeros if it is None.
        end: Adds what is summed after all taps, if anything is, from `xt`.
    """

    dtype: str
    depth: int
    label: str
    write: Callable[[Code, Contraction, Tile, Sequence[str]], None]
    begin: Callable[[Code, Contraction, Tile], None] | None = None
    end: Callable[[Code, Contraction, Tile], None] | None = None


def float_sums(spec: Contraction) -> Sums:
    """Floats, each product added to the sum before it."""
    unroll = next(u for u in (4, 2, 1) if spec.sizes.depth % u == 0)
    return Sums(dtype="float32", depth=unroll, label=UNNAMED, write=_write_depth)


def write_contraction(
    spec: Contraction, tiling: Tiling, finish: Finish, target: Target, sums: Sums
) -> Kernel:
    """The kernel; parameters are x, w, the epilogue's operands, y.

    Adjacent items of a work-group have adjacent channels: they load adjacent weights.
    """
    sizes, tile, tasks = spec.sizes, tiling.tile, tiling.tasks
    assert isinstance(tile, Tile), "no work-group shares it"
    panels = -(-sizes.width // tile.channels)
    down, across = -(-sizes.rows // tile.high), -(-sizes.columns // tile.wide)
    outer = sizes.batch * panels
    groups, each = share_tiles(down * across, outer, tasks, sizes.work)
    code = Code()
    code.add("const int id = get_global_id(0);")
    size = 1 if target.groups is None else target.groups.size
    if size == 1 and sizes.batch == 1:
        batch, panel, group = ["0"] * len(spec.batch), "panel", "group"
        code.add(f"const int panel = id / {groups}, group = id % {groups};")
    elif size == 1:
        *batch, panel, group = decode(code, "id", [*spec.batch, panels, groups], "b")
    else:
        code.add(f"if (id >= {outer * groups}) return;")
        *batch, group, panel = decode(code, "id", [*spec.batch, groups, panels], "b")
    y_index = len(finish.views) + 2
    last = max(sizes.width - tile.channels, 0)
    code.add(f"const int n0 = min({panel} * {tile.channels}, {last});")
    code.add(f"__global const {pointee_type(spec.x[0])}* x = p0 + {_at(batch, spec.x)};")
    code.add(
        f"__global const {pointee_type(spec.w[0])}* w = p1 + {_weights_at(spec, batch, panel)};"
    )
    y = f"p{y_index} + {_at(batch, spec.y)} + n0 * {spec.y_steps[2]}"
    code.add(f"__global {pointee_type(spec.y[0])}* y = {y};")
    hoisted = _hoist(code, finish, tile, batch)
    start, stop = f"{group} * {each}", f"min({group} * {each} + {each}, {down * across})"
    code.open(f"for (int t = {start}; t < {stop}; ++t)")
    row, column = (
        _edge("t", across, down, tile.high, sizes.rows, 0),
        _edge("t", across, down, tile.wide, sizes.columns, 1),
    )
    code.add(f"const int r0 = {row}, c0 = {column};")
    ahead = _panel_ahead(spec, sums, down * across) if target.prefetches else None
    code.add(*([ahead.begin("t")] if ahead else []))
    _write_sums(code, spec, tile, sums, ahead)
    for i in range(tile.high * tile.wide):
        for j in range(tile.panels):
            _write_store(code, spec, tile, finish, hoisted, batch, (i, j))
    code.close()
    operands = (spec.x[0], spec.w[0], *(v.buffer for v in finish.views), spec.y[0])
    items = -(-outer * groups // size) * size
    text, label = code.text(), sums.label
    return Kernel(text, operands, items, size, work=sizes.work, problem=sizes, label=label)


def _at(batch: Sequence[str], place: tuple[Storage, int, tuple[int, ...]]) -> str:
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
    names = {}
    for i, view in enumerate(finish.views, 1):
        *outer, rows, columns, channel = view.strides
        if rows or columns:
            continue
        base = f"{offset_of(zip(batch, outer, strict=True), view.offset)} + n0 * {channel}"
        for j in range(tile.panels):
            index = f"{base} + {j * tile.vector * channel}"
            dtype = view.buffer.dtype
            text = load(f"p{finish.first + i - 1}", index, channel, tile.vector, dtype)
            kind = vector_type(dtype, tile.vector)
            code.add(f"const {kind} h{i}_{j} = {text};")
            names[(i, j)] = f"h{i}_{j}"
    return names


def _panel_ahead(spec: Contraction, sums: Sums, tiles: int) -> PanelAhead | None:
    taps = spec.sizes.taps[0] * spec.sizes.taps[1]
    steps = taps * (spec.sizes.depth // sums.depth)
    return PanelAhead.of(spec.w[0], spec.w_steps[3], steps, tiles) if steps else None


def _write_sums(
    code: Code, spec: Contraction, tile: Tile, sums: Sums, ahead: PanelAhead | None
) -> None:
    kind, zero = vector_type(sums.dtype, tile.vector), literal(0, sums.dtype)
    row, column, tap_row, tap_column, _ = spec.x_steps
    x_type = pointee_type(spec.x[0])
    code.add(f"__global const {x_type}* xt = x + r0 * {row} + c0 * {column};")
    if sums.begin is not None:
        sums.begin(code, spec, tile)
    else:
        for i in range(tile.high * tile.wide):
            names = ", ".join(f"a{i}_{j} = {zero}" for j in range(tile.panels))
            code.add(f"{kind} {names};")
    blocks = 0
    xp, wp = "xt", "w"
    for name, count, x_step, w_step in (
        ("i", spec.sizes.taps[0], tap_row, spec.w_steps[0]),
        ("j", spec.sizes.taps[1], tap_column, spec.w_steps[1]),
    ):
        if count > 1:
            code.open(f"for (int {name} = 0; {name} < {count}; ++{name})")
            blocks += 1
            xp, wp = f"{xp} + {name} * {x_step}", f"{wp} + {name} * {w_step}"
    code.add(f"__global const {x_type}* xp = {xp};")
    code.add(f"__global const {pointee_type(spec.w[0])}* wp = {wp};")
    sums.write(code, spec, tile, ahead.step() if ahead else [])
    code.close(blocks)
    if sums.end is not None:
        code.open("")
        sums.end(code, spec, tile)
        code.close()


def _write_depth(code: Code, spec: Contraction, tile: Tile, extra: Sequence[str]) -> None:
    unroll = float_sums(spec).depth
    code.open(f"for (int k = 0; k < {spec.sizes.depth}; k += {unroll})")
    code.add(*extra)
    for u in range(unroll):
        _write_step(code, spec, tile, u)
    code.add(f"xp += {spec.x_steps[4] * unroll}; wp += {spec.w_steps[2] * unroll};")
    code.close()


def _write_step(code: Code, spec: Contraction, tile: Tile, u: int) -> None:
    v = tile.vector
    kind = f"float{v}" if v > 1 else "float"
    row, column, _, _, depth = spec.x_steps
    for j in range(tile.panels):
        at = u * spec.w_steps[2] + j * v
        code.add(f"const {kind} w{u}_{j} = {load_packed(spec.w[0], 'wp', str(at), v)};")
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
        pointer = f"p{finish.first + number - 1}"
        loads[number] = load(pointer, base, channel, v, view.buffer.dtype)
    value = finish.write(code, f"a{i}_{j}", loads, v, f"q{i}_{j}_")
    row, column, channel = spec.y_steps
    at = f"r0 * {row} + c0 * {column} + {r * row + c * column + j * v * channel}"
    code.add(*store("y", at, channel, v, value))
