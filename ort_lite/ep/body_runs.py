"""Partitions that a kernel of their own execution provider may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import Value


@runtime_checkable
class SupportsBodyRuns(Protocol):
    """A compiled partition that its EP's kernels run as the body of a control-flow node."""

    def run_body(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """As `run`, inside a run of another partition of the same EP.

        Outputs may share memory with inputs, with constants and with each other.
        """
        ...
