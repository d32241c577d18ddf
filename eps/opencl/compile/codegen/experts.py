"""Products with the weights of the experts that each token has, which the run decides.

The weights of an expert are packed as `pack_blocks` says, and the experts follow each other. Only
those of the experts that the run has chosen are read.

For few rows, a unit of work is some panels of the expert of one row. For many, on CPUs, the rows of
each expert are listed first. A unit of work is two panels of an expert, which become floats in
private memory and are multiplied with all of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.codegen.block_panels import PANELS, PanelWriter
from eps.opencl.compile.codegen.kernel import (
    Code,
    Kernel,
    floats,
    load,
    share,
    share_evenly,
    store,
)
from eps.opencl.compile.codegen.pack_blocks import allocate_packed, choose_sizes
from eps.opencl.compile.codegen.prefetch import LINE
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.expert_op import ExpertMatMul
from eps.opencl.compile.expression import vector_type
from eps.opencl.compile.views import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.codegen.pack_blocks import BlockSizes
    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

FEW_ROWS = 2
"""Rows of each expert, in the mean, up to which unpacking for each row costs less than floats."""
MOST_LISTED = 1 << 14
"""Experts whose rows are listed: a work-item counts them in private memory, which is small."""
REST = 4
"""Rows of the tiles after those that fill the registers."""
LABEL = "weights{}bit_experts_"
"""Label of the products; see `program_spec` for its beginning."""


def expert_kernels(op: ExpertMatMul, step: PlacedOp, target: Target) -> list[Kernel]:
    """A product in one launch, after one that lists the rows of each expert if there are many."""
    experts, width = step.inputs[2].shape[:2]
    rows, depth = step.inputs[1].size, step.inputs[0].shape[-1]
    sizes = choose_sizes(op, (rows, depth, width), target)
    by_columns = bool(op.scales) and step.inputs[op.scales].shape[-1] == 1
    writer = _Writer(replace(sizes, by_columns=by_columns), op, step, target)
    before = []
    if target.groups is not None:
        spread = writer.write_for_groups()
    elif rows <= FEW_ROWS * experts or experts > MOST_LISTED or sizes.overlaps:
        spread = writer.write_few_rows()
    else:
        before = [_list_rows(step, experts)]
        writer.lists = before[0].operands[-1]
        spread = writer.write_many_rows(experts)
    kernel = Kernel(
        writer.code.text(), writer.operands(), *spread, work=2 * rows * depth * width,
        label=LABEL.format(op.bits),
    )  # fmt: skip
    return [*before, kernel]


def _list_rows(step: PlacedOp, experts: int) -> Kernel:
    """Where the rows of each expert begin, and the end; then the rows, expert by expert."""
    picks = step.inputs[1]
    code = Code()
    code.open("if (get_global_id(0) == 0)")
    code.add(f"int next[{experts}];", f"__global int* rows = p1 + {experts + 1};")
    code.open(f"for (int e = 0; e < {experts}; ++e)")
    code.add("next[e] = 0;")
    code.close()
    code.open(f"for (int m = 0; m < {picks.size}; ++m)")
    code.add(f"++next[(int)p0[{picks.offset} + m]];")
    code.close()
    code.add("int begin = 0;")
    code.open(f"for (int e = 0; e < {experts}; ++e)")
    code.add("const int count = next[e];", "p1[e] = next[e] = begin;", "begin += count;")
    code.close()
    code.add(f"p1[{experts}] = begin;")
    code.open(f"for (int m = 0; m < {picks.size}; ++m)")
    code.add(f"rows[next[(int)p0[{picks.offset} + m]]++] = m;")
    code.close(2)
    lists = Storage(experts + 1 + picks.size, "int32")
    return Kernel(code.text(), (picks.buffer, lists), 1, label="expert_rows_")


class _Writer(PanelWriter):
    """Writes the kernel: inputs are p0, packed weights p1, p2 and maybe p3, the result the last.

    Attributes:
        lists: Rows of each expert, see `_list_rows`; None where each row has its own work.
    """

    def __init__(self, sizes: BlockSizes, op: ExpertMatMul, step: PlacedOp, target: Target) -> None:
        super().__init__(sizes, "uint8" if op.zeros else "")
        self.lists: Storage | None = None
        self._op, self._step, self._target = op, step, target
        self._packed = 1 + bool(op.scales) + bool(op.zeros)
        self._bias = f"p{1 + self._packed}"
        self._picks = f"p{1 + self._packed + bool(op.bias)}"
        self._result = f"p{2 + self._packed + bool(op.bias)}"
        self._each = 1 if len(step.inputs[0].shape) > 2 else step.inputs[1].shape[-1]

    def operands(self) -> tuple[Storage, ...]:
        """In the order of the parameters."""
        op, step = self._op, self._step
        bias = []
        if op.bias:
            value = step.inputs[op.bias].buffer.constant
            assert value is not None, "lowering takes constants"
            columns = value.reshape(-1, self.sizes.width)[:, self._columns()]
            bias = [Storage(value.size, "float32", np.ascontiguousarray(columns).reshape(-1))]
        chosen = self.lists or step.inputs[1].buffer
        return (step.inputs[0].buffer, *self._pack(), *bias, chosen, step.output.buffer)

    def _columns(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The column of the weights that each column of the result is."""
        columns = np.arange(self.sizes.width)
        return np.concatenate([columns[0::2], columns[1::2]]) if self._op.pairs else columns

    def _pack(self) -> list[Storage]:
        """Weights, scales and zero points, expert by expert."""
        s, result = self.sizes, []
        starts = [min(p * s.panel, s.width - s.panel) for p in range(s.panels)]
        columns = self._columns()[np.add.outer(starts, np.arange(s.panel))]
        for index in (2, self._op.scales, self._op.zeros)[: self._packed]:
            value = self._step.inputs[index].buffer.constant
            assert value is not None, "lowering takes constants"
            if index == 2 and s.is_scaled:
                value = np.ascontiguousarray(value).view("<i4")
            experts, _, depth = value.shape
            packed = allocate_packed((experts, s.panels, depth, s.panel), value.dtype)
            for one, to in zip(value, packed, strict=True):
                to[:] = one[columns].swapaxes(1, 2)
            result.append(Storage(packed.size, packed.dtype.name, packed.reshape(-1)))
        return result

    def _row(self, row: str) -> str:
        """Pointer to the inputs of a row of the result."""
        source = row if self._each == 1 else f"{row} / {self._each}"
        return f"p0 + {self._step.inputs[0].offset} + {source} * {self.sizes.depth}"

    def _expert(self, row: str) -> str:
        return f"const int e = (int){self._picks}[{self._step.inputs[1].offset} + {row}];"

    def write_few_rows(self) -> tuple[int, int]:
        """Each task: the inputs of a row to private memory once, then some panels of its expert."""
        code, s, target = self.code, self.sizes, self._target
        worth = max(1, s.panels * s.panel * s.depth // SMALLEST_TASK)
        most = min(-(-target.tasks // s.rows), worth)
        groups, each = share_evenly(s.panels, most, target.units if s.rows % target.units else 1)
        code.add(f"float x[{s.blocks * s.block}], sums[{s.blocks}];")
        code.add(f"const int id = get_global_id(0), m = id / {groups};", self._expert("m"))
        self.write_inputs(self._row("m"))
        code.add(f"const int first = id % {groups} * {each};")
        code.open(f"for (int u = first; u < min(first + {each}, {s.panels}); ++u)")
        code.add(f"const size_t panel = (size_t)e * {s.panels} + u;")
        self.write_panel_pointers("0", "panel")
        self.write_row_of_panel(fetches=target.prefetches)
        for v in range(s.vectors):
            self._store(f"n0 + {v * s.vector}", f"t0_{v}")
        code.close()
        return s.rows * groups, 1

    def _store(self, column: str, value: str) -> None:
        """Store a vector of row m, and add the bias of expert e before."""
        s = self.sizes
        if self._op.bias:
            value += f" + {load(self._bias, f'e * {s.width} + {column}', 1, s.vector)}"
        at = f"{self._step.output.offset} + m * {s.width} + {column}"
        self.code.add(*store(self._result, at, 1, s.vector, value))

    def write_for_groups(self) -> tuple[int, int]:
        """Each item a vector of columns of a row; adjacent items have adjacent vectors."""
        code, s = self.code, self.sizes
        spread = open_units(code, s.rows * s.panels * s.vectors, 1, self._target, "unit")
        code.add(f"const int u = unit / {s.vectors} % {s.panels}, v = unit % {s.vectors};")
        code.add(f"const int m = unit / {s.vectors * s.panels};", self._expert("m"))
        code.add(f"const size_t panel = (size_t)e * {s.panels} + u;")
        self.write_panel_pointers(f"v * {s.vector}", "panel")
        code.add(f"__global const float* row = {self._row('m')};")
        self.declare("t", 1, 1)
        code.open(f"for (int b = 0; b < {s.blocks}; ++b)")
        self.declare("a", 1, 1)
        code.add("float sum = 0.0f;")
        code.add(f"const int end = min({s.block}, {s.depth} - b * {s.block});")
        code.open(f"for (int i = 0; i < {s.words}; ++i)")
        dtype = "int32" if s.is_scaled else "float32"
        kind = vector_type(dtype, s.vector)
        code.add(f"const {kind} held = {load('w', '0', 1, s.vector, dtype)};")
        code.add(f"w += {s.panel};")
        code.open(f"for (int j = 0; j < {s.each} && i * {s.each} + j < end; ++j)")
        code.add(f"const float x = row[b * {s.block} + i * {s.each} + j];")
        value = self.convert(f"(held >> (j * {s.bits})) & {(1 << s.bits) - 1}")
        code.add("sum += x;", f"a0_0 += x * {value if s.is_scaled else 'held'};")
        code.close(2)
        self.write_block_end(1, lambda _: "sum", 1)
        code.close()
        self._store(f"n0 + v * {s.vector}", "t0_0")
        code.close()
        return spread

    def write_many_rows(self, experts: int) -> tuple[int, int]:
        """Two panels of an expert: part of their depth as floats, times tiles of its rows."""
        code, s = self.code, self.sizes
        depth, panels = s.part, min(PANELS, s.panels)
        groups, _ = share(s.panels, -(-s.panels // panels))
        code.add(f"float f[{panels * depth * s.panel}] __attribute__((aligned({LINE})));")
        code.add(f"const int id = get_global_id(0), e = id / {groups}, group = id % {groups};")
        code.add(f"__global const int* rows = {self._picks} + {experts + 1};")
        code.add(f"const int begin = {self._picks}[e], end = {self._picks}[e + 1];")
        code.add(f"const size_t first = (size_t)e * {s.panels};")
        code.add(f"const int count = min({panels}, {s.panels} - group * {panels});")
        code.open(f"for (int k0 = 0; k0 < {s.depth} && begin < end; k0 += {depth})")
        code.add(f"const int depth = min({depth}, {s.depth} - k0);")
        self.write_floats(panels, depth, "group", "first")
        code.add("int m = begin;")
        tile = max(1, min(self._target.accumulators // s.strip, s.rows))
        code.open(f"for (; m + {tile} <= end; m += {tile})")
        self._write_row_tile(tile, panels, depth)
        code.close()
        code.open(f"for (; m < end; m += {REST})")
        self._write_row_tile(REST, panels, depth)
        code.close(2)
        return experts * groups, 1

    def _write_row_tile(self, count: int, panels: int, depth: int) -> None:
        """Sums of `count` rows from the m-th on over the depth in f, added to those so far.

        The last row stands for those after the end: it is computed and stored more than once.
        """
        code, s = self.code, self.sizes
        kind, columns, strips = floats(s.vector), s.strip * s.vector, s.vectors // s.strip
        for r in range(count):
            code.add(f"const int row{r} = rows[min(m + {r}, end - 1)];")
            code.add(f"__global const float* x{r} = {self._row(f'row{r}')} + k0;")
        code.open(f"for (int strip = 0; strip < count * {strips}; ++strip)")
        code.add(f"__private const float* fs = f + strip * {depth * columns};")
        code.add(f"const int column = group * {panels * s.panel} + strip * {columns};")
        for r in range(count):
            at = f"{self._step.output.offset} + row{r} * {s.width} + column"
            code.add(f"__global float* y{r} = {self._result} + {at};")
        for v in range(s.strip):
            at = f"e * {s.width} + column + {v * s.vector}"
            begin = load(self._bias, at, 1, s.vector) if self._op.bias else f"({kind})(0.0f)"
            code.add(f"const {kind} begin{v} = {begin};")
        for r in range(count):
            for v in range(s.strip):
                held = load(f"y{r}", str(v * s.vector), 1, s.vector)
                code.add(f"{kind} a{r}_{v} = k0 ? {held} : begin{v};")
        code.open(f"for (int k = 0; k < depth; k += {self.unroll})")
        for u in range(self.unroll):
            self.write_products(count, u)
        code.close()
        for r in range(count):
            for v in range(s.strip):
                code.add(*store(f"y{r}", str(v * s.vector), 1, s.vector, f"a{r}_{v}"))
        code.close()


GENERATORS: Mapping[type[Op], Callable[..., list[Kernel]]] = {ExpertMatMul: expert_kernels}
