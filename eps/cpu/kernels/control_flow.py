"""If, Loop and SequenceMap."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import TensorType
from eps.cpu.arrays import FLOAT32, NO_QUESTION_BYTES, check_allocation, element_type
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import ValueType
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo, Value


_OVERHEAD = 128
"""Bytes of an array besides its elements."""


def stack_iterations(items: Sequence[Array], declared: ValueType | None, axis: int = 0) -> Array:
    """Results of iterations, stacked along a new axis; an empty tensor without iterations.

    The empty tensor has the dimensions that the body declares, 0 for unknown ones.
    """
    if items:
        return np.stack(items, axis)
    dtype = element_type(declared)
    shape = declared.shape if isinstance(declared, TensorType) else None
    dims = [dim if isinstance(dim, int) else 0 for dim in shape or ()]
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, 0)
    return np.empty(dims, FLOAT32 if dtype is None else dtype)


class ScanOutputs:
    """The scan outputs of a loop, which are bounded in memory."""

    def __init__(self, count: int) -> None:
        """Start without iterations, for `count` outputs."""
        self.items: list[list[Array]] = [[] for _ in range(count)]
        self._bytes = 0
        self._checked_bytes = NO_QUESTION_BYTES

    def add(self, results: Sequence[Array]) -> None:
        """Keep what one iteration gave.

        A view of a part is copied: it would keep all of an array, which may be a growing state.

        Raises:
            ValueError: There is no room for all of it in one tensor.
        """
        for kept, item in zip(self.items, results, strict=True):
            kept.append(_without_rest(item))
            self._bytes += item.nbytes + _OVERHEAD
        if self._bytes > self._checked_bytes:
            check_allocation((self._bytes,), np.dtype(np.uint8))
            self._checked_bytes = self._bytes + NO_QUESTION_BYTES


def _without_rest(item: Array) -> Array:
    """`item`, or a copy of it if it is a part of a larger array."""
    owner = item
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return item if owner.nbytes <= item.nbytes else item.copy()


def is_true(condition: Array) -> bool:
    """The value of a condition, which models give as a scalar or as one element.

    Raises:
        ValueError: It has another number of elements; ONNX Runtime's words.
    """
    if condition.size != 1:
        raise ValueError("condition input must have exactly one element")
    return bool(condition.item(0))


def _if(info: KernelInfo) -> KernelFn:
    then, other = info.body("then_branch"), info.body("else_branch")

    def branch(condition: Array, *implicit: Value) -> tuple[Value, ...]:
        return tuple((then if is_true(condition) else other).run((), implicit))

    return branch


def _one(value: object, dtype: type, like: ValueType | None) -> Array:
    """A number as a scalar, or as one element where a body declares that rank."""
    rank = len(like.shape or ()) if isinstance(like, TensorType) else 0
    return np.full((1,) * rank, value, dtype)


def _loop(info: KernelInfo) -> KernelFn:
    """ONNX Loop: state variables go round, scan outputs are stacked.

    The iteration number and the first condition have the rank that the body declares.
    """
    body = info.body("body")
    explicit = info.n_inputs
    n_states = explicit - 2
    scan_types = body.output_types[1 + n_states :]

    def loop(trips: Array | None, condition: Array | None, *rest: Value) -> tuple[Value, ...]:
        states: list[Value] = list(rest[:n_states])
        implicit = rest[n_states:]
        scans = ScanOutputs(len(scan_types))
        count = None if trips is None else int(trips.reshape(-1)[0])
        going = _one(condition is None or is_true(condition), np.bool_, body.input_types[1])
        for i in itertools.count() if count is None else range(count):
            if not is_true(going):
                break
            number = _one(i, np.int64, body.input_types[0])
            results = body.run((number, going, *states), implicit)
            going = results[0]
            states = list(results[1 : 1 + n_states])
            scans.add(results[1 + n_states :])
        ends = (stack_iterations(s, t) for s, t in zip(scans.items, scan_types, strict=True))
        return (*states, *ends)

    return loop


def _sequence_map(info: KernelInfo) -> KernelFn:
    """ONNX SequenceMap-17: the body on every element; further inputs may be tensors."""
    body = info.body("body")
    explicit = info.n_inputs
    n_outputs = len(body.output_types)

    def sequence_map(first: list[Value], *rest: Value) -> tuple[Value, ...]:
        others, implicit = rest[: explicit - 1], rest[explicit - 1 :]
        if any(isinstance(o, list) and len(o) != len(first) for o in others):
            raise ValueError("sequences of SequenceMap differ in length")
        rows = [
            body.run([item, *(o[i] if isinstance(o, list) else o for o in others)], implicit)
            for i, item in enumerate(first)
        ]
        return tuple([row[i] for row in rows] for i in range(n_outputs))

    return sequence_map


KERNELS: tuple[KernelDef, ...] = (
    kernel("If", since=(1, 25))(_if),
    kernel("Loop", since=(1, 25))(_loop),
    kernel("SequenceMap", since=(17, 17))(_sequence_map),
)
