"""Bodies of control flow with partitions of another execution provider than the node's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import Runnable, Value


class ForeignBody:
    """A body whose inputs are made C-contiguous, as `CompiledPartition.run` promises them.

    Inside a partition of the CPU EP a value may be a view with other strides, such as a Slice with
    negative steps, and a body takes captured values and slices of scanned ones from there.
    """

    __slots__ = ("_body",)

    def __init__(self, body: Runnable) -> None:
        self._body = body

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """The body's outputs from its inputs and captured values."""
        return self._body.run([_make_contiguous(value) for value in inputs])


def _make_contiguous(value: Value) -> Value:
    flags = getattr(value, "flags", None)  # absent from sequences and device tensors
    return value.copy() if flags is not None and not flags.c_contiguous else value
