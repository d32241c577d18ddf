"""An output's tiles for Winograd's transforms: their offsets, and their values at the points."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.kernel import Code, decode, floats, load, offset_of, store
from eps.opencl.compile.codegen.linear import write_linear

if TYPE_CHECKING:
    from eps.opencl.compile.views import View
    from eps.opencl.compile.winograd import Transform

PADDING = 16
"""Floats between points: a whole number of pages would put them all into one set of the cache."""
ROLLED = "#pragma unroll 1"
"""Of loops that gain nothing from being unrolled, and take a driver's compiler long."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The output's tiles.

    The last one of a row or column is moved back to end at the edge. Pixels that the tile before
    it has are then not its: they would differ by rounding, and runs from each other.

    Attributes:
        grid: Images, tiles down and across.
        size: Output rows and columns.
        depth: Channels of the input.
    """

    transform: Transform
    grid: tuple[int, int, int]
    size: tuple[int, int]
    depth: int

    @property
    def count(self) -> int:
        """Tiles of all images."""
        return prod(self.grid)

    def plane(self, count: int) -> int:
        """Elements that the values of `count` tiles take at each point, [tile, channel]."""
        return count * self.depth + PADDING

    def write_place(self, code: Code, number: str) -> str:
        """Declare r0 and c0, a tile's first pixel, and r1 and c1, the first one that is its own.

        Returns:
            The tile's image.
        """
        image, *indices = decode(code, number, self.grid, "g")
        for name, index, size in zip("rc", indices, self.size, strict=True):
            m = self.transform.outputs
            code.add(f"const int {name}1 = {index} * {m}, {name}0 = min({name}1, {size - m});")
        return image

    def write_values(self, code: Code, image: str, x: View, plane: int, vector: int) -> None:
        """Store B' d B of a tile d of `x`, parameter 0, at `yt`, after `write_place`.

        Args:
            code: Where to.
            image: As `write_place` gave it.
            x: The input from the first window's first pixel on.
            plane: Elements from one point's values to the next.
            vector: Channels at once.
        """
        kind, edge = floats(vector), len(self.transform.image)
        terms = [(image, x.strides[0]), ("r0", x.strides[2]), ("c0", x.strides[3])]
        code.add(f"__global const float* xt = p0 + {offset_of(terms, x.offset)};")
        code.open(f"for (int k = 0; k < {-(-self.depth // vector)}; ++k)")
        code.add(f"const int n = min(k * {vector}, {self.depth - vector});")
        code.add(f"{kind} rows[{edge * edge}];", ROLLED)
        code.open(f"for (int j = 0; j < {edge}; ++j)")
        for i in range(edge):
            at = f"n + {i * x.strides[2]} + j * {x.strides[3]}"
            code.add(f"const {kind} x{i} = {load('xt', at, 1, vector)};")
        column = [f"x{i}" for i in range(edge)]
        values = write_linear(code, self.transform.image, column, kind, "d")
        code.add(*(f"rows[{i * edge} + j] = {name};" for i, name in enumerate(values)))
        code.close()
        code.add(ROLLED)
        code.open(f"for (int i = 0; i < {edge}; ++i)")
        row = [f"rows[i * {edge} + {j}]" for j in range(edge)]
        for j, value in enumerate(write_linear(code, self.transform.image, row, kind, "v")):
            at = f"n + i * {edge * plane} + {j * plane}"
            code.add(*store("yt", at, 1, vector, value))
        code.close(2)
