"""How a work-group brings its operands from global to local memory: side by side, then in turns."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.codegen.group_tiling import SKEW
from eps.opencl.compile.codegen.kernel import floats, load, load_packed, offset_of, pointee_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.kernel import Code
    from eps.opencl.compile.codegen.tile import Contraction
    from eps.opencl.compile.tilings import GroupTile

    Array = np.ndarray[Any, np.dtype[Any]]

WIDE = 4
"""Floats that an item loads at once where they are contiguous."""


def pack_for_groups(weights: Array, tile: GroupTile, dtype: type[np.generic]) -> Array:
    """[b, i, j, k, n] as [b, panel, summands, channels of the panel], filled up with zeros."""
    b, n = weights.shape[0], weights.shape[-1]
    flat = weights.reshape(b, -1, n)
    depth = -(-flat.shape[1] // tile.step) * tile.step
    panels = -(-n // tile.channels)
    padded = np.zeros((b, depth, panels * tile.channels), dtype)
    padded[:, : flat.shape[1], :n] = flat
    apart = padded.reshape(b, depth, panels, tile.channels).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(apart).reshape(-1)


class PixelLoads:
    """The left operand: [summands, pixels] in local memory, gathered through window and strides."""

    def __init__(
        self, code: Code, spec: Contraction, tile: GroupTile, batch: Sequence[str]
    ) -> None:
        """Write what stays the same for all steps: where each of an item's pixels begins."""
        self._code, self._tile, self._sizes = code, tile, spec.sizes
        self._steps = spec.x_steps
        _, offset, strides = spec.x
        self._along = spec.x_steps[4] == 1
        common = gcd(offset, *strides, *spec.x_steps[:4])
        wide = self._along and common % WIDE == 0 and spec.sizes.depth % WIDE == 0
        self._vector = WIDE if wide else 1
        self._in_step = tile.step // self._vector
        self._total = tile.rows * self._in_step
        self._windowed = spec.sizes.taps != (1, 1)
        code.add(f"__global const float* x = p0 + {_at(batch, strides, offset)};")
        for number in range(self._count):
            self._place(number)

    @property
    def _count(self) -> int:
        """Loads of an item in a step."""
        return -(-self._total // self._tile.items)

    def _place(self, number: int) -> None:
        """Pixel and summand of one load: adjacent items take what is adjacent in memory."""
        sizes, tile = self._sizes, self._tile
        at = f"(l + {number * tile.items})"
        if self._along:
            pixel, summand = f"{at} / {self._in_step}", f"{at} % {self._in_step}"
        else:
            pixel, summand = f"{at} % {tile.rows}", f"{at} / {tile.rows}"
        self._code.add(
            f"const int am{number} = {pixel}, ak{number} = {summand} * {self._vector};",
            f"const int ap{number} = min(m0 + am{number}, {sizes.pixels - 1});",
        )
        row, column = pixel_place(sizes.rows, sizes.columns, f"ap{number}")
        down, right = self._steps[:2]
        self._code.add(f"const int ax{number} = {offset_of([(row, down), (column, right)])};")

    def declare(self) -> None:
        """Registers for a step's part."""
        names = ", ".join(f"av{number}" for number in range(self._count))
        self._code.add(f"{floats(self._vector)} {names};")

    def fetch(self, k0: str) -> None:
        """Load the part of the step at summand `k0` into registers."""
        code, sizes, tile = self._code, self._sizes, self._tile
        code.open("")
        same_tap = self._windowed and sizes.depth % tile.step == 0
        if same_tap:
            code.add(f"const int k1 = {k0}, tap = k1 / {sizes.depth}, d0 = k1 % {sizes.depth};")
            code.add(f"__global const float* xt = x + {self._tap_offset('tap')};")
        for number in range(self._count):
            self._fetch_one(number, k0, same_tap=same_tap)
        code.close()

    def _fetch_one(self, number: int, k0: str, *, same_tap: bool) -> None:
        code, sizes = self._code, self._sizes
        step = self._steps[4]
        partial = self._total % self._tile.items and number == self._count - 1
        if partial:
            code.open(f"if (l < {self._total - number * self._tile.items})")
        summand = f"({k0} + ak{number})"
        inside = ""
        if same_tap:
            at = f"xt + ax{number} + {_times(f'(d0 + ak{number})', step)}"
        else:
            guarded = sizes.summands % self._tile.step != 0
            inside = f"{summand} < {sizes.summands} ? " if guarded else ""
            at = f"x + ax{number} + {_times(summand, step)}"
            if self._windowed:
                code.add(f"const int t{number} = {summand} / {sizes.depth};")
                place = _times(f"({summand} % {sizes.depth})", step)
                at = f"x + ax{number} + {self._tap_offset(f't{number}')} + {place}"
        text = f"*(__global const float4*)({at})" if self._vector > 1 else f"*({at})"
        zero = f" : {'(float4)(0.0f)' if self._vector > 1 else '0.0f'}" if inside else ""
        code.add(f"av{number} = {inside}{text}{zero};")
        if partial:
            code.close()

    def _tap_offset(self, tap: str) -> str:
        down, right = self._steps[2:4]
        wide = self._sizes.taps[1]
        if wide == 1:
            return f"({offset_of([(tap, down)])})"
        if self._sizes.taps[0] == 1:
            return f"({offset_of([(tap, right)])})"
        return f"({offset_of([(f'({tap} / {wide})', down), (f'({tap} % {wide})', right)])})"

    def keep(self) -> None:
        """Store the part from registers into local memory."""
        pitch = self._tile.rows + SKEW
        for number in range(self._count):
            partial = self._total % self._tile.items and number == self._count - 1
            guard = f"if (l < {self._total - number * self._tile.items}) " if partial else ""
            lanes = [f".s{i}" for i in range(self._vector)] if self._vector > 1 else [""]
            stores = [
                f"al[(ak{number} + {i}) * {pitch} + am{number}] = av{number}{lane};"
                for i, lane in enumerate(lanes)
            ]
            self._code.add(f"{guard}{{ {' '.join(stores)} }}")


class WeightLoads:
    """The right operand: [summands, channels] in local memory."""

    def __init__(
        self, code: Code, spec: Contraction, tile: GroupTile, batch: Sequence[str], panel: str
    ) -> None:
        """Write where the group's channels begin."""
        self._code, self._tile, self._sizes = code, tile, spec.sizes
        self._buffer, offset, strides = spec.w
        self._packed = bool(spec.w_steps[3])
        self._step = spec.w_steps[2]
        common = gcd(offset, *strides, self._step, spec.sizes.width)
        self._vector = WIDE if self._packed or common % WIDE == 0 else 1
        self._in_row = tile.channels // self._vector
        self._total = tile.step * self._in_row
        base = _at(batch, strides, offset)
        start = f" + {panel} * {spec.w_steps[3]}" if self._packed else ""
        code.add(f"__global const {pointee_type(self._buffer)}* w = p1 + {base}{start};")
        if not self._packed:
            for number in range(self._count):
                self._place(number)

    @property
    def _count(self) -> int:
        return -(-self._total // self._tile.items)

    def _place(self, number: int) -> None:
        """Summand and channel of one load of weights that are not packed; the last ones again."""
        at = f"(l + {number * self._tile.items})"
        last = self._sizes.width - self._vector
        self._code.add(
            f"const int bk{number} = {at} / {self._in_row};",
            f"const int bn{number} = min(n0 + {at} % {self._in_row} * {self._vector}, {last});",
        )

    def declare(self) -> None:
        """Registers for a step's part."""
        names = ", ".join(f"bv{number}" for number in range(self._count))
        self._code.add(f"{floats(self._vector)} {names};")

    def fetch(self, k0: str) -> None:
        """Load the part of the step at summand `k0` into registers."""
        for number in range(self._count):
            guard = self._guard(number)
            if self._packed:
                at = f"({k0}) * {self._tile.channels} + (l + {number * self._tile.items}) * {WIDE}"
                text = f"*(__global const float4*)(w + {at})"
                if self._buffer.dtype == "float16":
                    text = load_packed(self._buffer, "w", at, WIDE)
            else:
                summand = f"({k0} + bk{number})"
                at = f"{summand} * {self._step} + bn{number}"
                text = f"*(__global const float4*)(w + {at})"
                if self._vector == 1:
                    text = load("w", at, 1, 1)
                if self._sizes.summands % self._tile.step:
                    zero = "(float4)(0.0f)" if self._vector > 1 else "0.0f"
                    text = f"{summand} < {self._sizes.summands} ? {text} : {zero}"
            self._code.add(f"{guard}bv{number} = {text};")

    def keep(self) -> None:
        """Store the part from registers into local memory, in the order in which it was loaded."""
        for number in range(self._count):
            at = f"l + {number * self._tile.items}"
            place = f"((__local float4*)bl)[{at}]" if self._vector > 1 else f"bl[{at}]"
            self._code.add(f"{self._guard(number)}{place} = bv{number};")

    def _guard(self, number: int) -> str:
        if self._total % self._tile.items and number == self._count - 1:
            return f"if (l < {self._total - number * self._tile.items}) "
        return ""


def pixel_place(rows: int, columns: int, pixel: str) -> tuple[str, str]:
    """Row and column of a pixel that is counted row by row."""
    if rows == 1:
        return "0", pixel
    if columns == 1:
        return pixel, "0"
    return f"({pixel} / {columns})", f"({pixel} % {columns})"


def _at(batch: Sequence[str], strides: Sequence[int], offset: int) -> str:
    return offset_of(zip(batch, strides, strict=True), offset)


def _times(name: str, stride: int) -> str:
    return name if stride == 1 else f"{name} * {stride}"
