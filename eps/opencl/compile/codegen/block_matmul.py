"""Products with weights of 4 or 8 bits, which are quantised by blocks: MatMulNBits.

On CPUs. For few rows a work-item keeps a vector of sums for each vector of a panel. For many it
writes some of the depth of two panels as floats to private memory, and multiplies all rows by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.block_dot import block_dot_kernel, takes_bytes
from eps.opencl.compile.codegen.block_groups import GroupWriter
from eps.opencl.compile.codegen.block_panels import PANELS, PanelWriter
from eps.opencl.compile.codegen.block_result import BlockResult
from eps.opencl.compile.codegen.kernel import Kernel, floats, load, share_evenly, store
from eps.opencl.compile.codegen.pack_blocks import choose_sizes, pack_weights
from eps.opencl.compile.codegen.prefetch import LINE, SECOND, fetch
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.decoder_op import BlockMatMul

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.codegen.pack_blocks import BlockSizes
    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

FEW_ROWS = 4
"""Rows up to which unpacking for each of them costs less than keeping floats."""
LABEL = "weights{}bit_"
"""Label of such a kernel."""


def block_matmul_kernel(op: BlockMatMul, step: PlacedOp, target: Target) -> Kernel:
    """One launch: units of work are panels with all rows or, in groups, with a tile of them."""
    depth, width = step.inputs[0].shape[-1], step.output.shape[-1]
    rows = step.inputs[0].size // depth
    sizes = choose_sizes(op, (rows, depth, width), target)
    if takes_bytes(op, sizes, target):
        return block_dot_kernel(op, step, sizes, target)
    writer: GroupWriter | _Writer
    if target.groups is not None:
        writer = GroupWriter(sizes, op, step, target)
        spread = writer.write()
    else:
        writer = _Writer(sizes, op, step, target)
        few = rows <= FEW_ROWS or sizes.overlaps  # panels that overlap may not add to their results
        spread = writer.write_few_rows() if few else writer.write_many_rows()
    finishing = (view.buffer for view in step.inputs[op.operands :])
    packed = pack_weights(step, sizes, op.operands)
    operands = (step.inputs[0].buffer, *packed, *finishing, step.output.buffer)
    return Kernel(
        writer.code.text(), operands, *spread, work=2 * rows * depth * width,
        label=LABEL.format(op.bits), joins=target.groups is None,
        division=() if sizes.overlaps else sizes.key, elementwise=writer.result.elementwise,
    )  # fmt: skip


class _Writer(PanelWriter):
    """Writes the kernel: x is p0, the packed weights p1, p2 and maybe p3, the result the last."""

    def __init__(self, sizes: BlockSizes, op: BlockMatMul, step: PlacedOp, target: Target) -> None:
        super().__init__(sizes, step.inputs[3].buffer.dtype if op.operands > 3 else "")
        self._target, self._x = target, step.inputs[0].offset
        self.result = BlockResult(op, step)

    def write_few_rows(self) -> tuple[int, int]:
        """Each row: its inputs to private memory once, then a task's panels."""
        code, s = self.code, self.sizes
        code.add(f"float x[{s.blocks * s.block}], sums[{s.blocks}];")
        code.open(f"for (int m = 0; m < {s.rows}; ++m)")
        self.write_inputs(f"p0 + {self._x} + m * {s.depth}")
        worth = s.panels * s.panel * s.depth // SMALLEST_TASK
        most = min(self._target.tasks, max(1, worth))
        tasks, _ = share_evenly(s.panels, most, self._target.units)
        spread = open_units(code, s.panels, tasks, self._target)
        self.write_panel_pointers("0")
        self.write_row_of_panel(fetches=self._target.prefetches)
        for v in range(s.vectors):
            self.result.store(code, ("m", f"n0 + {v * s.vector}"), s.vector, f"t0_{v}")
        code.close(2)
        return spread

    def write_many_rows(self) -> tuple[int, int]:
        """Some panels: part of their depth as floats, and a tile of rows of sums at a time."""
        code, s = self.code, self.sizes
        depth, panels = s.part, min(PANELS, s.panels)
        units = -(-s.panels // panels)
        spread = open_units(code, units, units, self._target, "unit")
        code.add(f"float f[{panels * depth * s.panel}] __attribute__((aligned({LINE})));")
        code.add(f"const int count = min({panels}, {s.panels} - unit * {panels});")
        code.open(f"for (int k0 = 0; k0 < {s.depth}; k0 += {depth})")
        code.add(f"const int depth = min({depth}, {s.depth} - k0);")
        self.write_floats(panels, depth, "unit")
        tile = max(1, min(self._target.accumulators // s.strip, s.rows))
        for count, begin, end in (
            (tile, 0, s.rows - s.rows % tile), (s.rows % tile, s.rows - s.rows % tile, s.rows),
        ):  # fmt: skip
            if not count:
                continue
            code.open(f"for (int m = {begin}; m < {end}; m += {count})")
            self._write_row_tile(count, panels, depth)
            code.close()
        code.close(2)
        return spread

    def _write_row_tile(self, count: int, panels: int, depth: int) -> None:
        """Sums of `count` rows at m over the depth in f, added to what the result has."""
        code, s = self.code, self.sizes
        kind, columns, strips = floats(s.vector), s.strip * s.vector, s.vectors // s.strip
        for r in range(count):
            code.add(f"__global const float* x{r} = p0 + {self._x} + (m + {r}) * {s.depth} + k0;")
        code.open(f"for (int strip = 0; strip < count * {strips}; ++strip)")
        code.add(f"__private const float* fs = f + strip * {depth * columns};")
        column = f"unit * {panels * s.panel} + strip * {columns}"
        at = f"{self.result.offset} + m * {s.width} + {column}"
        code.add(f"__global float* y = {self.result.pointer} + {at};")
        places = [
            (r, v, str(r * s.width + v * s.vector)) for r in range(count) for v in range(s.strip)
        ]
        for r, v, place in places:
            held = load("y", place, 1, s.vector)
            code.add(f"{kind} a{r}_{v} = k0 ? {held} : ({kind})(0.0f);")
        if self._target.prefetches:  # strip n fetches row n of the next tile
            code.add(f"__global const float* next = x0 + ({count} + strip % {count}) * {s.depth};")
        code.open(f"for (int k = 0; k < depth; k += {self.unroll})")
        if self._target.prefetches:
            code.add(fetch("next + k", into=SECOND))
        for u in range(self.unroll):
            self.write_products(count, u)
        code.close()
        self._store_tile(places, column)
        code.close()

    def _store_tile(self, places: Sequence[tuple[int, int, str]], column: str) -> None:
        """Store sums so far at y; the last part of the depth is finished, too."""
        code, s, result = self.code, self.sizes, self.result
        has_parts = s.part < s.depth
        if not result.is_finished or has_parts:
            code.open(f"if (k0 + depth < {s.depth})" if result.is_finished else "")
            for r, v, place in places:
                code.add(*store("y", place, 1, s.vector, f"a{r}_{v}"))
            code.close()
        if result.is_finished:
            code.open("else" if has_parts else "")
            for r, v, _ in places:
                at = (f"m + {r}", f"{column} + {v * s.vector}")
                result.store(code, at, s.vector, f"a{r}_{v}")
            code.close()


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {BlockMatMul: block_matmul_kernel}
