"""Winograd's convolutions as two kernels: tiles evaluated at points, then products and results.

The first writes what the tiles of the image are at each point, [point, tile, channel]. A work-item
of the second has some tiles and the channels of a panel: for each point it multiplies the tiles'
values by the point's weights, in registers as any contraction does, keeps the products in private
memory, and interpolates the output from them, with the epilogue. So the products, which are the
largest by far, never leave the cache.

The last tile of a row or column is moved back to end at the edge. Pixels that the tile before it
has are then not stored again: they would differ by rounding, and runs from each other.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.codegen.arithmetic import packed_panels
from eps.opencl.codegen.kernel import (
    Code,
    Kernel,
    decode,
    finish_of,
    floats,
    load,
    offset_of,
    share,
    store,
)
from eps.opencl.codegen.linear import write_linear
from eps.opencl.codegen.prefetch import PanelAhead
from eps.opencl.codegen.tiling import choose_tiling, share_tiles
from eps.opencl.tilings import Problem, Tile
from eps.opencl.views import Buffer, View
from eps.opencl.winograd import WINDOW, Extent, Transform, choose_outputs, transform_of

if TYPE_CHECKING:
    from eps.opencl.device import Target
    from eps.opencl.ir import Convolution
    from eps.opencl.layout import Step

SMALLEST_TASK = 2048
"""Elements of the image below which another task costs more than it brings."""
MOST_TILES = 24
"""That a work-item multiplies by the weights that it reads: more gained nothing."""
MOST_BYTES = 1 << 16
"""Of a work-item's private memory, which is on a thread's stack."""
PADDING = 16
"""Floats between points: a whole number of pages would put them all into one set of the cache."""
ROLLED = "#pragma unroll 1"
"""Of loops that gain nothing from being unrolled, and take a driver's compiler long."""


def outputs_of(op: Convolution, step: Step, target: Target) -> int | None:
    """Output pixels along an edge of a tile, where this way of computing `op` pays."""
    window = op.window
    plain = window.strides == window.dilations == (1, 1) and op.groups == 1
    if not target.winograd or not plain or window.kernel != (WINDOW, WINDOW):
        return None
    extent, x = _extent(step), step.inputs[0]
    if (
        x.buffer.dtype != "float32"
        or x.strides[1] != 1
        or min(extent.depth, extent.width) < target.vector
    ):
        return None
    return choose_outputs(extent)


def _extent(step: Step) -> Extent:
    images, width, rows, columns = step.output.shape
    depth = step.inputs[0].shape[1]
    return Extent(images=images, rows=rows, columns=columns, depth=depth, width=width)


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The output's tiles, and where their values at the points lie.

    Attributes:
        grid: Images, tiles down and across.
        size: Output rows and columns.
        depth: Channels of the image.
        values: [point, tile, channel], `plane` elements a point.
    """

    transform: Transform
    grid: tuple[int, int, int]
    size: tuple[int, int]
    depth: int
    values: Buffer
    plane: int

    @property
    def count(self) -> int:
        return prod(self.grid)

    def write_place(self, code: Code, number: str) -> str:
        """Declare r0 and c0, the first pixel of tile `number`, and r1 and c1, the first new one.

        Returns:
            The tile's image.
        """
        image, *indices = decode(code, number, self.grid, "g")
        for name, index, size in zip("rc", indices, self.size, strict=True):
            m = self.transform.outputs
            code.add(f"const int {name}1 = {index} * {m}, {name}0 = min({name}1, {size - m});")
        return image


def winograd_kernels(op: Convolution, step: Step, target: Target, outputs: int) -> list[Kernel]:
    """The two kernels, for tiles of `outputs` by `outputs` pixels."""
    extent, transform = _extent(step), transform_of(outputs)
    grid = extent.grid(outputs)
    plane = prod(grid) * extent.depth + PADDING
    values = Buffer(transform.points * plane, "float32")
    size = (extent.rows, extent.columns)
    tiles = _Tiles(transform, grid, size, extent.depth, values, plane)
    return [
        _evaluation(op, step.inputs[0], tiles, target),
        _Interpolation(op, step, tiles, target).kernel(),
    ]


def _evaluation(op: Convolution, x: View, tiles: _Tiles, target: Target) -> Kernel:
    """B' d B of each tile d and channel; parameters are the image and the values."""
    vector, points = target.vector, len(tiles.transform.image)
    small = max(1, tiles.count * tiles.depth // SMALLEST_TASK)
    tasks, each = share(tiles.count, min(target.tasks, small))
    code = Code()
    code.add("const int id = get_global_id(0);")
    code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {tiles.count}); ++u)")
    image = tiles.write_place(code, "u")
    top, left = op.window.pads[:2]
    start = x.offset - top * x.strides[2] - left * x.strides[3]
    terms = [(image, x.strides[0]), ("r0", x.strides[2]), ("c0", x.strides[3])]
    code.add(f"__global const float* xt = p0 + {offset_of(terms, start)};")
    code.add(f"__global float* yt = p1 + u * {tiles.depth};")
    code.open(f"for (int k = 0; k < {-(-tiles.depth // vector)}; ++k)")
    code.add(f"const int n0 = min(k * {vector}, {tiles.depth - vector});")
    kind, matrix = floats(vector), tiles.transform.image
    code.add(f"{kind} rows[{points * points}];")
    code.add(ROLLED)
    code.open(f"for (int j = 0; j < {points}; ++j)")
    for i in range(points):
        at = f"n0 + {i * x.strides[2]} + j * {x.strides[3]}"
        code.add(f"const {kind} x{i} = {load('xt', at, 1, vector)};")
    column = write_linear(code, matrix, [f"x{i}" for i in range(points)], kind, "c")
    code.add(*(f"rows[{i * points} + j] = {name};" for i, name in enumerate(column)))
    code.close()
    code.add(ROLLED)
    code.open(f"for (int i = 0; i < {points}; ++i)")
    names = [f"rows[i * {points} + {j}]" for j in range(points)]
    for j, value in enumerate(write_linear(code, matrix, names, kind, "v")):
        at = f"n0 + i * {points * tiles.plane} + {j * tiles.plane}"
        code.add(*store("yt", at, 1, vector, value))
    code.close(3)
    return Kernel(code.text(), (x.buffer, tiles.values), tasks)


class _Interpolation:
    """Writes the second kernel; parameters are values, weights, the epilogue's operands, y."""

    def __init__(self, op: Convolution, step: Step, tiles: _Tiles, target: Target) -> None:
        self.tiles, self.y, self.code = tiles, step.output, Code()
        self.finish = finish_of(op.epilogue, step.inputs, step.output.shape, 2)
        self.sizes = Problem(
            batch=1,
            rows=1,
            columns=tiles.count,
            taps=(tiles.transform.points, 1),
            depth=tiles.depth,
            width=step.output.shape[1],
            packed=True,
            operands=len(self.finish.views),
        )
        tiling = choose_tiling(self.sizes, target)
        assert isinstance(tiling.tile, Tile), "no work-group shares it"
        self.tile = tiling.tile
        self.kind = floats(self.tile.vector)
        weights = step.inputs[1].buffer.constant
        assert weights is not None, "lowering takes constant weights"
        at_points = tiles.transform.weights_at_points(weights.reshape(step.inputs[1].shape))
        packed = packed_panels(at_points[None, :, None], self.tile)
        self.weights = Buffer(packed.size, packed.dtype.name, packed)
        self.block = self._block(tiling.tasks)
        self.ahead = self._ahead() if target.prefetches else None

    @property
    def panels(self) -> int:
        return -(-self.sizes.width // self.tile.channels)

    def _block(self, tasks: int) -> int:
        """Tiles of a work-item: a few times those that a contraction has in registers.

        As many as may be where that keeps weights from being read again.
        """
        wide, bytes_each = self.tile.wide, 4 * self.tiles.transform.points * self.tile.channels
        steps = -(-self.tiles.count // wide)
        most = max(1, min(MOST_TILES, MOST_BYTES // bytes_each) // wide)
        if not self.has_large_weights:
            _, each = share_tiles(steps, self.panels, tasks, self.sizes.work)
            most = min(max(each, 2), most)
        blocks = -(-steps // most)
        return min(-(-steps // blocks) * wide, self.tiles.count)

    @property
    def has_large_weights(self) -> bool:
        """Whether they are larger than the tiles' values: then these are what is read again."""
        return self.weights.size > self.tiles.values.size

    def _ahead(self) -> PanelAhead | None:
        line = self.sizes.depth * self.tile.channels
        steps = -(-self.block // self.tile.wide)
        return PanelAhead.of(self.weights, line, self.sizes.depth // self._unroll, steps)

    @property
    def _unroll(self) -> int:
        return next(u for u in (4, 2, 1) if self.sizes.depth % u == 0)

    def kernel(self) -> Kernel:
        code, tile, count = self.code, self.tile, self.tiles.count
        blocks = -(-count // self.block)
        code.add("const int id = get_global_id(0);")
        if self.has_large_weights:
            panel, block = decode(code, "id", [self.panels, blocks], "b")
        else:
            block, panel = decode(code, "id", [blocks, self.panels], "b")
        code.add(
            f"const int n0 = min({panel} * {tile.channels}, {self.sizes.width - tile.channels});"
        )
        code.add(f"const int first = min({block} * {self.block}, {count - tile.wide});")
        code.add(f"const int count = min({self.block}, {count} - first);")
        code.add(f"float products[{self.block * self.tiles.transform.points * tile.channels}];")
        self._write_products(panel)
        self._write_results()
        operands = (
            *(self.tiles.values, self.weights),
            *(view.buffer for view in self.finish.views),
            self.y.buffer,
        )
        work = self.sizes.work
        label = f"winograd{self.tiles.transform.outputs}_"
        return Kernel(
            code.text(), operands, blocks * self.panels, work=work, problem=self.sizes, label=label
        )

    def _write_products(self, panel: str) -> None:
        """products[tile, point, channel] of the work-item's tiles and panel."""
        code, tile, depth = self.code, self.tile, self.sizes.depth
        points, line = self.tiles.transform.points, depth * tile.channels
        code.open(f"for (int p = 0; p < {points}; ++p)")
        code.add(f"__global const float* w = p1 + ({panel} * {points} + p) * {line};")
        code.open(f"for (int s = 0; s * {tile.wide} < count; ++s)")
        code.add(f"const int s0 = min(s * {tile.wide}, count - {tile.wide});")
        code.add(
            f"__global const float* xp = p0 + p * {self.tiles.plane} + (first + s0) * {depth};"
        )
        code.add("__global const float* wp = w;", *([self.ahead.begin("s")] if self.ahead else []))
        for i in range(tile.wide):
            code.add(f"{self.kind} {', '.join(f'a{i}_{j} = 0.0f' for j in range(tile.panels))};")
        unroll = self._unroll
        code.open(f"for (int k = 0; k < {depth}; k += {unroll})")
        code.add(*(self.ahead.step() if self.ahead else []))
        for u in range(unroll):
            self._write_step(u)
        code.add(f"xp += {unroll}; wp += {unroll * tile.channels};")
        code.close()
        for i in range(tile.wide):
            for j in range(tile.panels):
                at = f"((s0 + {i}) * {points} + p) * {tile.channels} + {j * tile.vector}"
                code.add(*store("products", at, 1, tile.vector, f"a{i}_{j}"))
        code.close(2)

    def _write_step(self, u: int) -> None:
        code, tile, v = self.code, self.tile, self.tile.vector
        for j in range(tile.panels):
            text = load("wp", str(u * tile.channels + j * v), 1, v)
            code.add(f"const {self.kind} w{u}_{j} = {text};")
        for i in range(tile.wide):
            code.add(f"const float x{u}_{i} = xp[{i * self.sizes.depth + u}];")
            for j in range(tile.panels):
                code.add(f"a{i}_{j} = mad(({self.kind})(x{u}_{i}), w{u}_{j}, a{i}_{j});")

    def _write_results(self) -> None:
        """A' m A of each tile's products m, finished and stored row by row."""
        code, tile, transform = self.code, self.tile, self.tiles.transform
        edge, m = len(transform.image), transform.outputs
        code.open("for (int t = 0; t < count; ++t)")
        code.add("const int number = first + t;")
        image = self.tiles.write_place(code, "number")
        code.open(f"for (int n = 0; n < {tile.channels}; n += {tile.vector})")
        code.add(f"{self.kind} rows[{m * edge}];")
        code.add(ROLLED)
        code.open(f"for (int j = 0; j < {edge}; ++j)")
        for i in range(edge):
            at = f"(t * {transform.points} + {i * edge} + j) * {tile.channels} + n"
            code.add(f"const {self.kind} m{i} = {load('products', at, 1, tile.vector)};")
        names = [f"m{i}" for i in range(edge)]
        column = write_linear(code, transform.result, names, self.kind, "c")
        code.add(*(f"rows[{i * edge} + j] = {name};" for i, name in enumerate(column)))
        code.close()
        code.add(ROLLED)
        code.open(f"for (int i = r1 - r0; i < {m}; ++i)")
        names = [f"rows[i * {edge} + {j}]" for j in range(edge)]
        for j, value in enumerate(write_linear(code, transform.result, names, self.kind, "y")):
            self._write_pixel(image, j, value)
        code.close(3)

    def _write_pixel(self, image: str, column: int, value: str) -> None:
        """Pixel (r0 + i, c0 + column), but where the tile before has it."""
        code, finish = self.code, self.finish
        moved = bool(self.tiles.size[1] % self.tiles.transform.outputs)
        if moved:
            code.open(f"if (c0 + {column} >= c1)")
        places = []
        for view in (*finish.views, self.y):
            sn, sc, sh, sw = view.strides
            terms = [(image, sn), ("(r0 + i)", sh), ("c0", sw), ("(n0 + n)", sc)]
            places.append((offset_of(terms, view.offset + column * sw), sc))
        *given, target = places
        vector = self.tile.vector
        loads = {
            i: load(f"p{finish.first + i - 1}", at, step, vector)
            for i, (at, step) in enumerate(given, 1)
        }
        result = finish.write(code, value, loads, vector, f"q{column}_")
        code.add(*store(f"p{finish.first + len(given)}", *target, vector, result))
        if moved:
            code.close()
