"""Products of weights of 4 bits and inputs quantised to 8: MatMulNBits with accuracy level 4.

Weights are packed as `pack_blocks` says. Each row of inputs is quantised by the same blocks, to
the integers nearest to 127 x / (largest magnitude), as ONNX Runtime's CPU does. The even weights
of a word are its bytes' low halves, the odd ones its high halves, so that the bytes of eight inputs
are two words: one of even places, one of odd ones. A lane of 32 bits is a column.

x86 with AVX2 multiplies 32 bytes in one instruction and adds neighbours (pmaddubsw), four times as
many products as one of floats has. A lane has two sums of 16 bits, which hold 32 products of at
most 15 * 127. With AVX-512 VNNI, an instruction multiplies 64 bytes and adds four neighbours to a
sum of 32 bits (vpdpbusd). Sums begin at -8 times the sum of their inputs, which makes zero points
of 8 free of charge.

A unit of work is a chunk of rows, quantised once, times a group of panels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.block_result import BlockResult
from eps.opencl.compile.codegen.kernel import Code, Kernel, load, share, share_evenly
from eps.opencl.compile.codegen.pack_blocks import pack_weights
from eps.opencl.compile.codegen.prefetch import fetch_ahead
from eps.opencl.compile.codegen.spread import SMALLEST_TASK

if TYPE_CHECKING:
    from eps.opencl.compile.codegen.pack_blocks import BlockSizes
    from eps.opencl.compile.decoder_op import BlockMatMul
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

LABEL = "weights4bit_bytes_"
"""Label of such a kernel."""
LANES = 8
"""Columns of a vector of 32 bytes."""
QUAD_LANES = 16
"""Columns of a vector of 64 bytes, whose products are summed in 32 bits."""
PART = 32
"""Weights of a column that are summed in 16 bits."""
EACH = 8
"""Weights in a word."""
CHUNK = 32
"""Rows that a unit of work quantises at most."""
CHUNK_BYTES = 160 << 10
"""Of the quantised rows of a unit: part of a second cache."""
FEW_ROWS = 4
"""Rows for which weights come from memory once, whatever else has to wait."""
TILE = 6
"""Rows that one vector of a panel is multiplied by at a time: their sums fill the registers."""
QUAD_TILE = 8
"""The same for the 32 registers of AVX-512."""
FEW_SUMS = 4
"""Vectors of sums of few rows: of so many vectors of a panel, which follow each other in memory."""
FEWEST_PANELS = 4
"""Of a group, because each group quantises its rows again; fewer where cores would be idle."""


def takes_bytes(op: BlockMatMul, sizes: BlockSizes, target: Target) -> bool:
    """Whether the model allows inputs of 8 bits, and the device has the instruction for them."""
    fits = op.bits == 4 and sizes.panel % LANES == 0
    return op.byte_inputs and fits and target.multiplies_pairs and target.groups is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """How rows and panels are divided.

    Attributes:
        lanes: Columns of a vector; `QUAD_LANES` where four products are summed in 32 bits.
        rows: Of a chunk; the last chunk overlaps the one before.
        chunks, groups: Of all rows; of all panels.
        panels: Of a group.
        tile: Rows that are multiplied at a time.
        vectors: Of a strip of a panel.
    """

    lanes: int
    rows: int
    chunks: int
    groups: int
    panels: int
    tile: int
    vectors: int

    @property
    def sums_quads(self) -> bool:
        """Whether an instruction adds four products to a sum of 32 bits."""
        return self.lanes == QUAD_LANES

    def overlaps(self, rows: int) -> bool:
        """Whether the last chunk overlaps the one before."""
        return rows % self.rows != 0


def _divide(s: BlockSizes, target: Target) -> _Units:
    quads = target.quad_sums and s.panel % QUAD_LANES == 0
    lanes, highest = (QUAD_LANES, QUAD_TILE) if quads else (LANES, TILE)
    whole = s.panel // lanes
    if s.rows <= FEW_ROWS:
        worth = max(1, s.panels * s.panel * s.depth // SMALLEST_TASK)
        most = max(target.units, s.panels // FEWEST_PANELS)
        groups, panels = share_evenly(s.panels, min(target.tasks, worth, most), target.units)
        most = max(1, FEW_SUMS // s.rows)
        vectors = max(n for n in range(1, min(most, whole) + 1) if whole % n == 0)
        return _Units(
            lanes=lanes, rows=s.rows, chunks=1, groups=groups, panels=panels, tile=s.rows,
            vectors=vectors,
        )  # fmt: skip
    tile = min(highest, s.rows)
    most = max(tile, min(CHUNK, CHUNK_BYTES // (s.blocks * s.block)))
    rows = -(-s.rows // -(-s.rows // most))
    rows = min(s.rows, -(-rows // tile) * tile)
    chunks = -(-s.rows // rows)
    enough = min(-(-target.tasks // chunks), s.panels // FEWEST_PANELS)
    groups, panels = share(s.panels, enough)
    return _Units(
        lanes=lanes, rows=rows, chunks=chunks, groups=groups, panels=panels, tile=tile, vectors=1
    )


def block_dot_kernel(op: BlockMatMul, step: PlacedOp, sizes: BlockSizes, target: Target) -> Kernel:
    """One launch that quantises the inputs and multiplies them."""
    units = _divide(sizes, target)
    writer = _Writer(sizes, units, op, step)
    writer.fetches = target.prefetches and sizes.rows <= FEW_ROWS
    writer.write()
    finishing = (view.buffer for view in step.inputs[op.operands :])
    packed = pack_weights(step, sizes, op.operands)
    operands = (step.inputs[0].buffer, *packed, *finishing, step.output.buffer)
    work = 2 * sizes.rows * sizes.depth * sizes.width
    tasks = units.chunks * units.groups
    return Kernel(
        writer.code.text(), operands, tasks, work=work, label=LABEL, joins=True,
        division=() if sizes.overlaps or units.overlaps(sizes.rows) else sizes.key,
        elementwise=writer.result.elementwise,
    )  # fmt: skip


class _Writer:
    """Writes the kernel: x is p0, the packed weights p1, p2 and maybe p3, the result the last."""

    def __init__(self, sizes: BlockSizes, units: _Units, op: BlockMatMul, step: PlacedOp) -> None:
        self.code, self._sizes, self._units = Code(), sizes, units
        self.fetches = False
        self._x, self.result = step.inputs[0].offset, BlockResult(op, step)
        self._zeros = op.operands > 3
        self._lanes, self._quads = units.lanes, units.sums_quads
        self._part = sizes.block if units.sums_quads else min(PART, sizes.block)
        self._parts = sizes.block // self._part
        self._words = sizes.blocks * sizes.words

    def write(self) -> None:
        """Units one after another; each quantises its rows, then multiplies its panels."""
        code, s, units = self.code, self._sizes, self._units
        parts = s.blocks * self._parts
        code.add(f"int bytes[{units.rows * self._words * 2}], begin[{units.rows * parts}];")
        code.add(f"float factors[{units.rows * s.blocks}];")
        if self._zeros:
            code.add(f"float sums[{units.rows * s.blocks}];")
        code.add(f"const int unit = get_global_id(0), first = unit % {units.groups};")
        code.add(
            f"const int m0 = min(unit / {units.groups} * {units.rows}, {s.rows - units.rows});"
        )
        self._write_bytes()
        end = f"min(first * {units.panels} + {units.panels}, {s.panels})"
        code.open(f"for (int u = first * {units.panels}; u < {end}; ++u)")
        code.add(f"const int n0 = min(u * {s.panel}, {s.width - s.panel});")
        code.open(f"for (int n = 0; n < {s.panel}; n += {units.vectors * units.lanes})")
        rest = units.rows % units.tile
        for count, start, stop in (
            (units.tile, 0, units.rows - rest), (rest, units.rows - rest, units.rows),
        ):  # fmt: skip
            if count:
                code.open(f"for (int m = {start}; m < {stop}; m += {count})")
                self._write_tile(count)
                code.close()
        code.close(2)

    def _write_bytes(self) -> None:
        """Quantise the rows: bytes, the factor of a block, and where sums of its parts begin.

        Magnitudes are compared as integers, so that one that is not finite is the largest, and its
        factor makes the results not finite. Adding 1.5 * 2^23 rounds to the nearest integer.
        """
        code, s = self.code, self._sizes
        code.open(f"for (int m = 0; m < {self._units.rows}; ++m)")
        code.add(f"__global const float* row = p0 + {self._x} + (m0 + m) * {s.depth};")
        code.open(f"for (int b = 0; b < {s.blocks}; ++b)")
        code.add("int8 magnitude = (int8)(0);")
        code.add(f"float8 x[{s.words}];")
        code.open(f"for (int i = 0; i < {s.words}; ++i)")
        code.add(f"const int k = b * {s.block} + i * {EACH};")
        self._write_load()
        code.add("magnitude = max(magnitude, as_int8(x[i]) & 0x7fffffff);")
        code.close()
        code.add("const int4 four = max(magnitude.lo, magnitude.hi);")
        code.add("const int2 two = max(four.lo, four.hi);")
        code.add("const float most = as_float(max(two.x, two.y));")
        code.add("const float inverse = most > 0.0f ? 127.0f / most : 0.0f;")
        code.add(f"factors[m * {s.blocks} + b] = most / 127.0f;")
        code.add(*(["int total = 0;"] if self._zeros else []))
        code.open(f"for (int part = 0; part < {self._parts}; ++part)")
        code.add("int8 sum = (int8)(0);")
        words = self._part // EACH
        code.open(f"for (int i = part * {words}; i < part * {words} + {words}; ++i)")
        code.add("const int8 q = as_int8(x[i] * inverse + 12582912.0f) - 0x4b400000;")
        code.add("sum += q;")
        code.add("const int2 word = as_int2(convert_char8(q).s02461357);")
        at = f"((m * {s.blocks} + b) * {s.words} + i) * 2"
        code.add(f"bytes[{at}] = word.x;", f"bytes[{at} + 1] = word.y;")
        code.close()
        for name, four in (("low", "lo"), ("high", "hi")):
            code.add(f"const int2 {name}2 = sum.{four}.lo + sum.{four}.hi;")
            code.add(f"const int {name} = {name}2.x + {name}2.y;")
        code.add(*(["total += low + high;"] if self._zeros else []))
        at = f"(m * {s.blocks} + b) * {self._parts} + part"
        halves = "(-8 * low & 0xffff) | (-8 * high << 16)"
        code.add(f"begin[{at}] = {'-8 * (low + high)' if self._quads else halves};")
        code.close()
        code.add(*([f"sums[m * {s.blocks} + b] = total;"] if self._zeros else []))
        code.close(2)

    def _write_load(self) -> None:
        """x[i]: eight inputs from k on, zeros after the row."""
        code, depth = self.code, self._sizes.depth
        if depth % self._sizes.block == 0:
            code.add("x[i] = vload8(0, row + k);")
            return
        code.add("x[i] = (float8)(0.0f);")
        code.add(f"if (k + {EACH} <= {depth}) x[i] = vload8(0, row + k);")
        if depth % EACH:
            items = (f"k + {j} < {depth} ? row[k + {j}] : 0.0f" for j in range(EACH))
            code.add(f"else if (k < {depth}) x[i] = (float8)({', '.join(items)});")

    def _write_tile(self, count: int) -> None:
        """Results of `count` rows from m on, and of the vectors from column n of panel u on."""
        code, s, vectors = self.code, self._sizes, range(self._units.vectors)
        begin = f"(size_t)u * {self._words * s.panel} + n"
        code.add(f"__global const int* w = p1 + {begin};")
        code.add(f"__global const float* scales = p2 + u * {s.blocks * s.panel} + n;")
        if self._zeros:
            code.add(f"__global const uchar* zeros = p3 + u * {s.blocks * s.panel} + n;")
        places = [(r, v) for r in range(count) for v in vectors]
        kind = f"float{self._lanes}"
        code.add(f"{kind} {', '.join(f't{r}_{v} = ({kind})(0.0f)' for r, v in places)};")
        code.open(f"for (int b = 0; b < {s.blocks}; ++b)")
        if self._parts > 1:
            code.add(f"int8 {', '.join(f'd{r}_{v} = (int8)(0)' for r, v in places)};")
            code.open(f"for (int part = 0; part < {self._parts}; ++part)")
        self._write_part(count)
        if self._parts > 1:
            code.add(*(f"d{r}_{v} += ol_madd(a{r}_{v}, (short16)(1));" for r, v in places))
            code.close()
        elif not self._quads:
            code.add(
                *(f"const int8 d{r}_{v} = ol_madd(a{r}_{v}, (short16)(1));" for r, v in places)
            )
        self._write_block_end(count)
        code.close()
        for r, v in places:
            place = (f"m0 + m + {r}", f"n0 + n + {v * self._lanes}")
            self.result.store(code, place, self._lanes, f"t{r}_{v}")

    def _write_part(self, count: int) -> None:
        """a: sums of each row and vector over a part of block b, of 16 or 32 bits; w moves on."""
        code, s, vectors = self.code, self._sizes, range(self._units.vectors)
        lanes, kind = self._lanes, f"int{self._lanes}"
        part = f"b * {self._parts} + part" if self._parts > 1 else "b"
        for r in range(count):
            at = f"(m + {r}) * {s.blocks * self._parts} + {part}"
            begin = f"({kind})(begin[{at}])"
            sums, begin = (kind, begin) if self._quads else ("short16", f"as_short16({begin})")
            code.add(f"const {sums} begin{r} = {begin};")
            at = f"(m + {r}) * {self._words * 2} + ({part}) * {self._part // EACH * 2}"
            code.add(f"__private const int* x{r} = bytes + {at};")
            code.add(*(f"{sums} a{r}_{v} = begin{r};" for v in vectors))
        for i in range(self._part // EACH):
            code.open("")
            if self.fetches:
                code.add(*fetch_ahead("w", i * s.panel, self._units.vectors * lanes))
            for v in vectors:
                at = str(i * s.panel + v * lanes)
                code.add(f"const {kind} w{v} = {load('w', at, 1, lanes, 'int32')};")
                code.add(f"const {kind} even{v} = w{v} & 0x0f0f0f0f;")
                code.add(f"const {kind} odd{v} = (w{v} >> 4) & 0x0f0f0f0f;")
            for r in range(count):
                for j, half in enumerate(("even", "odd")):
                    code.add(f"const {kind} x{r}_{j} = ({kind})(x{r}[{2 * i + j}]);")
                    code.add(
                        *(
                            self._add_products(f"a{r}_{v}", half + str(v), f"x{r}_{j}")
                            for v in vectors
                        )
                    )
            code.close()
        code.add(f"w += {self._part // EACH * s.panel};")

    def _add_products(self, sums: str, weights: str, inputs: str) -> str:
        """Statement that adds the products of bytes."""
        if self._quads:
            return f"{sums} = ol_quads({sums}, {weights}, {inputs});"
        return f"{sums} += ol_bytes({weights}, {inputs});"

    def _write_block_end(self, count: int) -> None:
        """t: the sums of block b times its scales and the inputs' factors, added to the totals."""
        code, s, lanes, kind = self.code, self._sizes, self._lanes, f"float{self._lanes}"
        sums = "a" if self._quads else "d"
        if self.fetches:
            code.add(f"__global const float* own = scales + b * {s.panel};")
            code.add(*fetch_ahead("own", 0, self._units.vectors * lanes))
        for v in range(self._units.vectors):
            at = f"b * {s.panel} + {v * lanes}"
            code.add(f"const {kind} scale{v} = {load('scales', at, 1, lanes)};")
            if self._zeros:
                zero = load("zeros", at, 1, lanes, "uint8")
                code.add(f"const {kind} zero{v} = 8.0f - convert_{kind}({zero});")
        for r in range(count):
            code.add(f"const float factor{r} = factors[(m + {r}) * {s.blocks} + b];")
            if self._zeros:
                code.add(f"const {kind} sum{r} = ({kind})(sums[(m + {r}) * {s.blocks} + b]);")
            for v in range(self._units.vectors):
                value = f"convert_{kind}({sums}{r}_{v})"
                if self._zeros:
                    value = f"mad(zero{v}, sum{r}, {value})"
                code.add(f"t{r}_{v} = mad(scale{v} * factor{r}, {value}, t{r}_{v});")
