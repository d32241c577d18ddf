"""What products with weights of few bits have in common: a panel of columns times some inputs.

Weights are packed as `pack_blocks` says. A weight in a word's middle is not shifted but masked, and
multiplied with an input that was divided by its place: exact, because both are powers of two. The
zero point of a block is subtracted from the sum of the block, times the sum of its inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, floats, load, store
from eps.opencl.compile.codegen.prefetch import fetch_ahead
from eps.opencl.compile.expression import vector_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.opencl.compile.codegen.pack_blocks import BlockSizes

PANELS = 2
"""Panels of floats in private memory: they stay in the second cache, and inputs are read once."""
UNROLLS = (4, 2, 1)
"""Steps of the depth in a loop: compilers copy registers around without."""


class PanelWriter:
    """Writes parts of such a kernel; the packed weights are p1, p2 and maybe p3.

    Attributes:
        code: What has been written.
        sizes: Of the product.
        zeros: Element type of the zero points; "" for none.
    """

    def __init__(self, sizes: BlockSizes, zeros: str) -> None:
        """Of a product that has not begun."""
        self.code, self.sizes, self.zeros = Code(), sizes, zeros

    def write_inputs(self, row: str) -> None:
        """x: the row at pointer `row`, zeros after it, divided by the places; sums: of blocks."""
        code, s = self.code, self.sizes
        code.add(f"__global const float* row = {row};")
        code.open(f"for (int b = 0; b < {s.blocks}; ++b)")
        code.add("float sum = 0.0f;")
        code.open(f"for (int i = b * {s.block}; i < (b + 1) * {s.block}; i += {s.each})")
        whole = s.depth % s.block == 0
        for j in range(s.each):
            value = f"row[i + {j}]" if whole else f"(i + {j} < {s.depth} ? row[i + {j}] : 0.0f)"
            code.add(f"const float v{j} = {value};")
            code.add(f"x[i + {j}] = v{j} * {self._place_factor(j)!r}f;")
        code.add(f"sum += {' + '.join(f'v{j}' for j in range(s.each))};")
        code.close()
        code.add("sums[b] = sum;")
        code.close()

    def _place_factor(self, j: int) -> float:
        """What weight `j` of a word is divided by when it is only masked; the last one is not."""
        s = self.sizes
        return 2.0 ** -(j * s.bits) if j < s.each - 1 else 1.0

    def write_panel_pointers(self, shift: str, panel: str = "u") -> None:
        """n0: the first column of panel u; w, scales, zeros: its weights, from `shift` on.

        `panel` is the index of the panel among those of all matrices.
        """
        code, s = self.code, self.sizes
        code.add(f"const int n0 = min(u * {s.panel}, {s.width - s.panel});")
        begin = f"(size_t){panel} * {s.blocks * s.words * s.panel} + {shift}"
        code.add(f"__global const {'int' if s.is_scaled else 'float'}* w = p1 + {begin};")
        if not s.is_scaled:
            return
        at = f"{panel} * {s.scales * s.panel} + {shift}"
        code.add(f"__global const float* scales = p2 + {at};")
        if self.zeros:
            pointee = "uchar" if self.zeros == "uint8" else "float"
            code.add(f"__global const {pointee}* zeros = p3 + {at};")

    def write_row_of_panel(self, *, fetches: bool) -> None:
        """t0_v: the row of inputs in x times the panel at w, which is fetched ahead or not."""
        code, s = self.code, self.sizes
        self.declare("t", 1)
        code.open(f"for (int b = 0; b < {s.blocks}; ++b)")
        self.declare("a", 1)
        code.open(f"for (int i = 0; i < {s.words}; ++i)")
        code.add(f"__private const float* xi = x + b * {s.block} + i * {s.each};")
        code.add(*(fetch_ahead("w", 0, s.panel) if fetches else []))
        self.write_words()
        code.close()
        self.write_block_end(1, lambda _: "sums[b]")
        code.close()

    def write_floats(self, panels: int, depth: int, unit: str, matrix: str = "") -> None:
        """f [panel, strip, depth, column]: weights as floats; those after K are not used.

        Args:
            panels: Of a unit of work.
            depth: Of f; the depth of the weights begins at k0.
            unit: Name of the unit's index.
            matrix: Name of the index of the first panel of the matrix; "" for 0.
        """
        code, s = self.code, self.sizes
        kind = floats(s.vector)
        blocks, columns = depth // s.block, s.strip * s.vector
        code.open("for (int p = 0; p < count; ++p)")
        code.add(f"const int u = {unit} * {panels} + p;")
        self.write_panel_pointers("0", f"({matrix} + u)" if matrix else "u")
        code.add(f"w += k0 / {s.each} * {s.panel};")
        limit = "" if s.blocks % blocks == 0 else f" && k0 / {s.block} + c < {s.blocks}"
        code.open(f"for (int c = 0; c < {blocks}{limit}; ++c)")
        code.add(f"const int b = k0 / {s.block} + c;")
        for v in range(s.vectors if s.is_scaled else 0):
            code.add(f"const {kind} scale{v} = {self._scale(v)};")
            code.add(f"const {kind} zero{v} = {self._zero(v)};")
        code.open(f"for (int i = 0; i < {s.words}; ++i)")
        at = f"p * {depth * s.panel} + (c * {s.block} + i * {s.each}) * {columns}"
        code.add(f"__private float* to = f + {at};")
        for v in range(s.vectors):
            self._load_word(v)
            first = v // s.strip * depth * columns + v % s.strip * s.vector
            for j in range(s.each):
                q = f"((w{v} >> {j * s.bits}) & {(1 << s.bits) - 1})"
                value = f"({self.convert(q)} - zero{v}) * scale{v}" if s.is_scaled else f"w{v}"
                code.add(*store("to", str(first + j * columns), 1, s.vector, value))
        code.add(f"w += {s.panel};")
        code.close(3)

    @property
    def unroll(self) -> int:
        """Steps of the depth in a loop over it."""
        return next(u for u in UNROLLS if self.sizes.depth % u == 0)

    def write_products(self, count: int, u: int) -> None:
        """The weights of a strip at depth k + u times the inputs of each row of the tile."""
        code, s = self.code, self.sizes
        kind = floats(s.vector)
        for v in range(s.strip):
            at = f"(k + {u}) * {s.strip * s.vector} + {v * s.vector}"
            code.add(f"const {kind} f{u}_{v} = {load('fs', at, 1, s.vector)};")
        for r in range(count):
            code.add(f"const {kind} b{u}_{r} = ({kind})(x{r}[k + {u}]);")
            for v in range(s.strip):
                code.add(f"a{r}_{v} = mad(b{u}_{r}, f{u}_{v}, a{r}_{v});")

    def declare(self, name: str, rows: int, vectors: int = 0) -> None:
        """Vectors of sums of each row, zeros; of all vectors of a panel, or of `vectors`."""
        s = self.sizes
        names = [f"{name}{r}_{v}" for r in range(rows) for v in range(vectors or s.vectors)]
        kind = floats(s.vector)
        self.code.add(f"{kind} {', '.join(f'{n} = ({kind})(0.0f)' for n in names)};")

    def write_words(self) -> None:
        """A word of each vector of the panel times the inputs at xi, added to a0_v; w moves on."""
        code, s = self.code, self.sizes
        mask = (1 << s.bits) - 1
        for v in range(s.vectors):
            self._load_word(v)
        code.add(f"w += {s.panel};")
        for j in range(s.each):
            code.add(f"const {floats(s.vector)} x{j} = ({floats(s.vector)})(xi[{j}]);")
            for v in range(s.vectors):
                last = j == s.each - 1
                text = (
                    f"(w{v} >> {j * s.bits}) & {mask}" if last else f"w{v} & {mask << j * s.bits}"
                )
                value = self.convert(text) if s.is_scaled else f"w{v}"
                code.add(f"a0_{v} = mad(x{j}, {value}, a0_{v});")

    def _load_word(self, v: int) -> None:
        """w`v`: a word of each column of a vector of the panel."""
        s = self.sizes
        dtype = "int32" if s.is_scaled else "float32"
        word = load("w", str(v * s.vector), 1, s.vector, dtype)
        self.code.add(f"const {vector_type(dtype, s.vector)} w{v} = {word};")

    def write_block_end(self, rows: int, total: Callable[[int], str], vectors: int = 0) -> None:
        """Sums of block b, less its zero point, times its scale, added to the totals."""
        for v in range(vectors or self.sizes.vectors):
            for r in range(rows):
                if not self.sizes.is_scaled:
                    self.code.add(f"t{r}_{v} += a{r}_{v};")
                    continue
                text = f"a{r}_{v} - {self._zero(v)} * {total(r)}"
                self.code.add(f"t{r}_{v} = mad({self._scale(v)}, {text}, t{r}_{v});")

    def _scale(self, v: int) -> str:
        s = self.sizes
        return load("scales", self._place_of_scale(v), 1, s.vector)

    def _zero(self, v: int) -> str:
        s = self.sizes
        if not self.zeros:
            return f"({floats(s.vector)})({s.middle!r}f)"
        text = load("zeros", self._place_of_scale(v), 1, s.vector, self.zeros)
        return self.convert(text) if self.zeros == "uint8" else text

    def _place_of_scale(self, v: int) -> str:
        s = self.sizes
        return str(v * s.vector) if s.by_columns else f"b * {s.panel} + {v * s.vector}"

    def convert(self, text: str) -> str:
        """A vector of integers as floats."""
        return f"convert_{floats(self.sizes.vector)}({text})"
