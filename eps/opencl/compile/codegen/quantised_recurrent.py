"""An LSTM with 8-bit weights whose state is quantised at each step: DynamicQuantizeLSTM.

One work-item steps a direction for the whole batch, over which the range of a state is taken. The
states lie in the output, behind the sequence. Some sequences of the batch are multiplied at once,
by weights that are read once for them.

Products are sums of pairs of 16-bit integers, or of quads of bytes where the device has an
instruction for them. A byte of the state is then the number of steps above the lowest value, and
sums begin at that value times the sum of the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.codegen.kernel import Kernel, load, offset_of, store
from eps.opencl.compile.codegen.recurrent import PANEL, RecurrenceWriter
from eps.opencl.compile.expression import vector_type
from eps.opencl.compile.ir import QuantisedLstm
from eps.opencl.compile.views import Storage
from eps.opencl.target import MOST_LANES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

PAIR_LANES = 8
"""ol_madd gives no more sums at once."""
PAIR, QUAD = 2, 4
MOST_ROWS = 4
"""Sequences of the batch that share a pass over the weights."""
LEAST_RANGE = "1e-28f"
"""Of a state of zeros, whose steps are 0 by any scale."""


class QuantisedWriter(RecurrenceWriter):
    """Writes one LSTM; its last states are slots of the output behind the steps."""

    def __init__(self, op: QuantisedLstm, step: PlacedOp, target: Target) -> None:
        super().__init__(op, step, target)
        self.scales = op.scales
        self.steps, self.batch = self.views[0].shape[:2]
        recurrent = self._weights()
        narrow = bool(recurrent.min() >= -128 and recurrent.max() <= 127)
        self.weight_type = np.dtype(np.int8 if narrow else np.int16)
        quads = target.quad_sums and target.vector == MOST_LANES and narrow
        self.group = QUAD if quads else PAIR
        self.lanes = target.vector if quads else min(target.vector, PAIR_LANES)
        self.count = self._pad_count(recurrent.shape[1])
        self.groups = -(-self.hidden // self.group)
        self.rows = min(self.batch, MOST_ROWS)
        self.panel = _choose_panel(self.count // self.lanes, target.accumulators // self.rows)

    def kernel(self) -> Kernel:
        """The kernel: a task for each direction."""
        op, code, hidden = self.op, self.code, self.hidden
        depth = self.groups * self.group
        state_type = "uchar" if self.group == QUAD else "short"
        code.add("const int d = get_global_id(0);")
        code.add(f"float a[{self.rows * self.count}];")
        code.add(f"{state_type} q[{self.rows * depth}];")
        if depth > hidden:
            code.add(f"for (int k = 0; k < {self.rows * depth}; ++k) q[k] = 0;")
        code.open(f"for (int b = 0; b < {self.batch}; ++b)")
        code.open(f"for (int u = 0; u < {hidden}; ++u)")
        for name, index in (("h", op.initial_h), ("c", op.initial_c)):
            code.add(f"@y[{self._state(name)}] = {self._initial_value(index)};")
        code.close(2)
        self.blocks += self._pack()
        code.open(f"for (int t = 0; t < {self.steps}; ++t)")
        back = {True: f"{self.steps} - 1 - t", False: "t"}
        first, last = (back[r] for r in (op.reverse[0], op.reverse[-1]))
        code.add(f"const int s = {first if first == last else f'd ? {last} : {first}'};")
        self._write_range()
        whole, rest = divmod(self.batch, self.rows)
        code.open(f"for (int first = 0; first < {whole * self.rows}; first += {self.rows})")
        self._step_rows(self.rows)
        code.close()
        if rest:
            code.open("")
            code.add(f"const int first = {whole * self.rows};")
            self._step_rows(rest)
            code.close()
        code.close()
        operands = (*(v.buffer for v in self.views), *self.blocks, self.y.buffer)
        text = code.text().replace("@y", f"p{len(operands) - 1}")
        work = 2 * self.steps * self.batch * len(op.reverse) * self._weights().shape[1] * hidden
        return Kernel(text, operands, len(op.reverse), work=work)

    def _step_rows(self, rows: int) -> None:
        """A step of some sequences of the batch, from `first` on."""
        self._open_rows(rows)
        self._quantise_row()
        self.code.close()
        self._multiply_rows(rows)
        self._open_rows(rows)
        self._lstm_units()
        self.code.close()

    def _open_rows(self, rows: int) -> None:
        self.code.open(f"for (int r = 0; r < {rows}; ++r)")
        self.code.add("const int b = first + r;")

    def _state(self, name: str, b: str = "b") -> str:
        """Where a unit u of the last h or c is, in the output."""
        t, d, batch, u = self.y.strides
        slot = self.steps + ("h", "c").index(name)
        return offset_of([("d", d), (b, batch), ("u", u)], self.y.offset + slot * t)

    def _write_range(self) -> None:
        """What DynamicQuantizeLinear takes from the state of a direction: `scale` and `low`.

        A step is rint(h / scale), and never below the lowest value's: only the upper end is cut,
        at 255 steps above `low`.
        """
        code, kind, v = self.code, self.kind, self.vector
        code.add(f"{kind} least = 0.0f, most = 0.0f;")
        code.open(f"for (int b = 0; b < {self.batch}; ++b)")
        self._units()
        code.add(f"const {kind} h = {load('@y', self._state('h'), self.y.strides[3], v)};")
        if v > 1:
            code.add("least = select(least, h, h < least); most = select(most, h, h > most);")
        else:
            code.add("least = h < least ? h : least; most = h > most ? h : most;")
        code.close(2)
        low, high = (
            [f"{name}.s{i:x}" for i in range(v)] if v > 1 else [name] for name in ("least", "most")
        )
        code.add(f"float low = {low[0]}, high = {high[0]};")
        for one in low[1:]:
            code.add(f"low = {one} < low ? {one} : low;")
        for one in high[1:]:
            code.add(f"high = {one} > high ? {one} : high;")
        code.add(
            f"const float scale = ((high > {LEAST_RANGE} ? high : {LEAST_RANGE}) - low) / 255.0f;"
        )
        code.add("const float bottom = rint(low / scale), top = bottom + 255.0f;")

    def _quantise_row(self) -> None:
        """The state of one sequence as integers, less the zero point or in steps above `low`."""
        v, floats = self.vector, self.kind
        self._units()
        state = load("@y", self._state("h"), self.y.strides[3], v)
        self._let("steps", f"rint({state} / scale)")
        cut = f"select(steps, ({floats})(top), steps > top)"
        value = cut if v > 1 else "(steps > top ? top : steps)"
        kind = "int16"
        if self.group == QUAD:
            kind, value = "uint8", f"({value} - bottom)"
        to = f"r * {self.groups * self.group} + u"
        self.code.add(*store("q", to, 1, v, f"convert_{vector_type(kind, v)}({value})"))
        self.code.close()

    def _multiply_rows(self, rows: int) -> None:
        """a[r] = scales * (weights[d] @ q[r]) for each row, a panel of results at a time."""
        code, lanes, group = self.code, self.lanes, self.group
        at, depth, wide = len(self.views), self.groups * group, self.panel * lanes
        ints, narrow = vector_type("int32", lanes), self.weight_type == np.int8
        for number, vectors, begin in self._panels(self.count):
            code.open(f"for (int p = 0; p < {number}; ++p)")
            code.add(
                f"__global const {'char' if narrow else 'short'}* w = p{at}"
                f" + d * {depth * self.count} + {begin * depth} + p * {depth * wide};"
            )
            columns = [
                f"d * {self.count} + {begin + i * lanes} + p * {wide}" for i in range(vectors)
            ]
            for i, place in enumerate(columns):
                start = "0"
                if group == QUAD:
                    start = f"vload{lanes}(0, p{at + 2} + {place}) * (int)bottom"
                code.add(
                    *(f"{ints} s{r}_{i} = {start if not r else f's0_{i}'};" for r in range(rows))
                )
            code.open(f"for (int k = 0; k < {depth}; k += {group})")
            for r in range(rows):
                word = f"({ints})(as_int(vload{group}(0, q + k + {r * depth})))"
                code.add(f"const {self._words} x{r} = {self._as_words(word)};")
            for i in range(vectors):
                code.add(f"const {self._words} w{i} = {self._load_weights(i)};")
                for r in range(rows):
                    code.add(self._sum_up(f"s{r}_{i}", f"x{r}", f"w{i}"))
            code.add(f"w += {vectors * group * lanes};")
            code.close()
            for i, place in enumerate(columns):
                factor = f"f{i}"
                code.add(
                    f"const {vector_type('float32', lanes)} {factor} ="
                    f" {load(f'p{at + 1}', place, 1, lanes)} * scale;"
                )
                for r in range(rows):
                    to = f"{r * self.count + begin + i * lanes} + p * {wide}"
                    value = f"convert_{vector_type('float32', lanes)}(s{r}_{i}) * {factor}"
                    code.add(*store("a", to, 1, lanes, value))
            code.close()

    @property
    def _words(self) -> str:
        """The type of a vector of groups."""
        return f"int{self.lanes}" if self.group == QUAD else f"short{2 * self.lanes}"

    def _as_words(self, word: str) -> str:
        return word if self.group == QUAD else f"as_{self._words}({word})"

    def _load_weights(self, vector: int) -> str:
        width = self.group * self.lanes
        if self.group == QUAD:
            return f"vload{self.lanes}({vector}, (__global const int*)w)"
        weight = f"vload{width}({vector}, w)"
        return f"convert_{self._words}({weight})" if self.weight_type == np.int8 else weight

    def _sum_up(self, total: str, x: str, weight: str) -> str:
        if self.group == QUAD:
            return f"{total} = ol_quads({total}, {x}, {weight});"
        return f"{total} += ol_madd({x}, {weight});"

    def _pack(self) -> list[Storage]:
        """Weights [D, panels, groups of K, results, group], scales and sums of weights, padded.

        The latter two are [D, results]; there are no sums for pairs.
        """
        whole, count = self._weights(), self.count
        directions, columns = whole.shape[:2]
        padded = np.zeros((directions, count, self.groups * self.group), self.weight_type)
        padded[:, :columns, : self.hidden] = whole
        by_group = padded.reshape(directions, count, self.groups, self.group).transpose(0, 2, 1, 3)
        wide = self.panel * self.lanes
        panels = [
            by_group[:, :, s : s + wide].reshape(directions, -1) for s in range(0, count, wide)
        ]
        packed = np.ascontiguousarray(np.concatenate(panels, axis=1))
        scales = np.zeros((directions, count), np.float32)
        scales[:, :columns] = self.scales
        storages = [
            Storage(packed.size, self.weight_type.name, packed),
            Storage(scales.size, "float32", scales),
        ]
        if self.group == QUAD:
            sums = padded.sum(axis=2, dtype=np.int32)
            storages.append(Storage(sums.size, "int32", sums))
        return storages

    def _private_name(self, name: str, gate: int = 0) -> str:
        if name == "c":
            return load("@y", self._state("c"), self.y.strides[3], self.vector)
        at = f"r * {self.count} + u + {gate * self.hidden}"
        return load(name, at, 1, self.vector)

    def _emit(self, state: Mapping[str, str]) -> None:
        """Keep the new states, and write the hidden one as this step's result."""
        t, d, b, u = self.y.strides
        at = offset_of([("s", t), ("d", d), ("b", b), ("u", u)], self.y.offset)
        for name, value in state.items():
            self.code.add(*store("@y", self._state(name), u, self.vector, value))
        self.code.add(*store("@y", at, u, self.vector, state["h"]))
        self.code.close()


def _choose_panel(vectors: int, most: int) -> int:
    """Vectors of a panel: as many as there are registers for, and no rest if that costs few."""
    most = max(1, min(most, PANEL, vectors))
    even = [n for n in range(most, most // 2, -1) if vectors % n == 0]
    return even[0] if even else most


def quantised_lstm_kernel(op: QuantisedLstm, step: PlacedOp, target: Target) -> Kernel:
    """Directions in parallel, steps one after another."""
    return QuantisedWriter(op, step, target).kernel()


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {QuantisedLstm: quantised_lstm_kernel}
