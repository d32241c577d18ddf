"""The work of a work-item on a block of tiles and a panel of channels: products, then results.

C names that a kernel declares before: `first` and `count`, the block's tiles; `v`, the values of
the first one; `n0`, the panel's first channel; `products`, as many floats as `Block.products`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.kernel import Code, floats, load, offset_of, store
from eps.opencl.compile.codegen.linear import write_linear
from eps.opencl.compile.codegen.prefetch import PanelAhead
from eps.opencl.compile.codegen.winograd_tiles import ROLLED, Tiles

if TYPE_CHECKING:
    from eps.opencl.compile.codegen.kernel import Finish
    from eps.opencl.compile.tilings import Tile
    from eps.opencl.compile.views import Storage, View


@dataclass(frozen=True, slots=True, kw_only=True)
class WinogradBlock:
    """Some tiles, and what their values are multiplied by and become.

    Attributes:
        size: Tiles, or fewer in the last block, but not fewer than `tile.wide`.
        plane: Elements from one point's values to the next.
        tile: What is in registers at once: `wide` tiles of the image by channels.
        weights: [panel, point, channel of the input, channel of the panel]; parameter 1.
        y, parameter: The output, and its parameter's number.
        prefetches: As Target.
    """

    tiles: Tiles
    size: int
    plane: int
    tile: Tile
    weights: Storage
    finish: Finish
    y: View
    parameter: int
    prefetches: bool

    @property
    def products(self) -> int:
        """Floats of private memory."""
        return self.size * self.tiles.transform.points * self.tile.channels

    @property
    def unroll(self) -> int:
        """Channels of the input in a step."""
        return next(u for u in (4, 2, 1) if self.tiles.depth % u == 0)

    def panel_ahead(self) -> PanelAhead | None:
        """A point's weights, fetched while those of the point before are used."""
        if not self.prefetches:
            return None
        line, steps = self.tiles.depth * self.tile.channels, self.tiles.depth // self.unroll
        return PanelAhead.of(self.weights, line, steps, -(-self.size // self.tile.wide))

    def write(self, code: Code, panel: str) -> None:
        """Compute and store the panel's channels of the block's tiles."""
        _write_products(code, self, panel)
        _write_results(code, self)


def _write_products(code: Code, block: WinogradBlock, panel: str) -> None:
    """products[tile, point, channel of the panel]."""
    tile, depth, points = block.tile, block.tiles.depth, block.tiles.transform.points
    kind, ahead, line = floats(tile.vector), block.panel_ahead(), depth * tile.channels
    code.open(f"for (int p = 0; p < {points}; ++p)")
    code.add(f"__global const float* w = p1 + ({panel} * {points} + p) * {line};")
    code.open(f"for (int s = 0; s * {tile.wide} < count; ++s)")
    code.add(f"const int s0 = min(s * {tile.wide}, count - {tile.wide});")
    code.add(f"__global const float* xp = v + p * {block.plane} + s0 * {depth};")
    code.add("__global const float* wp = w;", *([ahead.begin("s")] if ahead else []))
    for i in range(tile.wide):
        code.add(f"{kind} {', '.join(f'a{i}_{j} = 0.0f' for j in range(tile.panels))};")
    code.open(f"for (int k = 0; k < {depth}; k += {block.unroll})")
    code.add(*(ahead.step() if ahead else []))
    for u in range(block.unroll):
        _write_step(code, block, u)
    code.add(f"xp += {block.unroll}; wp += {block.unroll * tile.channels};")
    code.close()
    for i in range(tile.wide):
        for j in range(tile.panels):
            at = f"((s0 + {i}) * {points} + p) * {tile.channels} + {j * tile.vector}"
            code.add(*store("products", at, 1, tile.vector, f"a{i}_{j}"))
    code.close(2)


def _write_step(code: Code, block: WinogradBlock, u: int) -> None:
    tile, kind = block.tile, floats(block.tile.vector)
    for j in range(tile.panels):
        text = load("wp", str(u * tile.channels + j * tile.vector), 1, tile.vector)
        code.add(f"const {kind} w{u}_{j} = {text};")
    for i in range(tile.wide):
        code.add(f"const float x{u}_{i} = xp[{i * block.tiles.depth + u}];")
        for j in range(tile.panels):
            code.add(f"a{i}_{j} = mad(({kind})(x{u}_{i}), w{u}_{j}, a{i}_{j});")


def _write_results(code: Code, block: WinogradBlock) -> None:
    """A' m A of each tile's products m, finished and stored row by row."""
    tile, transform, kind = block.tile, block.tiles.transform, floats(block.tile.vector)
    edge, m = len(transform.image), transform.outputs
    code.open("for (int t = 0; t < count; ++t)")
    code.add("const int number = first + t;")
    image = block.tiles.write_place(code, "number")
    code.open(f"for (int n = 0; n < {tile.channels}; n += {tile.vector})")
    code.add(f"{kind} rows[{m * edge}];", ROLLED)
    code.open(f"for (int j = 0; j < {edge}; ++j)")
    for i in range(edge):
        at = f"(t * {transform.points} + {i * edge} + j) * {tile.channels} + n"
        code.add(f"const {kind} m{i} = {load('products', at, 1, tile.vector)};")
    results = write_linear(code, transform.result, [f"m{i}" for i in range(edge)], kind, "d")
    code.add(*(f"rows[{i * edge} + j] = {name};" for i, name in enumerate(results)))
    code.close()
    code.add(ROLLED)
    code.open(f"for (int i = r1 - r0; i < {m}; ++i)")
    row = [f"rows[i * {edge} + {j}]" for j in range(edge)]
    for j, value in enumerate(write_linear(code, transform.result, row, kind, "y")):
        _write_pixel(code, block, image, j, value)
    code.close(3)


def _write_pixel(code: Code, block: WinogradBlock, image: str, column: int, value: str) -> None:
    """Pixel (r0 + i, c0 + column), but where the tile before has it."""
    finish, vector = block.finish, block.tile.vector
    moved = bool(block.tiles.size[1] % block.tiles.transform.outputs)
    if moved:
        code.open(f"if (c0 + {column} >= c1)")
    places = []
    for view in (*finish.views, block.y):
        sn, sc, sh, sw = view.strides
        terms = [(image, sn), ("(r0 + i)", sh), ("c0", sw), ("(n0 + n)", sc)]
        # Written out where it is 0, too: more convolutions share a function.
        places.append((f"{offset_of(terms)} + {view.offset + column * sw}", sc))
    *outer, (at, step) = places
    loads = {
        i: load(f"p{finish.first + i - 1}", place, stride, vector)
        for i, (place, stride) in enumerate(outer, 1)
    }
    result = finish.write(code, value, loads, vector, f"q{column}_")
    code.add(*store(f"p{block.parameter}", at, step, vector, result))
    if moved:
        code.close()
