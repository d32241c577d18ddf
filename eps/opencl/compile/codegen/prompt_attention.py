"""Attention of prompts to a cache: tiles of queries by blocks of keys, on CPUs.

A unit of work is `POSITIONS` or more queries of all heads that share keys, its rows. Their scores
for a block of keys are a product whose lanes are rows, so that the softmax needs no sums across
lanes; rows of values are then added, weighted, to the results. When the largest score of a row
rises, what it has so far fades. Blocks after the last position of a unit are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.cache_place import fitting_vector, write_rotated, write_start
from eps.opencl.compile.codegen.kernel import (
    Code,
    Kernel,
    decode,
    floats,
    load,
    load_packed,
    offset_of,
    pointee_type,
    store,
)
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.element_types import HALF

if TYPE_CHECKING:
    from eps.opencl.compile.decoder_op import GroupAttention
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

POSITIONS = 16
"""Queries of a head in a unit, or a multiple: as many as the longest vector has lanes."""
MOST_ROWS = 128
"""Of a unit, where the heads of a group do not make more: their memory stays in a cache."""
STRIP = 2
"""Vectors that one broadcast value is multiplied by."""
GLOBAL = "__global const float*"
KEY_TILES = 4
"""Tiles of keys in a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tiles:
    """Sizes of a unit.

    Attributes:
        positions: Queries of a head.
        heads: Of queries for one of keys.
        size: Of a head.
        vector: Floats of a vector.
        strip: Vectors of rows, and of a head, that are multiplied at a time.
        tile: Keys, and rows, that are multiplied at a time.
        keys: Of a block.
    """

    positions: int
    heads: int
    size: int
    vector: int
    strip: tuple[int, int]
    tile: int
    keys: int

    @property
    def rows(self) -> int:
        """Queries of a unit."""
        return self.positions * self.heads


def takes_prompts(op: GroupAttention, step: PlacedOp, target: Target) -> bool:
    """Whether there are enough queries, on a device whose work-items work alone."""
    keys = step.inputs[1]
    fits = fitting_vector(keys.shape[3], target) == target.vector
    return op.place.new >= POSITIONS and target.groups is None and fits


def _choose_tiles(op: GroupAttention, step: PlacedOp, target: Target) -> _Tiles:
    groups, size = step.inputs[1].shape[1], step.inputs[1].shape[3]
    heads = step.inputs[0].shape[2] // size // groups
    times = min(op.place.new, MOST_ROWS // heads) // POSITIONS
    positions = POSITIONS * (1 if op.window else max(1, times))  # a window: fewer than a block
    vector = target.vector
    strips = [STRIP if count % (STRIP * vector) == 0 else 1 for count in (positions * heads, size)]
    tile = max(4, target.accumulators // STRIP)
    return _Tiles(
        positions=positions, heads=heads, size=size, vector=vector, strip=(strips[0], strips[1]),
        tile=tile, keys=max(KEY_TILES * tile, -(-POSITIONS // tile) * tile),
    )  # fmt: skip


def prompt_attention_kernel(op: GroupAttention, step: PlacedOp, target: Target) -> Kernel:
    """One launch for all queries; the last ones, which see most keys, come first."""
    q, keys, y = step.inputs[0], step.inputs[1], step.output
    batch, groups, room, size = keys.shape
    tiles, new = _choose_tiles(op, step, target), op.place.new
    count = -(-new // tiles.positions)
    code = Code()
    spanned = new if op.place.starts_empty else room
    work = 4 * batch * groups * tiles.heads * new * spanned * size
    spread = open_units(code, batch * groups * count, max(1, work // SMALLEST_TASK), target)
    b, part, g = decode(code, "u", (batch, count, groups), "d")
    write_start(code, op.place, step, b, room)
    limit = new - tiles.positions
    code.add(f"const int s0 = min(({count - 1} - {part}) * {tiles.positions}, {limit});")
    writer = _Writer(code, op, step, tiles)
    writer.write_queries((b, g))
    cache = offset_of([(b, keys.strides[0]), (g, keys.strides[1])], 0)
    for index, name in ((1, "k"), (2, "v")):
        place = f"{step.inputs[index].offset} + {cache}"
        code.add(f"__global const {pointee_type(keys.buffer)}* {name} = p{index} + {place};")
    writer.write_blocks()
    at = offset_of(
        [(b, new * q.shape[2]), ("(s0 + p)", q.shape[2]), (g, tiles.heads * size), ("h", size)],
        y.offset,
    )
    writer.write_results(f"p{len(step.inputs)} + {at}")
    code.close()
    operands = (*(v.buffer for v in step.inputs), y.buffer)
    return Kernel(code.text(), operands, *spread, checks=True, work=work, label="attention_")


class _Writer:
    """Writes the parts of a unit; row h * positions + p is head h's query at s0 + p."""

    def __init__(self, code: Code, op: GroupAttention, step: PlacedOp, tiles: _Tiles) -> None:
        self._code, self._op, self._step, self._tiles = code, op, step, tiles
        self._is_half = step.inputs[1].buffer.dtype == HALF

    def write_queries(self, place: tuple[str, str]) -> None:
        """Queries [size, rows], rotated and scaled; own: their positions, as floats."""
        code, t, q = self._code, self._tiles, self._step.inputs[0]
        b, g = place
        code.add(f"float queries[{t.size * t.rows}], sums[{t.rows * t.size}];")
        code.add(f"float scores[{t.keys * t.rows}];")
        code.add(f"float top[{t.rows}], total[{t.rows}], fades[{t.rows}], own[{t.rows}];")
        code.open(f"for (int h = 0; h < {t.heads}; ++h)")
        code.add(f"const int n = {g} * {t.heads} + h;")
        code.open(f"for (int p = 0; p < {t.positions}; ++p)")
        row = offset_of([(b, q.strides[0]), ("(s0 + p)", q.strides[1]), ("n", t.size)], q.offset)
        code.add(f"__global const float* from = p0 + {row};", f"float to[{t.size}];")
        code.add(f"const int row = h * {t.positions} + p, at_row = before + s0 + p;")
        turn = "at_row", f"{self._op.scale!r}f"
        write_rotated(code, self._op.place, self._step, t.size, turn)
        code.add(f"for (int i = 0; i < {t.size}; ++i) queries[i * {t.rows} + row] = to[i];")
        code.add(f"for (int i = 0; i < {t.size}; ++i) sums[row * {t.size} + i] = 0.0f;")
        first, total = "-INFINITY", "0.0f"
        if self._op.sink:
            first = f"p{self._op.sink}[{self._step.inputs[self._op.sink].offset} + n]"
            total = "1.0f"
        elif self._op.smooth:
            first, total = "0.0f", "1.0f"
        code.add(f"top[row] = {first};", f"total[row] = {total};", "own[row] = at_row;")
        code.close(2)

    def write_blocks(self) -> None:
        """All keys that one of the rows sees, by blocks."""
        code, t, window = self._code, self._tiles, self._op.window
        code.add(f"const int end = before + s0 + {t.positions};")
        begin = f"max(0, before + s0 + 1 - {window})" if window else "0"
        code.open(f"for (int t0 = {begin}; t0 < end; t0 += {t.keys})")
        code.add(f"const int count = min({t.keys}, end - t0);")
        if self._is_half:
            self._write_block()
        self._write_scores()
        self._write_weights()
        self._write_sums()
        code.close()

    def _write_block(self) -> None:
        """keys, values [key, size]: the block in float32, which the tiles read many times."""
        code, t, cache = self._code, self._tiles, self._step.inputs[1].buffer
        code.add(f"float keys[{t.keys * t.size}], values[{t.keys * t.size}];")
        code.open(f"for (int i = 0; i < count * {t.size}; i += {t.vector})")
        for target, source in (("keys", "k"), ("values", "v")):
            value = load_packed(cache, source, f"t0 * {t.size} + i", t.vector)
            code.add(*store(target, "i", 1, t.vector, value))
        code.close()

    def _write_scores(self) -> None:
        """scores [key, row]: tiles of keys by strips of rows; a key after the last is the last."""
        code, t = self._code, self._tiles
        kind, width = floats(t.vector), t.strip[0]
        code.open(f"for (int i = 0; i < count; i += {t.tile})")
        for r in range(t.tile):
            row, last = (f"i + {r}", "count - 1") if self._is_half else (f"t0 + i + {r}", "end - 1")
            place, block = ("__private const float*", "keys") if self._is_half else (GLOBAL, "k")
            code.add(f"{place} k{r} = {block} + min({row}, {last}) * {t.size};")
        code.open(f"for (int row = 0; row < {t.rows}; row += {width * t.vector})")
        places = [(r, v) for r in range(t.tile) for v in range(width)]
        code.add(f"{kind} {', '.join(f'a{r}_{v} = ({kind})(0.0f)' for r, v in places)};")
        code.open(f"for (int d = 0; d < {t.size}; ++d)")
        code.add(f"__private const float* qd = queries + d * {t.rows} + row;")
        for v in range(width):
            code.add(f"const {kind} q{v} = {load('qd', str(v * t.vector), 1, t.vector)};")
        for r in range(t.tile):
            code.add(f"const {kind} x{r} = ({kind})(k{r}[d]);")
            code.add(*(f"a{r}_{v} = mad(x{r}, q{v}, a{r}_{v});" for v in range(width)))
        code.close()
        for r, v in places:
            at = f"(i + {r}) * {t.rows} + row + {v * t.vector}"
            code.add(*store("scores", at, 1, t.vector, f"a{r}_{v}"))
        code.close(2)

    def _write_weights(self) -> None:
        """e^(score - top) in place of scores, for a vector of rows at a time."""
        code, t, op = self._code, self._tiles, self._op
        kind = floats(t.vector)
        code.open(f"for (int row = 0; row < {t.rows}; row += {t.vector})")
        code.add(f"const {kind} last = {load('own', 'row', 1, t.vector)};")
        code.add(f"const {kind} before_top = {load('top', 'row', 1, t.vector)};")
        code.add(f"{kind} most = before_top;")
        code.open("for (int i = 0; i < count; ++i)")
        code.add(f"__private float* at = scores + i * {t.rows} + row;")
        score = load("at", "0", 1, t.vector)
        if op.softcap:
            score = f"{op.softcap!r}f * ol_tanh({score} * {1 / op.softcap!r}f)"
        code.add(f"{kind} score = {score};")
        unseen = f"({kind})(t0 + i) > last"
        if op.window:
            unseen = f"({unseen}) | (({kind})(t0 + i) <= last - {op.window}.0f)"
        code.add(f"score = select(score, ({kind})(-INFINITY), {unseen});")
        code.add(*store("at", "0", 1, t.vector, "score"))
        code.add("most = select(most, score, score > most);")
        code.close()
        code.add(f"const {kind} fade = ol_exp(before_top - most);")
        code.add(f"{kind} sum = {load('total', 'row', 1, t.vector)} * fade;")
        code.open("for (int i = 0; i < count; ++i)")
        code.add(f"__private float* at = scores + i * {t.rows} + row;")
        code.add(f"const {kind} e = ol_exp({load('at', '0', 1, t.vector)} - most);", "sum += e;")
        code.add(*store("at", "0", 1, t.vector, "e"))
        code.close()
        for name, value in (("top", "most"), ("total", "sum"), ("fades", "fade")):
            code.add(*store(name, "row", 1, t.vector, value))
        code.close()

    def _write_sums(self) -> None:
        """sums [row, size]: what they were, faded, and the values of the block, weighted."""
        rows, tile = self._tiles.rows, self._tiles.tile
        rest = rows % tile
        for count, begin, end in ((tile, 0, rows - rest), (rest, rows - rest, rows)):
            if count and begin < end:
                self._code.open(f"for (int row = {begin}; row < {end}; row += {count})")
                self._write_row_tile(count)
                self._code.close()

    def _write_row_tile(self, count: int) -> None:
        code, t = self._code, self._tiles
        kind, width = floats(t.vector), t.strip[1]
        code.open(f"for (int d = 0; d < {t.size}; d += {width * t.vector})")
        places = [(r, v) for r in range(count) for v in range(width)]
        for r, v in places:
            held = load("sums", f"(row + {r}) * {t.size} + d + {v * t.vector}", 1, t.vector)
            code.add(f"{kind} a{r}_{v} = {held} * fades[row + {r}];")
        code.open("for (int i = 0; i < count; ++i)")
        if self._is_half:
            code.add(f"__private const float* value = values + i * {t.size} + d;")
        else:
            code.add(f"{GLOBAL} value = v + (t0 + i) * {t.size} + d;")
        code.add(f"__private const float* e = scores + i * {t.rows} + row;")
        for v in range(width):
            code.add(f"const {kind} v{v} = {load('value', str(v * t.vector), 1, t.vector)};")
        for r in range(count):
            code.add(f"const {kind} e{r} = ({kind})(e[{r}]);")
            code.add(*(f"a{r}_{v} = mad(e{r}, v{v}, a{r}_{v});" for v in range(width)))
        code.close()
        for r, v in places:
            at = f"(row + {r}) * {t.size} + d + {v * t.vector}"
            code.add(*store("sums", at, 1, t.vector, f"a{r}_{v}"))
        code.close()

    def write_results(self, place: str) -> None:
        """The sums over their totals, to where head h and position p of the unit are."""
        code, t = self._code, self._tiles
        code.open(f"for (int h = 0; h < {t.heads}; ++h)")
        code.open(f"for (int p = 0; p < {t.positions}; ++p)")
        code.add(f"const int row = h * {t.positions} + p;")
        code.add("const float whole = 1.0f / total[row];")
        code.add(f"__global float* result = {place};")
        code.open(f"for (int i = 0; i < {t.size}; i += {t.vector})")
        value = f"{load('sums', f'row * {t.size} + i', 1, t.vector)} * whole"
        code.add(*store("result", "i", 1, t.vector, value))
        code.close(3)
