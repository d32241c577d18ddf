"""Winograd's convolutions: the tiles' values at the points, then products and results.

A work-item has some tiles and the channels of a panel: for each point it multiplies the tiles'
values by the point's weights, in registers as any contraction does, keeps the products in private
memory, and interpolates the output from them, with the epilogue. So the products, which are the
largest by far, never leave the cache.

Values are written by a kernel of their own, for all tiles, so that panels share them. Where all
of them would not stay in a cache, one kernel does everything: a work-item writes the values of a
few tiles where it wrote those before, and takes all panels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.codegen.arithmetic import pack_panels
from eps.opencl.compile.codegen.kernel import Code, Kernel, finish_of, share
from eps.opencl.compile.codegen.tiling import choose_tiling, share_tiles
from eps.opencl.compile.codegen.winograd_block import WinogradBlock
from eps.opencl.compile.codegen.winograd_tiles import Tiles
from eps.opencl.compile.tilings import Problem, Tile
from eps.opencl.compile.views import Storage
from eps.opencl.compile.winograd import WINDOW, Extent, choose_outputs, transform_of

if TYPE_CHECKING:
    from eps.opencl.compile.ir import Convolution
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

SMALLEST_TASK = 2048
"""Elements of the input below which another task costs more than it brings."""
MOST_TILES = 24
"""Most tiles that a work-item multiplies by the weights it reads; more gained nothing."""
MOST_BYTES = 1 << 16
"""Of a work-item's products, which are on a thread's stack."""
LARGE_VALUES, OWN_VALUES = 1 << 19, 1 << 16
"""Floats of all values from which on one kernel is faster, and of those of a work-item there."""
TASKS_OF_A_UNIT = 8
"""Of a kernel that does everything, for each core: their work differs by a block."""


def outputs_of(op: Convolution, step: PlacedOp, target: Target) -> int | None:
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


def _extent(step: PlacedOp) -> Extent:
    images, width, rows, columns = step.output.shape
    depth = step.inputs[0].shape[1]
    return Extent(images=images, rows=rows, columns=columns, depth=depth, width=width)


def winograd_kernels(op: Convolution, step: PlacedOp, target: Target, outputs: int) -> list[Kernel]:
    """The kernel or two, for tiles of `outputs` by `outputs` pixels."""
    return _Writer(op, step, target, outputs).kernels()


class _Writer:
    """Writes the kernels of one convolution."""

    def __init__(self, op: Convolution, step: PlacedOp, target: Target, outputs: int) -> None:
        extent, transform = _extent(step), transform_of(outputs)
        size = (extent.rows, extent.columns)
        self.tiles = Tiles(transform, extent.grid(outputs), size, extent.depth)
        self.target, self.y = target, step.output
        x, (top, left) = step.inputs[0], op.window.pads[:2]
        self.x = replace(x, offset=x.offset - top * x.strides[2] - left * x.strides[3])
        self.finish = finish_of(op.epilogue, step.inputs, step.output.shape, 2)
        self.sizes = Problem(
            batch=1,
            rows=1,
            columns=self.tiles.count,
            taps=(transform.points, 1),
            depth=extent.depth,
            width=extent.width,
            packed=True,
            operands=len(self.finish.views),
        )
        tiling = choose_tiling(self.sizes, target)
        assert isinstance(tiling.tile, Tile), "no work-group shares it"
        self.tile, self.tasks = tiling.tile, tiling.tasks
        weights = step.inputs[1].buffer.constant
        assert weights is not None, "lowering takes constant weights"
        at_points = transform.weights_at_points(weights.reshape(step.inputs[1].shape))
        packed = pack_panels(at_points[None, :, None], self.tile)
        self.weights = Storage(packed.size, packed.dtype.name, packed)

    def kernels(self) -> list[Kernel]:
        """One where values are many and blocks enough for all cores, else two."""
        points, count = self.tiles.transform.points, self.tiles.count
        total = points * self.tiles.plane(count)
        mine = self._steps(OWN_VALUES // (points * self.tiles.depth)) * self.tile.wide
        min_tasks = TASKS_OF_A_UNIT * self.target.units
        large = total >= LARGE_VALUES and total > self.weights.size
        if large and count >= min_tasks * mine:
            return [self._whole_kernel(mine, min_tasks)]
        values = Storage(total, "float32")
        return [self._evaluation(values), self._rest(values)]

    @property
    def _panels(self) -> int:
        return -(-self.sizes.width // self.tile.channels)

    def _steps(self, tiles: int) -> int:
        """Times `tile.wide` for as many as `tiles`, as products and gain allow."""
        each = 4 * self.tiles.transform.points * self.tile.channels
        return max(1, min(tiles, MOST_TILES, MOST_BYTES // each) // self.tile.wide)

    def _block(self, size: int, parameter: int) -> WinogradBlock:
        return WinogradBlock(
            tiles=self.tiles,
            size=size,
            plane=self.tiles.plane(size),
            tile=self.tile,
            weights=self.weights,
            finish=self.finish,
            y=self.y,
            parameter=parameter,
            prefetches=self.target.prefetches,
        )

    def _evaluation(self, values: Storage) -> Kernel:
        """Values of all tiles; parameters are the input and the values."""
        code, count, depth = Code(), self.tiles.count, self.tiles.depth
        small = max(1, count * depth // SMALLEST_TASK)
        tasks, each = share(count, min(self.target.tasks, small))
        code.add("const int id = get_global_id(0);")
        code.open(f"for (int u = id * {each}; u < min(id * {each} + {each}, {count}); ++u)")
        image = self.tiles.write_place(code, "u")
        code.add(f"__global float* yt = p1 + u * {depth};")
        plane = self.tiles.plane(count)
        self.tiles.write_values(code, image, self.x, plane, self.target.vector)
        code.close()
        return Kernel(code.text(), (self.x.buffer, values), tasks)

    def _rest(self, values: Storage) -> Kernel:
        """Products and results; parameters are values, weights, the epilogue's operands, y.

        What is larger, weights or values, is read once: panels or blocks are outermost.
        """
        code, count = Code(), self.tiles.count
        steps, most = -(-count // self.tile.wide), self._steps(MOST_TILES)
        heavy = self.weights.size > values.size
        if not heavy:
            _, each = share_tiles(steps, self._panels, self.tasks, self.sizes.work)
            most = min(max(each, 2), most)
        size = min(-(-steps // -(-steps // most)) * self.tile.wide, count)
        blocks = -(-count // size)
        views = self.finish.views
        block = replace(self._block(size, len(views) + 2), plane=self.tiles.plane(count))
        code.add("const int id = get_global_id(0);")
        across, down = (blocks, 1) if heavy else (1, self._panels)
        code.add(f"const int panel = id / {across} % {self._panels};")
        code.add(f"const int block = id / {down} % {blocks};")
        self._write_block(code, block, "block")
        code.add(f"__global const float* v = p0 + first * {self.tiles.depth};")
        self._write_panel(code, block, "panel")
        operands = (values, self.weights, *(view.buffer for view in views), self.y.buffer)
        return self._kernel(code, operands, blocks * self._panels)

    def _whole_kernel(self, size: int, min_tasks: int) -> Kernel:
        """Everything; parameters are x, weights, the epilogue's operands, values, y."""
        code, views = Code(), self.finish.views
        block = self._block(size, len(views) + 3)
        blocks = -(-self.tiles.count // size)
        tasks, each = share(blocks, min_tasks)
        room = self.tiles.transform.points * block.plane
        code.add("const int id = get_global_id(0);")
        code.add(f"__global float* v = p{len(views) + 2} + id * {room};")
        code.open(f"for (int b = id * {each}; b < min(id * {each} + {each}, {blocks}); ++b)")
        self._write_block(code, block, "b")
        code.open("for (int u = 0; u < count; ++u)")
        code.add("const int number = first + u;")
        image = self.tiles.write_place(code, "number")
        code.add(f"__global float* yt = v + u * {self.tiles.depth};")
        self.tiles.write_values(code, image, self.x, block.plane, self.target.vector)
        code.close()
        code.open(f"for (int panel = 0; panel < {self._panels}; ++panel)")
        self._write_panel(code, block, "panel")
        code.close(2)
        values = Storage(tasks * room, "float32")
        read = (self.x.buffer, self.weights, *(view.buffer for view in views))
        return replace(self._kernel(code, (*read, values, self.y.buffer), tasks), written=2)

    def _write_block(self, code: Code, block: WinogradBlock, number: str) -> None:
        count, wide = self.tiles.count, self.tile.wide
        code.add(f"const int first = min({number} * {block.size}, {count - wide});")
        code.add(f"const int count = min({block.size}, {count} - first);")
        code.add(f"float products[{block.products}];")

    def _write_panel(self, code: Code, block: WinogradBlock, panel: str) -> None:
        channels = self.tile.channels
        code.add(f"const int n0 = min({panel} * {channels}, {self.sizes.width - channels});")
        block.write(code, panel)

    def _kernel(self, code: Code, operands: tuple[Storage, ...], tasks: int) -> Kernel:
        label = f"winograd{self.tiles.transform.outputs}_"
        work = self.sizes.work
        return Kernel(code.text(), operands, tasks, work=work, problem=self.sizes, label=label)
