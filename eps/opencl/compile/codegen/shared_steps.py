"""Recurrent networks of few sequences, whose steps several work-items of a CPU share.

Each work-item has a part of the state's units and, in the cache of its core, their weights. A step
needs the whole state of the step before it, so all wait for the last of them. As in chains, an item
that has not begun holds nothing that others wait for: a part of a step belongs to the first item
that takes it, and one item alone comes to the end (docs/adr/0059-one-launch-for-many-kernels.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eps.opencl.compile.codegen.chains import MOST_WAITS
from eps.opencl.compile.codegen.kernel import ITEM, Kernel, load, offset_of, store
from eps.opencl.compile.codegen.recurrent import RecurrenceWriter
from eps.opencl.compile.ir import Recurrence
from eps.opencl.compile.views import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]

MOST_PARTS = 8
LEAST_OF_A_PART = 1 << 14
"""Products of a part in one step: 1.3 us, which is about what waiting for the others takes."""
LEAST_WORK = 1 << 20
"""Products of all steps: the counters start as zeros, which is another launch."""
LEAST_LANES = 4
"""The units of a part are whole vectors."""
LINE = 16
"""Numbers in a cache line, so that counters are not in one."""
WAITS_OF_A_PRODUCT = 1 / 64
"""Turns of waiting, about 45 ns each, for each product of a part: eight times what it takes."""


def choose_parts(op: Recurrence, target: Target) -> int:
    """How many work-items share the steps of a direction of a sequence; 1 where it does not pay.

    A GRU whose reset is before the product has two products one after another in a step.
    """
    directions, rows, hidden = op.inputs[1].shape
    steps, batch = op.inputs[0].shape[:2]
    resets_before = op.kind == "GRU" and not op.linear_before_reset
    if not target.sees_stores_in_order or resets_before or steps * rows * hidden < LEAST_WORK:
        return 1
    cores = target.units // (directions * batch)
    most = min(cores, MOST_PARTS, rows * hidden // LEAST_OF_A_PART)
    return next((n for n in range(most, 1, -1) if hidden % (n * LEAST_LANES) == 0), 1)


class SharedWriter(RecurrenceWriter):
    """Writes one recurrence; what is kept of the state lies in the output."""

    def __init__(self, op: Recurrence, step: PlacedOp, target: Target, parts: int) -> None:
        super().__init__(op, step, target)
        self.parts = parts
        self.units = self.hidden // parts
        self.unit, self.block = "v", "block"
        self.vector = self._choose_vector()
        self.steps, self.batch = self.views[0].shape[:2]

    def _weights(self) -> Array:
        """Those of each part: [D * parts, gates * units, H]."""
        whole = super()._weights()
        directions, _, hidden = whole.shape
        by_part = whole.reshape(directions, -1, self.parts, self.units, hidden).swapaxes(1, 2)
        return by_part.reshape(directions * self.parts, -1, hidden)

    def kernels(self) -> list[Kernel]:
        """One that zeroes the counters, and one whose items take parts of steps by them."""
        op, code, parts = self.op, self.code, self.parts
        sequences, room = len(op.reverse) * self.batch, (parts + 1) * LINE
        counters = Storage(sequences * room, "int32")
        rows = self._weights().shape[1]
        code.add(f"const int item = {ITEM}, id = item / {parts}, own = item % {parts};")
        code.add(f"const int d = id / {self.batch}, b = id % {self.batch};")
        code.add(f"volatile __global int* done = @counters + id * {room};")
        code.add(f"float h[{self.hidden}]{f', c[{self.units}]' if op.kind == 'LSTM' else ''};")
        code.add(f"float a[{self._pad_count(rows) + self.lanes}];")
        self._read_length()
        code.open("for (int t = 0; t <= n; ++t)")
        code.add(f"const int s = {self._place('t', 'n')}, last = {self._place('(t - 1)', 'n')};")
        code.open(f"for (int turn = 0, has_state = 0; turn < {parts}; ++turn)")
        code.add(f"const int part = (own + turn) % {parts}, first = part * {self.units};")
        code.add(f"volatile __global int* taken = done + (part + 1) * {LINE};")
        code.add("if (*taken != t || atomic_cmpxchg(taken, t, t + 1) != t) continue;")
        code.add(f"const int block = d * {parts} + part;")
        self._load_state()
        code.open("if (t < n)")
        self._step()
        code.close()
        code.open("else")
        self._end()
        code.close()
        code.add("mem_fence(CLK_GLOBAL_MEM_FENCE);", "atomic_inc(done);")
        code.close()
        code.open(f"for (int waits = 0; *done < {parts} * (t + 1); ++waits)")
        waits = max(MOST_WAITS, int(rows * self.hidden * WAITS_OF_A_PRODUCT))
        code.add(f"if (waits == {waits}) return;", "ol_pause();")
        code.close()
        code.add("mem_fence(CLK_GLOBAL_MEM_FENCE);")
        code.close()
        operands = (*(v.buffer for v in self.views), *self.blocks, counters, self.y.buffer)
        text = code.text().replace("@y", f"p{len(operands) - 1}")
        text = text.replace("@counters", f"p{len(operands) - 2}")
        work = 2 * self.steps * sequences * rows * parts * self.hidden
        zeros = f"  for (int i = 0; i < {counters.size}; ++i) p0[i] = 0;"
        return [
            Kernel(zeros, (counters,), 1, label="counters_"),
            Kernel(
                text, operands, sequences * parts, checks=bool(op.lengths), work=work, written=2
            ),
        ]

    def _locate(self, slot: str | int, unit: str) -> str:
        """Where a unit is in the output, at a step or behind them: h, then c."""
        t, d, b, u = self.y.strides
        terms, offset = [("d", d), ("b", b), (unit, u)], self.y.offset
        if isinstance(slot, int):
            return offset_of(terms, offset + (self.steps + slot) * t)
        return offset_of([(slot, t), *terms], offset)

    def _load_state(self) -> None:
        """The whole of h, once in a step, and the part of c."""
        code, stride = self.code, self.y.strides[3]
        code.open("if (!has_state)")
        code.add("has_state = 1;")
        lanes = next(n for n in (16, 8, 4) if self.hidden % n == 0)
        code.open("if (t)")
        code.open(f"for (int u = 0; u < {self.hidden}; u += {lanes})")
        value = load("@y", self._locate("last", "u"), stride, lanes)
        code.add(*store("h", "u", 1, lanes, value))
        code.close(2)
        code.open("else")
        self._start("h", self.op.initial_h)
        code.close(2)
        if self.op.kind != "LSTM":
            return
        code.open(f"for (int u = 0; u < {self.units}; ++u)")
        code.add("const int v = first + u;")
        initial = self._initial_value(self.op.initial_c, self.unit)
        code.add(f"c[u] = t ? @y[{self._locate(1, self.unit)}] : {initial};")
        code.close()

    def _units(self) -> None:
        super()._units()
        self.code.add("const int v = first + u;")

    def _emit(self, state: Mapping[str, str]) -> None:
        """Write the new hidden state as this step's result, and keep that of the cell."""
        stride = self.y.strides[3]
        places = {"h": self._locate("s", self.unit), "c": self._locate(1, self.unit)}
        for name, value in state.items():
            self.code.add(*store("@y", places[name], stride, self.vector, value))
        self.code.close()

    def _end(self) -> None:
        """Zeros after the end of a short sequence, then the last states."""
        code = self.code
        code.open(f"for (int u = 0; u < {self.units}; ++u)")
        code.add("const int v = first + u;")
        if self.op.lengths:
            code.add(
                f"for (int e = n; e < {self.steps}; ++e) @y[{self._locate('e', self.unit)}] = 0.0f;"
            )
        code.add(f"@y[{self._locate(0, self.unit)}] = h[v];")
        if self.op.kind == "LSTM":
            code.add(f"@y[{self._locate(1, self.unit)}] = c[u];")
        code.close()


def recurrence_kernels(op: Recurrence, step: PlacedOp, target: Target) -> list[Kernel]:
    """Directions and sequences of a batch in parallel, steps one after another."""
    parts = choose_parts(op, target)
    if parts > 1:
        return SharedWriter(op, step, target, parts).kernels()
    return [RecurrenceWriter(op, step, target).kernel()]


GENERATORS: Mapping[type[Op], Callable[..., list[Kernel]]] = {Recurrence: recurrence_kernels}
