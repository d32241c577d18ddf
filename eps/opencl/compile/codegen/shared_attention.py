"""Attention to a cache by work-groups: a tile of queries of one head, whose items share the keys.

An item has one key of a block at a time, and computes its scores. The group finds the largest score
of each query by halves in local memory; when it rises, the sums so far fade. Then an item has a
vector of a head, and adds every so many-th value of the block, weighted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.cache_place import fitting_vector, write_rotated, write_start
from eps.opencl.compile.codegen.fold import fold_lanes, larger
from eps.opencl.compile.codegen.kernel import (
    Code,
    Kernel,
    decode,
    floats,
    offset_of,
    pointee_type,
    store,
)
from eps.opencl.compile.element_types import HALF

if TYPE_CHECKING:
    from eps.opencl.compile.decoder_op import GroupAttention
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

QUERIES = 4
"""Of a tile: they read a key once."""
BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"


def takes_groups(step: PlacedOp, target: Target) -> bool:
    """Whether work-groups share local memory, and an item at most has a vector of a head."""
    size = step.inputs[1].shape[3]
    if not target.shares or target.groups is None:
        return False
    return size // fitting_vector(size, target) <= target.groups.size


def shared_attention_kernel(op: GroupAttention, step: PlacedOp, target: Target) -> Kernel:
    """One launch for all queries."""
    assert target.groups is not None, "takes_groups asks for groups"
    writer = _Writer(op, step, target, target.groups.size)
    tasks = writer.write()
    operands = (*(v.buffer for v in step.inputs), step.output.buffer)
    return Kernel(
        writer.code.text(), operands, tasks, target.groups.size, checks=True, work=writer.work,
        label="attention_",
    )  # fmt: skip


class _Writer:
    """Writes the kernel: queries are p0, keys p1, values p2, the result the last.

    Attributes:
        code: What has been written.
        work: Floating-point operations.
    """

    def __init__(self, op: GroupAttention, step: PlacedOp, target: Target, items: int) -> None:
        self.code, self._op, self._step, self._items = Code(), op, step, items
        self._most = max(1, target.tasks // items)
        q, keys = step.inputs[:2]
        self._batch, self._groups, self._room, self._size = keys.shape
        self._heads, self._new = q.shape[2] // self._size, op.place.new
        self._rows = min(QUERIES, self._new)
        self._vector = fitting_vector(self._size, target)
        self._parts = self._size // self._vector
        self._lanes = items // self._parts
        self._kind = floats(self._vector)
        span = self._new if op.place.starts_empty else self._room
        self.work = 4 * self._batch * self._heads * self._new * span * self._size

    def write(self) -> int:
        """All of it; the number of work-items."""
        code, items = self.code, self._items
        tiles = -(-self._new // self._rows)
        units = self._batch * tiles * self._heads
        groups = min(units, self._most)
        code.add(f"__local {self._kind} queries[{self._rows * self._parts}], shared[{items}];")
        code.add(f"__local float w[{self._rows * items}];")
        code.add(f"const int l = get_local_id(0), d = l % {self._parts}, lane = l / {self._parts};")
        code.open(f"for (int u = get_group_id(0); u < {units}; u += {groups})")
        b, tile, n = decode(code, "u", (self._batch, tiles, self._heads), "d")
        write_start(code, self._op.place, self._step, b, self._room)
        code.add(f"const int s0 = min({tile} * {self._rows}, {self._new - self._rows});")
        code.add("const int own = before + s0;")
        self._write_queries(b, n)
        code.add(BARRIER)
        self._write_pointers(b, n)
        self._declare_sums(n)
        self._write_blocks()
        self._write_results(b, n)
        code.close()
        return groups * items

    def _write_queries(self, b: str, n: str) -> None:
        """queries [row, size] in local memory, rotated and scaled."""
        code, q = self.code, self._step.inputs[0]
        for r in range(self._rows):
            code.open("")
            place = [(b, q.strides[0]), (f"(s0 + {r})", q.strides[1]), (n, self._size)]
            code.add(f"__global const float* from = p0 + {offset_of(place, q.offset)};")
            code.add(f"__local float* to = (__local float*)(queries + {r * self._parts});")
            turn, items = (f"(own + {r})", f"{self._op.scale!r}f"), ("l", self._items)
            write_rotated(code, self._op.place, self._step, self._size, turn, items)
            code.close()

    def _write_pointers(self, b: str, n: str) -> None:
        keys = self._step.inputs[1]
        group = f"({n} / {self._heads // self._groups})"
        cache = offset_of([(b, keys.strides[0]), (group, keys.strides[1])], 0)
        for index, name in ((1, "k"), (2, "v")):
            offset = self._step.inputs[index].offset
            kind = pointee_type(keys.buffer)
            self.code.add(f"__global const {kind}* {name} = p{index} + {offset} + {cache};")

    def _declare_sums(self, n: str) -> None:
        """a<r>: sums of values; top<r>: the largest score; sum<r>: of an item's weights."""
        code, op = self.code, self._op
        top, first = "-INFINITY", "0.0f"
        if op.sink:
            top = f"p{op.sink}[{self._step.inputs[op.sink].offset} + {n}]"
            first = "l == 0 ? 1.0f : 0.0f"
        elif op.smooth:
            top, first = "0.0f", "l == 0 ? 1.0f : 0.0f"
        for r in range(self._rows):
            code.add(f"{self._kind} a{r} = ({self._kind})(0.0f);")
            code.add(f"float top{r} = {top}, sum{r} = {first};")

    def _write_blocks(self) -> None:
        """All keys that one of the queries sees, a block of one for each item at a time."""
        code, rows, items = self.code, range(self._rows), self._items
        begin = f"max(0, own + 1 - {self._op.window})" if self._op.window else "0"
        code.add(f"const int end = own + {self._rows};")
        code.open(f"for (int t = {begin}; t < end; t += {items})")
        code.add(f"const int count = min({items}, end - t);")
        self._write_scores()
        code.add(*(f"w[{r * items} + l] = score{r};" for r in rows), BARRIER)
        half = items // 2
        while half:
            code.open(f"if (l < {half})")
            for r in rows:
                mine, other = f"w[{r * items} + l]", f"w[{r * items + half} + l]"
                code.add(f"{mine} = {larger(mine, other)};")
            code.close()
            code.add(BARRIER)
            half //= 2
        for r in rows:
            code.add(f"const float found{r} = w[{r * items}];")
        code.add(BARRIER)
        for r in rows:
            code.add(f"const float most{r} = {larger(f'top{r}', f'found{r}')};")
            code.add(f"const float fade{r} = ol_exp(top{r} - most{r});")
            code.add(
                f"const float e{r} = score{r} == -INFINITY ? 0.0f : ol_exp(score{r} - most{r});"
            )
            code.add(f"top{r} = most{r}; sum{r} = sum{r} * fade{r} + e{r};")
            code.add(f"a{r} *= fade{r}; w[{r * items} + l] = e{r};")
        code.add(BARRIER)
        code.open(f"for (int i = lane; i < count && lane < {self._lanes}; i += {self._lanes})")
        code.add(f"const {self._kind} value = {self._row('v', 'i', f'd * {self._vector}')};")
        for r in rows:
            code.add(f"a{r} = mad(({self._kind})(w[{r * items} + i]), value, a{r});")
        code.close()
        code.add(BARRIER)
        code.close()

    def _write_scores(self) -> None:
        """score<r>: of key t + l for each query; -INFINITY where the query does not see it."""
        code, op, kind = self.code, self._op, self._kind
        code.add(*(f"float score{r} = -INFINITY;" for r in range(self._rows)))
        code.open("if (l < count)")
        code.add(*(f"{kind} dot{r} = ({kind})(0.0f);" for r in range(self._rows)))
        code.open(f"for (int i = 0; i < {self._parts}; ++i)")
        code.add(f"const {kind} key = {self._row('k', 'l', f'i * {self._vector}')};")
        for r in range(self._rows):
            at = f"{r * self._parts} + i" if r else "i"
            code.add(f"dot{r} = mad(queries[{at}], key, dot{r});")
        code.close()
        for r in range(self._rows):
            score = fold_lanes(code, f"dot{r}", self._vector, lambda a, b: f"{a} + {b}")
            if op.softcap:
                score = f"{op.softcap!r}f * ol_tanh(({score}) * {1 / op.softcap!r}f)"
            limits = [f"t + l <= own + {r}"] if r + 1 < self._rows else []
            limits += [f"t + l > own + {r} - {op.window}"] if op.window and r else []
            condition = f"if ({' && '.join(limits)}) " if limits else ""
            code.add(f"{condition}score{r} = {score};")
        code.close()

    def _row(self, pointer: str, key: str, at: str) -> str:
        """A vector of a row of the cache as floats; rows begin where vectors of the device do."""
        buffer, vector = self._step.inputs[1].buffer, self._vector
        place = f"{pointer} + (t + {key}) * {self._size} + {at}"
        aligned = all(view.offset % vector == 0 for view in self._step.inputs[1:3])
        if buffer.dtype == HALF:
            name = (
                f"{'vloada' if aligned else 'vload'}_half{vector}" if vector > 1 else "vload_half"
            )
            return f"{name}(0, {place})"
        if vector == 1:
            return f"*({place})"
        return (
            f"*(__global const {self._kind}*)({place})" if aligned else f"vload{vector}(0, {place})"
        )

    def _write_results(self, b: str, n: str) -> None:
        """The sums of all items over their totals."""
        code, items, parts = self.code, self._items, self._parts
        y = self._step.output
        for r in range(self._rows):
            code.add(f"w[l] = sum{r}; shared[l] = a{r};", BARRIER)
            half = items // 2
            while half:
                code.open(f"if (l < {half})")
                code.add(f"w[l] += w[l + {half}];")
                code.close()
                code.add(BARRIER)
                half //= 2
            code.open(f"if (l < {parts})")
            code.add(f"for (int i = 1; i < {self._lanes}; ++i) a{r} += shared[l + i * {parts}];")
            place = [(b, self._new * self._heads * self._size)]
            place += [(f"(s0 + {r})", self._heads * self._size), (n, self._size)]
            at = f"{offset_of(place, y.offset)} + l * {self._vector}"
            result = f"p{len(self._step.inputs)}"
            code.add(*store(result, at, 1, self._vector, f"a{r} / w[0]"))
            code.close()
            code.add(BARRIER)
