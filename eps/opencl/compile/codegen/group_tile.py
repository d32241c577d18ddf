"""A contraction by work-groups that share their operands in local memory: implicit GEMM.

A group computes `rows` output pixels by `channels` output channels. It steps through the summands,
window by channels, some at a time: its items load the step's part of both operands side by side,
put it into local memory, and load the next step's while they multiply this one's. Each item keeps
`pixels` times `panels` vectors of sums in registers. Pixels beyond the last load the last one's
values and store nothing; summands beyond the last are zeros in both operands. Where one group for
each tile would leave the device idle, several share a sum: each writes its part, and an
elementwise kernel adds the parts in order and finishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.group_loads import PixelLoads, WeightLoads, pixel_place
from eps.opencl.compile.codegen.group_tiling import SKEW, splits_of
from eps.opencl.compile.codegen.kernel import (
    Code,
    Finish,
    Kernel,
    decode,
    floats,
    load,
    offset_of,
    store,
)
from eps.opencl.compile.codegen.pointwise import pointwise_kernel
from eps.opencl.compile.expression import Arg, Call, Expr, substitute, vector_type
from eps.opencl.compile.views import Storage, View, plain_strides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.compile.codegen.tile import Contraction
    from eps.opencl.compile.tilings import GroupTile
    from eps.opencl.target import Target

FLOAT = "float32"


def write_group_contraction(
    spec: Contraction, tile: GroupTile, min_groups: int, finish: Finish, target: Target
) -> list[Kernel]:
    """The kernels, the first of which multiplies.

    Args:
        spec: What is computed; weights are packed by `pack_for_groups`, or in the model's order.
        tile: Of a work-group.
        min_groups: Groups that there should be.
        finish: What is done with each result.
        target: The device.
    """
    splits = splits_of(tile, spec.sizes, min_groups)
    if splits == 1:
        return [_Writer(spec, tile, finish, _places(spec)).kernel()]
    sizes = spec.sizes
    shape = (splits, *spec.batch, sizes.rows, sizes.columns, sizes.width)
    strides = plain_strides(shape)
    parts = Storage(splits * strides[0], FLOAT)
    places = _Places(parts, 0, strides[:-3], (strides[-3], strides[-2], 1))
    plain = Finish(Arg(0, FLOAT), (), finish.first)
    first = _Writer(spec, tile, plain, places, splits).kernel()
    views = [View(parts, shape[1:], strides[1:], s * strides[0]) for s in range(splits)]
    y = View(spec.y[0], shape[1:], (*spec.y[2], *spec.y_steps), spec.y[1])
    last = pointwise_kernel(_add_parts(finish, splits), [*views, *finish.views], y, target)
    return [first, last]


def _add_parts(finish: Finish, splits: int) -> Expr:
    """The epilogue of a sum of parts; the parts are the first operands."""
    total: Expr = Arg(0, FLOAT)
    for s in range(1, splits):
        total = Call("add", (total, Arg(s, FLOAT)), FLOAT)
    rest: dict[int, Expr] = {
        i: Arg(splits + i - 1, view.buffer.dtype) for i, view in enumerate(finish.views, 1)
    }
    return substitute(finish.expr, {0: total, **rest})


@dataclass(frozen=True, slots=True)
class _Places:
    """Strides of results: of (part of the sum, batch axes), and of (row, column, channel)."""

    buffer: Storage
    offset: int
    outer: tuple[int, ...]
    steps: tuple[int, int, int]


def _places(spec: Contraction) -> _Places:
    return _Places(spec.y[0], spec.y[1], (0, *spec.y[2]), spec.y_steps)


class _Writer:
    """Writes the kernel of one contraction."""

    def __init__(
        self, spec: Contraction, tile: GroupTile, finish: Finish, places: _Places, splits: int = 1
    ) -> None:
        self.spec, self.tile, self.finish, self.places = spec, tile, finish, places
        self.splits = splits
        self.code = Code()
        self.steps = -(-spec.sizes.summands // tile.step)

    def kernel(self) -> Kernel:
        spec, tile, code, sizes = self.spec, self.tile, self.code, self.spec.sizes
        down, across = -(-sizes.pixels // tile.rows), -(-sizes.width // tile.channels)
        pitch = tile.rows + SKEW
        code.add(
            f"__local float4 a_store[{tile.step * pitch // 4}];",
            f"__local float4 b_store[{tile.step * tile.channels // 4}];",
            "__local float* const al = (__local float*)a_store;",
            "__local float* const bl = (__local float*)b_store;",
            "const int l = get_local_id(0), group = get_group_id(0);",
            f"const int tx = l % {tile.across}, ty = l / {tile.across};",
        )
        outer = [self.splits, *spec.batch]
        *outer_names, panel, rows = decode(code, "group", [*outer, across, down], "b")
        batch = outer_names[1:]
        code.add(f"const int m0 = {rows} * {tile.rows}, n0 = {panel} * {tile.channels};")
        pixels = PixelLoads(code, spec, tile, batch)
        weights = WeightLoads(code, spec, tile, batch, panel)
        self._sum(outer_names[0], pixels, weights)
        self._store(outer_names)
        operands = (spec.x[0], spec.w[0], *(v.buffer for v in self.finish.views))
        groups = self.splits * sizes.batch * down * across
        return Kernel(
            code.text(),
            (*operands, self.places.buffer),
            groups * tile.items,
            work=sizes.work,
            problem=sizes,
            group=tile.items,
        )

    def _sum(self, part: str, pixels: PixelLoads, weights: WeightLoads) -> None:
        code, tile = self.code, self.tile
        kind = floats(tile.vector)
        for i in range(tile.pixels):
            names = ", ".join(f"s{i}_{j} = 0.0f" for j in range(tile.panels))
            code.add(f"{kind} {names};")
        each = -(-self.steps // self.splits) * tile.step
        last = self.steps * tile.step
        begin, end = "0", str(last)
        if self.splits > 1:
            code.add(f"const int begin = {part} * {each}, end = min(begin + {each}, {last});")
            begin, end = "begin", "end"
        pixels.declare()
        weights.declare()
        pixels.fetch(begin)
        weights.fetch(begin)
        code.open(f"for (int k0 = {begin}; k0 < {end}; k0 += {tile.step})")
        code.add("barrier(CLK_LOCAL_MEM_FENCE);")
        pixels.keep()
        weights.keep()
        code.add("barrier(CLK_LOCAL_MEM_FENCE);")
        code.open(f"if (k0 + {tile.step} < {end})")
        pixels.fetch(f"k0 + {tile.step}")
        weights.fetch(f"k0 + {tile.step}")
        code.close()
        self._multiply()
        code.close()

    def _multiply(self) -> None:
        code, tile = self.code, self.tile
        kind, vector = floats(tile.vector), tile.vector
        code.add("#pragma unroll 4")
        code.open(f"for (int k = 0; k < {tile.step}; ++k)")
        code.add(
            f"__local const float* const ak = al + k * {tile.rows + SKEW} + ty * {tile.pixels};",
            f"__local const float* const bk = bl + k * {tile.channels} + tx * {vector};",
        )
        for j in range(tile.panels):
            at = f"bk + {j * tile.across * vector}"
            text = f"*(__local const {kind}*)({at})" if vector > 1 else f"*({at})"
            code.add(f"const {kind} b{j} = {text};")
        width = next(w for w in (4, 2, 1) if tile.pixels % w == 0)
        for i in range(0, tile.pixels, width):
            at = f"*(__local const {floats(width)}*)(ak + {i})" if width > 1 else f"ak[{i}]"
            code.add(f"const {floats(width)} a{i} = {at};")
            for lane in range(width):
                factor = f"a{i}.s{lane}" if width > 1 else f"a{i}"
                factor = f"({kind})({factor})" if vector > 1 else factor
                for j in range(tile.panels):
                    name = f"s{i + lane}_{j}"
                    code.add(f"{name} = mad({factor}, b{j}, {name});")
        code.close()

    def _store(self, outer: Sequence[str]) -> None:
        """Vector by vector, so that an operand that is the same for every pixel is loaded once."""
        code, tile, sizes = self.code, self.tile, self.spec.sizes
        edge = sizes.width % tile.channels != 0
        for j in range(tile.panels):
            name = f"n{j + 1}"
            at = offset_of([("n0", 1), ("tx", tile.vector)], j * tile.across * tile.vector)
            code.add(f"const int {name} = {at};")
            code.open(f"if ({name} < {sizes.width})" if edge else "")
            held = self._same_for_pixels(outer[1:], j, name)
            for i in range(tile.pixels):
                self._store_pixel(outer, (i, j), name, held)
            code.close()

    def _same_for_pixels(self, batch: Sequence[str], j: int, channel: str) -> dict[int, str]:
        names = {}
        for number, view in enumerate(self.finish.views, 1):
            *strides, rows, columns, step = view.strides
            if rows or columns:
                continue
            terms = [*zip(batch, strides, strict=True), (channel, step)]
            text = self._operand(number, offset_of(terms, view.offset), step)
            names[number] = f"h{number}_{j}"
            kind = vector_type(view.buffer.dtype, self.tile.vector)
            self.code.add(f"const {kind} {names[number]} = {text};")
        return names

    def _operand(self, number: int, at: str, step: int) -> str:
        dtype = self.finish.views[number - 1].buffer.dtype
        return load(f"p{self.finish.first + number - 1}", at, step, self.tile.vector, dtype)

    def _store_pixel(
        self, outer: Sequence[str], place: tuple[int, int], channel: str, held: Mapping[int, str]
    ) -> None:
        code, tile, sizes = self.code, self.tile, self.spec.sizes
        i, j = place
        at = offset_of([("m0", 1), ("ty", tile.pixels)], i)
        code.open("")
        code.add(f"const int m = {at};")
        if sizes.pixels % tile.rows:
            code.open(f"if (m < {sizes.pixels})")
        row, column = pixel_place(sizes.rows, sizes.columns, "m")
        loads = dict(held)
        for number, view in enumerate(self.finish.views, 1):
            if number not in held:
                *strides, down, right, step = view.strides
                terms = zip(
                    (*outer[1:], row, column, channel), (*strides, down, right, step), strict=True
                )
                loads[number] = self._operand(number, offset_of(terms, view.offset), step)
        value = self.finish.write(code, f"s{i}_{j}", loads, tile.vector, f"q{i}_{j}_")
        places = self.places
        terms = zip((*outer, row, column, channel), (*places.outer, *places.steps), strict=True)
        pointer = f"p{len(self.finish.views) + 2}"
        code.add(
            *store(pointer, offset_of(terms, places.offset), places.steps[2], tile.vector, value)
        )
        code.close(2 if sizes.pixels % tile.rows else 1)
