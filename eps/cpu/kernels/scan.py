"""Scan, with and without a batch axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import axis_in
from eps.cpu.kernels.control_flow import ScanOutputs, stack_iterations
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import Body, KernelFn, KernelInfo, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanner:
    """One pass over sequences.

    Attributes:
        in_axes: Which axis of each scan input is walked, and whether backwards.
        out_axes: Where each scan output is stacked, and whether from the back.
    """

    body: Body
    n_states: int
    in_axes: tuple[tuple[int, bool], ...]
    out_axes: tuple[tuple[int, bool], ...]

    def run(
        self, states: Sequence[Value], scanned: Sequence[Array], implicit: Sequence[Value]
    ) -> tuple[list[Value], list[Array]]:
        """Final states and stacked outputs."""
        rows = [self._rows(x, *at) for x, at in zip(scanned, self.in_axes, strict=True)]
        lengths = {len(row) for row in rows}
        if len(lengths) != 1:
            raise ValueError(f"scan inputs have lengths {sorted(lengths)} along their axes")
        outputs = ScanOutputs(len(self.out_axes))
        current = list(states)
        for i in range(lengths.pop()):
            items = [np.ascontiguousarray(row[i]).reshape(row[i].shape) for row in rows]
            results = self.body.run([*current, *items], implicit)
            current = list(results[: self.n_states])
            outputs.add(results[self.n_states :])
        types = self.body.output_types[self.n_states :]
        ends = [
            stack_iterations(items[::-1] if backwards else items, declared, axis)
            for items, declared, (axis, backwards) in zip(
                outputs.items, types, self.out_axes, strict=True
            )
        ]
        return current, ends

    @staticmethod
    def _rows(x: Array, axis: int, backwards: bool) -> Array:  # noqa: FBT001 - as in_axes has it
        rows = np.moveaxis(x, axis_in(axis, x.ndim), 0)
        return rows[::-1] if backwards else rows


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
