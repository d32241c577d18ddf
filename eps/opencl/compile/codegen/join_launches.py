"""One launch for several kernels: a launch costs about as much as a small product.

Kernels of one kind that read the same value and do not wait for each other run side by side, each
on work-items of its own: the projections of queries, keys and values, or both appends to a cache.

A kernel may also follow another one in the same work-items, if it reads the other one's result only
at the elements that the item has just written: the second product of a gated layer, which is
multiplied with the first one. Both compute what they would compute in launches of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.codegen.kernel import ITEM, Kernel, KernelPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eps.opencl.compile.views import Storage

MOST_OPERANDS = 32
"""Of a joined kernel: 256 bytes of the 1,024 that every device has room for."""
REACH = 16
"""Launches that a kernel is moved forward past at most."""


def join_launches(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels in an order that gives the same values, in fewer launches where that is possible.

    A kernel that joins others runs where the first of them did; of kernels in between, none writes
    what it reads or touches what it writes.
    """
    launches: list[_Launch] = []
    for kernel in kernels:
        if not (kernel.joins and _join(launches, kernel)):
            launches.append(_Launch(kernel))
    return [launch.kernel() for launch in launches]


def _join(launches: Sequence[_Launch], kernel: Kernel) -> bool:
    """Add the kernel to the last launch that takes it; whether there is one."""
    for launch in reversed(launches[-REACH:]):
        first = launch.find_place(kernel)
        if first is not None:
            launch.add(kernel, first)
            return True
        if any(_conflict(part, kernel) for part, _ in launch.parts):
            return False
    return False


class _Launch:
    """Kernels of one launch, each with the work-item that is its item 0."""

    def __init__(self, kernel: Kernel) -> None:
        self.parts = [(kernel, 0)]
        self._tasks = kernel.tasks

    def add(self, kernel: Kernel, first: int) -> None:
        self.parts.append((kernel, first))
        self._tasks = max(self._tasks, first + kernel.tasks)

    def find_place(self, kernel: Kernel) -> int | None:
        """The work-item from which on the kernel may run; None if it may not be of this launch."""
        first, _ = self.parts[0]
        if not first.joins or first.label != kernel.label:
            return None
        inputs = {id(b) for part, _ in self.parts for b in part.read if b.constant is None}
        operands = {id(b) for part, _ in self.parts for b in part.operands}
        if not inputs & {id(b) for b in kernel.read}:
            return None
        if len(operands | {id(b) for b in kernel.operands}) > MOST_OPERANDS:
            return None
        before = [(part, at) for part, at in self.parts if _conflict(part, kernel)]
        if not before:
            return self._tasks
        ((part, at), *more) = before
        return at if not more and _may_follow(part, kernel) else None

    def kernel(self) -> Kernel:
        """All of them as one; a kernel that is alone as it was."""
        if len(self.parts) == 1:
            return self.parts[0][0]
        parts = [part for part, _ in self.parts]
        written = _distinct(b for part in parts for b in part.written_operands)
        own = {id(b) for b in written}
        read = _distinct(b for part in parts for b in part.read if id(b) not in own)
        operands = (*read, *written)
        places = {id(b): index for index, b in enumerate(operands)}
        return Kernel(
            "",
            operands,
            self._tasks,
            checks=any(part.checks for part in parts),
            work=sum(part.work for part in parts),
            written=len(written),
            label=parts[0].label,
            in_place=frozenset(
                (places[id(part.operands[i])], places[id(part.operands[o])])
                for part in parts
                for i, o in part.in_place
                if all(
                    b not in other.operands
                    for b in (part.operands[i], part.operands[o])
                    for other in parts
                    if other is not part
                )
            ),
            parts=tuple(
                KernelPart(_shift(part, first), first, tuple(places[id(b)] for b in part.operands))
                for part, first in self.parts
            ),
        )


def _shift(kernel: Kernel, first: int) -> Kernel:
    """The kernel with work-item `first` as its item 0."""
    assert kernel.body.count(ITEM) == 1, "it has one index, and its groups are single items"
    return replace(kernel, body=kernel.body.replace(ITEM, f"{ITEM} - {first}")) if first else kernel


def _conflict(before: Kernel, after: Kernel) -> bool:
    """Whether `after` has to wait for `before`."""
    touched = {id(b) for b in before.operands}
    written = {id(b) for b in before.written_operands}
    return bool(
        touched & {id(b) for b in after.written_operands} or written & {id(b) for b in after.read}
    )


def _may_follow(before: Kernel, after: Kernel) -> bool:
    """Whether `after` may run in the same items, each of which then needs its own results alone."""
    if not after.division or before.division != after.division:
        return False
    touched = {id(b) for b in before.operands}
    if any(id(b) in touched for b in after.written_operands):
        return False
    results = {id(b) for b in before.written_operands}
    waits = {index for index, b in enumerate(after.operands) if id(b) in results}
    return waits <= after.elementwise


def _distinct(buffers: Iterable[Storage]) -> list[Storage]:
    return list({id(b): b for b in buffers}.values())
