"""Recurrent networks: one work-item steps a direction of a sequence, its state in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.codegen.kernel import Code, Kernel, load, offset_of, store
from eps.opencl.compile.views import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from eps.opencl.compile.ir import Recurrence
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]

PANEL = 8
"""Most vectors of results that one pass over the state accumulates."""
ACTIVATIONS: Mapping[str, str] = {
    "Sigmoid": "ol_sigmoid({0})",
    "Tanh": "ol_tanh({0})",
    "Relu": "fmax({0}, 0.0f)",
    "HardSigmoid": "clamp(0.2f * {0} + 0.5f, 0.0f, 1.0f)",
}


class RecurrenceWriter:
    """Writes one recurrence.

    Attributes:
        blocks: The packed weights, parameters after the inputs'.
        panel: How many vectors of results one pass over the state accumulates.
        units: Of the state, that a work-item computes; it has them from 0 on in what it keeps.
        unit: C name of the index of one of them in the whole state.
        block: C name of the index of its weights among those of all directions.
    """

    def __init__(self, op: Recurrence, step: PlacedOp, target: Target) -> None:
        self.op, self.views, self.y = op, list(step.inputs), step.output
        self.code = Code()
        self.hidden = self.units = op.output.shape[3]
        self.unit, self.block = "u", "d"
        self.lanes = target.vector
        self.vector = self._choose_vector()
        self.blocks: list[Storage] = []
        self.panel = PANEL

    def _choose_vector(self) -> int:
        """Lanes of the vectors that the units are computed in."""
        vector = self.lanes
        while self.units % vector:
            vector //= 2
        return vector

    @property
    def kind(self) -> str:
        """The type of some units."""
        return f"float{self.vector}" if self.vector > 1 else "float"

    def kernel(self) -> Kernel:
        """The kernel: a task for each direction of each sequence."""
        op, code = self.op, self.code
        steps, batch = self.views[0].shape[:2]
        directions = len(op.reverse)
        cells = ["h", *(["c"] if op.kind == "LSTM" else [])]
        code.add("const int id = get_global_id(0);")
        code.add(f"const int d = id / {batch}, b = id % {batch};")
        rows = self._weights().shape[1]
        code.add(f"float {', '.join(f'{c}[{self.hidden}]' for c in cells)};")
        code.add(f"float a[{self._pad_count(rows) + self.lanes}];")
        for name, index in zip(cells, (op.initial_h, op.initial_c), strict=False):
            self._start(name, index)
        self._read_length()
        code.open("for (int t = 0; t < n; ++t)")
        code.add(f"const int s = {self._place('t', 'n')};")
        self._step()
        code.close()
        self._finish(cells, steps)
        operands = (*(v.buffer for v in self.views), *self.blocks, self.y.buffer)
        text = code.text().replace("@y", f"p{len(operands) - 1}")
        work = 2 * steps * batch * directions * rows * self.hidden
        return Kernel(text, operands, directions * batch, checks=bool(op.lengths), work=work)

    def _read_length(self) -> None:
        """The steps of this sequence: `n`."""
        steps, lengths = self.views[0].shape[0], self.op.lengths
        self.code.add(f"int n = {steps};")
        if lengths:
            view = self.views[lengths]
            self.code.add(f"n = p{lengths}[{offset_of([('b', view.strides[0])], view.offset)}];")
            self.code.add(f"if (n < 0 || n > {steps}) {{ *wrong = 1; n = 0; }}")

    def _place(self, turn: str, count: str) -> str:
        """Where the values of a turn are in a sequence of `count`."""
        back = {True: f"{count} - 1 - {turn}", False: turn}
        first, last = (back[r] for r in (self.op.reverse[0], self.op.reverse[-1]))
        return first if first == last else f"d ? {last} : {first}"

    def _step(self) -> None:
        {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.op.kind]()

    def _weights(self) -> Array:
        weights = self.views[1].buffer.constant
        assert weights is not None, "lowering takes constant weights"
        return weights.reshape(self.views[1].shape)

    def _pad_count(self, count: int) -> int:
        return -(-count // self.lanes) * self.lanes

    def _start(self, name: str, index: int) -> None:
        self.code.open(f"for (int u = 0; u < {self.hidden}; ++u)")
        self.code.add(f"{name}[u] = {self._initial_value(index)};")
        self.code.close()

    def _initial_value(self, index: int, unit: str = "u") -> str:
        """A unit of the state that input `index` gives; 0 without one."""
        if not index:
            return "0.0f"
        view = self.views[index]
        terms = zip(("d", "b", unit), view.strides, strict=True)
        return f"p{index}[{offset_of(terms, view.offset)}]"

    def _product(self, source: str, first: int, last: int) -> None:
        """a[first:last] = weights[d, first:last] @ source, a panel of results at a time."""
        code, count = self.code, self._pad_count(last - first)
        whole = self._weights()[:, first:last]
        padded = np.zeros((whole.shape[0], self.hidden, count), np.float32)
        padded[:, :, : last - first] = whole.transpose(0, 2, 1)
        wide = self.panel * self.lanes
        starts = range(0, count, wide)
        panels = [padded[:, :, s : s + wide] for s in starts]
        packed = np.concatenate([p.reshape(p.shape[0], -1) for p in panels], axis=1)
        self.blocks.append(Storage(packed.size, "float32", np.ascontiguousarray(packed)))
        pointer = f"p{len(self.views) + len(self.blocks) - 1}"
        for number, vectors, begin in self._panels(count):
            code.open(f"for (int p = 0; p < {number}; ++p)")
            code.add(
                f"__global const float* w = {pointer} + {self.block} * {self.hidden * count}"
                f" + {begin * self.hidden} + p * {self.hidden * wide};"
            )
            names = [f"s{i}" for i in range(vectors)]
            code.add(f"float{self.lanes} {', '.join(f'{n} = 0.0f' for n in names)};")
            code.open(f"for (int k = 0; k < {self.hidden}; ++k)")
            code.add(f"const float x = {source}[k];")
            for i, name in enumerate(names):
                weight = f"vload{self.lanes}(0, w + {i * self.lanes})"
                code.add(f"{name} = mad((float{self.lanes})(x), {weight}, {name});")
            code.add(f"w += {vectors * self.lanes};")
            code.close()
            for i, name in enumerate(names):
                at = f"a + {first + begin + i * self.lanes} + p * {wide}"
                code.add(f"vstore{self.lanes}({name}, 0, {at});")
            code.close()

    def _panels(self, count: int) -> Iterator[tuple[int, int, int]]:
        """Panels of equal width in `count` results: how many, vectors in each, the first result."""
        wide = self.panel * self.lanes
        full, rest = divmod(count, wide)
        if full:
            yield full, self.panel, 0
        if rest:
            yield 1, rest // self.lanes, full * wide

    def _units(self) -> None:
        self.code.open(f"for (int u = 0; u < {self.units}; u += {self.vector})")

    def _gate(self, gate: int, *, recurrent: bool = True) -> str:
        """Input and recurrent product of a gate, at the units u."""
        view, gates = self.views[0], self._weights().shape[1] // self.units
        inner = view.strides[2]
        terms = [("s", view.strides[0]), ("b", view.strides[1])]
        terms += [("d", gates * self.hidden * inner), (self.unit, inner)]
        at = offset_of(terms, view.offset + gate * self.hidden * inner)
        projected = load("p0", at, inner, self.vector)
        return f"{projected} + {self._private_name('a', gate)}" if recurrent else projected

    def _private_name(self, name: str, gate: int = 0) -> str:
        at = f"u + {gate * self.units}" if gate else self.unit if name == "h" else "u"
        return load(name, at, 1, self.vector)

    def _guard_text(self, which: int, text: str) -> str:
        return ACTIVATIONS[self.op.activations[which]].format(f"({text})")

    def _let(self, name: str, text: str) -> None:
        self.code.add(f"const {self.kind} {name} = {text};")

    def _emit(self, state: Mapping[str, str]) -> None:
        """Keep the new state, and write the hidden one as this step's result."""
        for name, value in state.items():
            self.code.add(*store(name, "u", 1, self.vector, value))
        t, d, b, u = self.y.strides
        at = offset_of([("s", t), ("d", d), ("b", b), ("u", u)], self.y.offset)
        self.code.add(*store("@y", at, u, self.vector, state["h"]))
        self.code.close()

    def _peephole(self, gate: int, state: str) -> str:
        index = self.op.peepholes
        if not index:
            return ""
        view = self.views[index]
        terms = [("d", view.strides[0]), (self.unit, view.strides[1])]
        at = offset_of(terms, view.offset + gate * self.hidden * view.strides[1])
        return f" + {state} * {load(f'p{index}', at, view.strides[1], self.vector)}"

    def _lstm(self) -> None:
        self._product("h", 0, 4 * self.units)
        self._lstm_units()

    def _lstm_units(self) -> None:
        """The gates of an LSTM, and its new state, once products with the old one are in `a`."""
        self._units()
        self._let("before", self._private_name("c"))
        self._let("i", self._guard_text(0, self._gate(0) + self._peephole(0, "before")))
        self._let("f", self._guard_text(0, self._gate(2) + self._peephole(2, "before")))
        self._let("g", self._guard_text(1, self._gate(3)))
        self._let("cell", "f * before + i * g")
        self._let("o", self._guard_text(0, self._gate(1) + self._peephole(1, "cell")))
        self._let("out", f"o * {self._guard_text(2, 'cell')}")
        self._emit({"c": "cell", "h": "out"})

    def _gru(self) -> None:
        """Gates z, r, h; the reset is before the product with the state, or after."""
        hidden, op = self.hidden, self.op
        if op.linear_before_reset:
            self._product("h", 0, 3 * self.units)
            self._units()
            inner = self._private_name("a", 2)
            if op.hidden_bias:
                view = self.views[op.hidden_bias]
                terms = zip(("d", self.unit), view.strides, strict=True)
                at = offset_of(terms, view.offset)
                inner += f" + {load(f'p{op.hidden_bias}', at, view.strides[1], self.vector)}"
            self._let("r", self._guard_text(0, self._gate(1)))
            new = f"{self._gate(2, recurrent=False)} + r * ({inner})"
        else:
            self._product("h", 0, 2 * hidden)
            self.code.add(f"float q[{hidden}];")
            self._units()
            self._let("r", self._guard_text(0, self._gate(1)))
            self.code.add(*store("q", "u", 1, self.vector, f"(r * {self._private_name('h')})"))
            self.code.close()
            self._product("q", 2 * hidden, 3 * hidden)
            self._units()
            new = self._gate(2)
        self._let("z", self._guard_text(0, self._gate(0)))
        self._let("n1", self._guard_text(1, new))
        self._let("out", f"(1.0f - z) * n1 + z * {self._private_name('h')}")
        self._emit({"h": "out"})

    def _rnn(self) -> None:
        self._product("h", 0, self.units)
        self._units()
        self._let("out", self._guard_text(0, self._gate(0)))
        self._emit({"h": "out"})

    def _finish(self, cells: list[str], steps: int) -> None:
        """Zeros after the end of a short sequence, then the last states."""
        code = self.code
        t, d, b, u = self.y.strides
        if self.op.lengths:
            code.open(f"for (int s = n; s < {steps}; ++s)")
            at = offset_of([("s", t), ("d", d), ("b", b), ("u", u)], self.y.offset)
            code.add(f"for (int u = 0; u < {self.hidden}; ++u) @y[{at}] = 0.0f;")
            code.close()
        for i, name in enumerate(cells):
            at = offset_of([("d", d), ("b", b), ("u", u)], self.y.offset + (steps + i) * t)
            code.add(f"for (int u = 0; u < {self.hidden}; ++u) @y[{at}] = {name}[u];")
