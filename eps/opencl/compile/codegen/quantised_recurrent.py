"""An LSTM with 8-bit weights whose state is quantised at each step: DynamicQuantizeLSTM.

One work-item steps a direction for the whole batch, over which the range of a state is taken. The
states lie in the output, behind the sequence; the products are sums of pairs of 16-bit integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.codegen.kernel import Kernel, load, offset_of, store
from eps.opencl.compile.codegen.recurrent import PANEL, RecurrenceWriter
from eps.opencl.compile.expression import vector_type
from eps.opencl.compile.ir import QuantisedLstm
from eps.opencl.compile.views import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

MOST_LANES = 8
"""ol_madd gives no more sums at once."""
LEAST_RANGE = "1e-28f"
"""Of a state of zeros, whose steps are 0 by any scale."""


class QuantisedWriter(RecurrenceWriter):
    """Writes one LSTM; its last states are slots of the output behind the steps."""

    def __init__(self, op: QuantisedLstm, step: PlacedOp, target: Target) -> None:
        super().__init__(op, step, target)
        self.scales = op.scales
        self.lanes = min(target.vector, MOST_LANES)
        self.steps, self.batch = self.views[0].shape[:2]

    def kernel(self) -> Kernel:
        """The kernel: a task for each direction."""
        op, code, hidden = self.op, self.code, self.hidden
        rows = self._weights().shape[1]
        code.add("const int d = get_global_id(0);")
        code.add(f"float a[{self._pad_count(rows) + self.lanes}];")
        code.add(f"int q[{-(-hidden // 2)}];")
        code.open(f"for (int b = 0; b < {self.batch}; ++b)")
        code.open(f"for (int u = 0; u < {hidden}; ++u)")
        for name, index in (("h", op.initial_h), ("c", op.initial_c)):
            code.add(f"@y[{self._state(name)}] = {self._initial_value(index)};")
        code.close(2)
        code.open(f"for (int t = 0; t < {self.steps}; ++t)")
        back = {True: f"{self.steps} - 1 - t", False: "t"}
        first, last = (back[r] for r in (op.reverse[0], op.reverse[-1]))
        code.add(f"const int s = {first if first == last else f'd ? {last} : {first}'};")
        self._write_range()
        code.open(f"for (int b = 0; b < {self.batch}; ++b)")
        self._quantise_row()
        self._lstm()
        code.close(2)
        operands = (*(v.buffer for v in self.views), *self.blocks, self.y.buffer)
        text = code.text().replace("@y", f"p{len(operands) - 1}")
        work = 2 * self.steps * self.batch * len(op.reverse) * rows * hidden
        return Kernel(text, operands, len(op.reverse), work=work)

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
        code.add("const float top = rint(low / scale) + 255.0f;")

    def _quantise_row(self) -> None:
        """The state of one sequence as pairs of 16-bit integers, less the zero point."""
        code, v = self.code, self.vector
        self._units()
        state = load("@y", self._state("h"), self.y.strides[3], v)
        self._let("steps", f"rint({state} / scale)")
        upper = f"select(steps, ({self.kind})(top), steps > top)"
        code.add(*store("a", "u", 1, v, upper if v > 1 else "(steps > top ? top : steps)"))
        code.close()
        code.add(f"a[{self.hidden}] = 0.0f;")
        code.open(f"for (int k = 0; k < {-(-self.hidden // 2)}; ++k)")
        code.add("q[k] = ol_pair((int)a[2 * k], (int)a[2 * k + 1]);")
        code.close()

    def _product(self, source: str, first: int, last: int) -> None:
        """a[first:last] = scales * (weights[d, first:last] @ q), a panel of results at a time."""
        del source  # it is q
        code, count, lanes = self.code, self._pad_count(last - first), self.lanes
        packed, scales = self._pack(first, last, count)
        self.blocks += [packed, scales]
        at = len(self.views) + len(self.blocks) - 2
        pairs, wide = -(-self.hidden // 2), PANEL * lanes
        ints, shorts = vector_type("int32", lanes), f"short{2 * lanes}"
        pointer = "char" if packed.dtype == "int8" else "short"
        for number, vectors, begin in self._panels(count):
            code.open(f"for (int p = 0; p < {number}; ++p)")
            code.add(
                f"__global const {pointer}* w = p{at} + d * {pairs * 2 * count}"
                f" + {begin * pairs * 2} + p * {pairs * 2 * wide};"
            )
            names = [f"s{i}" for i in range(vectors)]
            code.add(f"{ints} {', '.join(f'{n} = 0' for n in names)};")
            code.open(f"for (int k = 0; k < {pairs}; ++k)")
            code.add(f"const {shorts} x = as_{shorts}(({ints})(q[k]));")
            for i, name in enumerate(names):
                weight = f"vload{2 * lanes}(0, w + {2 * i * lanes})"
                if pointer == "char":
                    weight = f"convert_{shorts}({weight})"
                code.add(f"{name} += ol_madd(x, {weight});")
            code.add(f"w += {vectors * 2 * lanes};")
            code.close()
            for i, name in enumerate(names):
                to = f"{first + begin + i * lanes} + p * {wide}"
                factor = load(
                    f"p{at + 1}", f"d * {count} + {begin + i * lanes} + p * {wide}", 1, lanes
                )
                floats = vector_type("float32", lanes)
                value = f"convert_{floats}({name}) * ({factor} * scale)"
                code.add(*store("a", to, 1, lanes, value))
            code.close()

    def _pack(self, first: int, last: int, count: int) -> tuple[Storage, Storage]:
        """Weights [D, panels, pairs of K, results, 2] and scales [D, results], padded."""
        whole = self._weights()[:, first:last]
        directions, pairs = whole.shape[0], -(-self.hidden // 2)
        narrow = whole.min() >= -128 and whole.max() <= 127
        dtype = np.int8 if narrow else np.int16
        padded = np.zeros((directions, count, 2 * pairs), dtype)
        padded[:, : last - first, : self.hidden] = whole
        by_pair = padded.reshape(directions, count, pairs, 2).transpose(0, 2, 1, 3)
        wide = PANEL * self.lanes
        panels = [
            by_pair[:, :, s : s + wide].reshape(directions, -1) for s in range(0, count, wide)
        ]
        packed = np.ascontiguousarray(np.concatenate(panels, axis=1))
        scales = np.zeros((directions, count), np.float32)
        scales[:, : last - first] = self.scales[:, first:last]
        return (
            Storage(packed.size, np.dtype(dtype).name, packed),
            Storage(scales.size, "float32", scales),
        )

    def _private_name(self, name: str, gate: int = 0) -> str:
        if name == "c":
            return load("@y", self._state("c"), self.y.strides[3], self.vector)
        return super()._private_name(name, gate)

    def _emit(self, state: Mapping[str, str]) -> None:
        """Keep the new states, and write the hidden one as this step's result."""
        t, d, b, u = self.y.strides
        at = offset_of([("s", t), ("d", d), ("b", b), ("u", u)], self.y.offset)
        for name, value in state.items():
            self.code.add(*store("@y", self._state(name), u, self.vector, value))
        self.code.add(*store("@y", at, u, self.vector, state["h"]))
        self.code.close()


def quantised_lstm_kernel(op: QuantisedLstm, step: PlacedOp, target: Target) -> Kernel:
    """Directions in parallel, steps and sequences of the batch one after another."""
    return QuantisedWriter(op, step, target).kernel()


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {QuantisedLstm: quantised_lstm_kernel}
