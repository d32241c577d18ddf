"""Scan, with and without a batch axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import axis_in, check_allocation
from eps.cpu.kernels.control_flow import stack_iterations
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array, Empty
    from ort_lite.ep import Body, KernelFn, KernelInfo, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanner:
    """One pass over sequences.

    Attributes:
        in_axes: Which axis of each scan input is walked, and whether backwards.
        out_axes: Where each scan output is stacked, and whether from the back.
        empty: Makes scan outputs.
    """

    body: Body
    n_states: int
    in_axes: tuple[tuple[int, bool], ...]
    out_axes: tuple[tuple[int, bool], ...]
    empty: Empty

    def run(
        self, states: Sequence[Value], scanned: Sequence[Array], implicit: Sequence[Value]
    ) -> tuple[list[Value], list[Array]]:
        """Final states and stacked outputs."""
        rows = [
            np.ascontiguousarray(self._rows(x, *at))
            for x, at in zip(scanned, self.in_axes, strict=True)
        ]
        lengths = {len(row) for row in rows}
        if len(lengths) != 1:
            raise ValueError(f"scan inputs have lengths {sorted(lengths)} along their axes")
        length = lengths.pop()
        current = list(states)
        stacks: list[_Stack] = []
        for i in range(length):
            items = [row[i, ...] for row in rows]
            results = self.body.run([*current, *items], implicit)
            current = list(results[: self.n_states])
            if not stacks:
                stacks = self._begin_stacks(length, results[self.n_states :])
            for stack, item in zip(stacks, results[self.n_states :], strict=True):
                stack.put(i, item)
        if length:
            return current, [stack.whole for stack in stacks]
        types = self.body.output_types[self.n_states :]
        ends = zip(types, self.out_axes, strict=True)
        return current, [stack_iterations((), declared, axis) for declared, (axis, _) in ends]

    def _begin_stacks(self, length: int, items: Sequence[Array]) -> list[_Stack]:
        return [
            _Stack.of(item, length, axis, backwards=backwards, empty=self.empty)
            for item, (axis, backwards) in zip(items, self.out_axes, strict=True)
        ]

    @staticmethod
    def _rows(x: Array, axis: int, backwards: bool) -> Array:  # noqa: FBT001 - as in_axes has it
        rows = np.moveaxis(x, axis_in(axis, x.ndim), 0)
        return rows[::-1] if backwards else rows


@dataclass(frozen=True, slots=True)
class _Stack:
    """A scan output, filled by one iteration after the other.

    Attributes:
        places: A view of `whole` with the place of each iteration along axis 0.
    """

    whole: Array
    places: Array

    @classmethod
    def of(cls, first: Array, length: int, axis: int, *, backwards: bool, empty: Empty) -> _Stack:
        """One for `length` iterations whose results are like `first`.

        Raises:
            ValueError: There is no room for all of them.
        """
        at = axis_in(axis, first.ndim + 1)
        shape = (*first.shape[:at], length, *first.shape[at:])
        whole = empty(check_allocation(shape, first.dtype), first.dtype)
        places = np.moveaxis(whole, at, 0)
        return cls(whole, places[::-1] if backwards else places)

    def put(self, number: int, item: Array) -> None:
        """Keep the result of an iteration.

        Raises:
            ValueError: It has another shape or type than the first one's.
        """
        if item.shape != self.places.shape[1:] or item.dtype != self.whole.dtype:
            raise ValueError(
                f"iteration {number} gives {item.dtype} {list(item.shape)} after "
                f"{self.whole.dtype} {list(self.places.shape[1:])}"
            )
        self.places[number] = item


def _pairs(
    axes: Sequence[int] | None, directions: Sequence[int] | None, count: int
) -> tuple[tuple[int, bool], ...]:
    places = [0] * count if axes is None else axes
    ways = [0] * count if directions is None else directions
    return tuple((a, bool(d)) for a, d in zip(places, ways, strict=True))


def _scan(info: KernelInfo) -> KernelFn:
    """ONNX Scan-9."""
    body = info.body("body")
    explicit = info.n_inputs
    n_scans = info.attr("num_scan_inputs")
    n_states = explicit - n_scans
    n_outputs = len(body.output_types) - n_states
    scanner = _Scanner(
        body=body,
        n_states=n_states,
        in_axes=_pairs(info.attr("scan_input_axes"), info.attr("scan_input_directions"), n_scans),
        out_axes=_pairs(
            info.attr("scan_output_axes"), info.attr("scan_output_directions"), n_outputs
        ),
        empty=info.empty,
    )

    def scan(*values: Value) -> tuple[Value, ...]:
        states, outputs = scanner.run(
            values[:n_states], values[n_states:explicit], values[explicit:]
        )
        return (*states, *outputs)

    return scan


def _scan_batches(info: KernelInfo) -> KernelFn:
    """ONNX Scan-8: axis 0 is the batch, axis 1 the sequence; lengths may differ."""
    body = info.body("body")
    explicit = info.n_inputs
    n_scans = info.attr("num_scan_inputs")
    n_states = explicit - 1 - n_scans
    n_outputs = len(body.output_types) - n_states
    scanner = _Scanner(
        body=body,
        n_states=n_states,
        in_axes=_pairs(None, info.attr("directions"), n_scans),
        out_axes=_pairs(None, None, n_outputs),
        empty=info.empty,
    )

    def scan(lengths: Array | None, *values: Value) -> tuple[Value, ...]:
        states, scanned = values[:n_states], values[n_states : explicit - 1]
        implicit = values[explicit - 1 :]
        batch, longest = scanned[0].shape[:2]
        sizes = [longest] * batch if lengths is None else integers(lengths)
        runs = [
            scanner.run([s[b] for s in states], [x[b, : sizes[b]] for x in scanned], implicit)
            for b in range(batch)
        ]
        ends = [np.stack([run[0][i] for run in runs]) for i in range(n_states)]
        outputs = [_pad_defaults([run[1][i] for run in runs], longest) for i in range(n_outputs)]
        return (*ends, *outputs)

    return scan


def _pad_defaults(rows: Sequence[Array], longest: int) -> Array:
    """Sequences of one batch, filled with zeros to equal length."""
    shape = (len(rows), longest, *rows[0].shape[1:])
    result = np.zeros(shape, rows[0].dtype)
    for i, row in enumerate(rows):
        result[i, : len(row)] = row
    return result


KERNELS: tuple[KernelDef, ...] = (
    kernel("Scan", since=(8, 8))(_scan_batches),
    kernel("Scan", since=(9, 25))(_scan),
)
