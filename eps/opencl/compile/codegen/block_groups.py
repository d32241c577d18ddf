"""Products with weights of few bits by work-groups: MatMulNBits on GPUs.

An item has a vector of columns of a tile of rows. Where there are few of these, several items
share one: each takes some of the blocks of the depth, and their sums are folded by halves in local
memory, always in the same order. Adjacent items have adjacent vectors of a panel, then adjacent
blocks.

A weight becomes a float without a conversion, which GPUs do at a fraction of their rate: its bits
are the last ones of 2^23 + weight, from which 2^23 and the zero point are subtracted exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.block_panels import PanelWriter
from eps.opencl.compile.codegen.block_result import BlockResult
from eps.opencl.compile.codegen.kernel import floats
from eps.opencl.compile.expression import vector_type

if TYPE_CHECKING:
    from eps.opencl.compile.codegen.pack_blocks import BlockSizes
    from eps.opencl.compile.decoder_op import BlockMatMul
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Groups, Target

MOST_ROWS = 8
"""Of a tile."""
FEW_ROWS = 2
"""Rows of a tile up to which a block's sums are scaled; for more its weights are."""
ITEMS = {True: 2048, False: 512}
"""Items of each compute unit: of few rows, which wait for memory, and of many."""
FOLDED = 2
"""Rows whose sums are in local memory at a time."""
WIDE = 4
"""Inputs that an item loads at once."""
UNROLL = 4
"""Words of few rows that an item loads before it waits for the first."""
TWO_23 = 8388608.0
BITS_OF_2_23 = "0x4b000000"
"""Those of the float."""


def choose_slices(sizes: BlockSizes, tiles: int, groups: Groups, *, few: bool) -> int:
    """Items that share a vector of a tile: a power of two, no more than make the device busy."""
    slices, units = 1, tiles * sizes.panels * sizes.vectors
    most = min(sizes.blocks, groups.size // sizes.vectors) if groups.local else 1
    while slices * 2 <= most and units * slices < groups.units * ITEMS[few]:
        slices *= 2
    return slices


class GroupWriter(PanelWriter):
    """Writes the kernel: x is p0, the packed weights p1, p2 and maybe p3, the result the last."""

    def __init__(self, sizes: BlockSizes, op: BlockMatMul, step: PlacedOp, target: Target) -> None:
        """Choose the tiles."""
        super().__init__(sizes, step.inputs[3].buffer.dtype if op.operands > 3 else "")
        assert target.groups is not None, "for devices with work-groups"
        self._groups, self._x = target.groups, step.inputs[0].offset
        self._rows = min(MOST_ROWS, sizes.rows)
        self._few = self._rows <= FEW_ROWS
        self._tiles = -(-sizes.rows // self._rows)
        self._slices = choose_slices(sizes, self._tiles, target.groups, few=self._few)
        self._kind = floats(sizes.vector)
        self.result = BlockResult(op, step)

    def write(self) -> tuple[int, int]:
        """All of it; the number of items, and of those of a group."""
        code, s = self.code, self.sizes
        sharing, units = s.vectors * self._slices, self._tiles * s.panels
        apart = max(1, self._groups.size // sharing)
        size = sharing * apart
        if self._slices > 1:
            code.add(f"__local {self._kind} shared[{min(FOLDED, self._rows) * size}];")
        code.add("const int l = get_local_id(0);")
        code.add(f"const int v = l % {s.vectors}, slice = l / {s.vectors} % {self._slices};")
        code.add(f"const int asked = get_group_id(0) * {apart} + l / {sharing};")
        code.add(f"const int unit = min(asked, {units - 1});")  # all items meet at the barriers
        code.add(f"const int u = unit % {s.panels};")
        code.add(f"const int m0 = min(unit / {s.panels} * {self._rows}, {s.rows - self._rows});")
        self.write_panel_pointers(f"v * {s.vector}")
        for r in range(self._rows):
            code.add(f"__global const float* x{r} = p0 + {self._x} + (m0 + {r}) * {s.depth};")
        self.declare("t", self._rows, 1)
        code.open(f"for (int b = slice; b < {s.blocks}; b += {self._slices})")
        self._write_block()
        code.close()
        if self._slices > 1:
            self._fold(size)
        code.open(f"if (asked < {units} && slice == 0)")
        for r in range(self._rows):
            self.result.store(code, (f"m0 + {r}", f"n0 + v * {s.vector}"), s.vector, f"t{r}_0")
        code.close()
        return -(-units // apart) * size, size

    def _write_block(self) -> None:
        """The products of block b: added to t, or to a and then, scaled, to t."""
        code, s = self.code, self.sizes
        if self._few:
            self.declare("a", self._rows, 1)
        self._write_scale_and_base()
        code.add(f"__global const int* wb = w + b * {s.words * s.panel};")
        if self._few:
            code.add(f"#pragma unroll {UNROLL}")
        code.open(f"for (int i = 0; i < {s.words}; ++i)")
        code.add(f"const int k = b * {s.block} + i * {s.each};")
        self._write_weights()
        sums = "a" if self._few else "t"
        for r in range(self._rows):
            for h in range(0, s.each, WIDE):
                code.open("")
                code.add(f"const float4 x = {self._inputs(r, h)};")
                for j, part in enumerate("xyzw", h):
                    code.add(f"{sums}{r}_0 = mad(({self._kind})(x.{part}), f{j}, {sums}{r}_0);")
                code.close()
        code.close()
        if self._few:
            code.add(*(f"t{r}_0 = mad(scale, a{r}_0, t{r}_0);" for r in range(self._rows)))

    def _write_scale_and_base(self) -> None:
        """scale of block b; base: 2^23 and its zero point, or zero where that is no integer."""
        code, kind, at = self.code, self._kind, f"b * {self.sizes.panel}"
        code.add(f"const {kind} scale = {self._load('scales', at)};")
        base = f"({kind})({TWO_23 + (0.0 if self.zeros else self.sizes.middle)!r}f)"
        if self.zeros == "uint8":
            base = f"{TWO_23!r}f + convert_{kind}({self._load('zeros', at, 'uint8')})"
        elif self.zeros:
            code.add(f"const {kind} zero = {self._load('zeros', at)};")
        code.add(f"const {kind} base = {base};")

    def _write_weights(self) -> None:
        """f<j>: weight j of word i of each column, less the zero point; scaled for many rows."""
        code, s, kind = self.code, self.sizes, self._kind
        word = self._load("wb", f"i * {s.panel}", "int32")
        code.add(f"const {vector_type('int32', s.vector)} held = {word};")
        zero = " - zero" if self.zeros not in ("", "uint8") else ""
        for j in range(s.each):
            shifted = f"(held >> {j * s.bits})" if j else "held"
            bits = f"({shifted} & {(1 << s.bits) - 1}) | {BITS_OF_2_23}"
            value = f"as_{kind}({bits}) - base{zero}"
            code.add(f"const {kind} f{j} = {value if self._few else f'({value}) * scale'};")

    def _inputs(self, r: int, after: int) -> str:
        """Four inputs of row `r` from k + `after` on; zeros after the depth."""
        depth, at = self.sizes.depth, f"k + {after}" if after else "k"
        partial = depth % self.sizes.block != 0
        if depth % WIDE == 0 and self._x % WIDE == 0:
            text = f"*(__global const float4*)(x{r} + {at})"
            return f"{at} < {depth} ? {text} : (float4)(0.0f)" if partial else text
        items = (f"x{r}[{at} + {i}]" for i in range(WIDE))
        if partial:
            items = (f"{at} + {i} < {depth} ? {x} : 0.0f" for i, x in enumerate(items))
        return f"(float4)({', '.join(items)})"

    def _load(self, pointer: str, at: str, dtype: str = "float32") -> str:
        """A vector of packed values, which are aligned: a panel is a multiple of it."""
        if self.sizes.vector == 1:
            return f"{pointer}[{at}]"
        return f"*(__global const {vector_type(dtype, self.sizes.vector)}*)({pointer} + {at})"

    def _fold(self, size: int) -> None:
        """t of slice 0: the sums of all slices."""
        code, stride = self.code, self.sizes.vectors
        barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
        for first in range(0, self._rows, FOLDED):
            rows = range(first, min(first + FOLDED, self._rows))
            places = {r: f"shared[{(r - first) * size} + l" for r in rows}
            code.add(*(f"{places[r]}] = t{r}_0;" for r in rows), barrier)
            half = self._slices // 2
            while half:
                code.open(f"if (slice < {half})")
                code.add(*(f"{at}] += {at} + {half * stride}];" for at in places.values()))
                code.close()
                code.add(barrier)
                half //= 2
            code.add(*(f"t{r}_0 = {places[r]}];" for r in rows))
            if first + FOLDED < self._rows:
                code.add(barrier)
