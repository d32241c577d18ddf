"""Nodes of a partition that a device's compiler refuses, found by compiling parts of it.

Intel's NPU compiler names no node when it refuses a model. The number of compiles is bounded; for
one node in 400 it takes 18, of half the partition and less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Refusal = Callable[[Sequence[int]], str]

MAX_COMPILES = 40


def find_refused(count: int, text: str, refusal: Refusal) -> dict[int, str]:
    """Indices of nodes to leave to another execution provider, with the compiler's text.

    Halves are compiled until single nodes are refused. Nodes that are refused only together are
    narrowed down to a window of neighbours. Groups that are left when the compiles are used up are
    refused as a whole, so the result is never empty.

    Args:
        count: Nodes of the partition, all of which together are refused.
        text: The compiler's for the whole partition.
        refusal: Compiles the nodes of some indices; the compiler's text, "" where it accepts them.
    """
    compiler = _BoundedCompiler(refusal)
    refused: dict[int, str] = {}
    groups = [(range(count), text)]
    while groups:
        group, why = groups.pop()
        if len(group) == 1 or compiler.left < 2:
            refused.update(dict.fromkeys(group, why))
            continue
        middle = len(group) // 2
        halves = [(half, compiler.refusal(half)) for half in (group[:middle], group[middle:])]
        failing = [(half, half_text) for half, half_text in halves if half_text]
        if failing:
            groups += failing
        else:
            refused.update(dict.fromkeys(_narrow(group, compiler), f"{why} (together)"))
    return refused


class _BoundedCompiler:
    """Counts compiles.

    Attributes:
        left: Compiles that are still allowed.
    """

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self.left = MAX_COMPILES

    def refusal(self, indices: Sequence[int]) -> str:
        self.left -= 1
        return self._refusal(indices)


def _narrow(group: range, compiler: _BoundedCompiler) -> range:
    """The shortest window of `group` that is refused, as far as compiles are left.

    Its first half and its second half are accepted; so the window contains the middle.
    """
    middle = len(group) // 2
    low, high = 0, middle - 1  # of the window's beginning: at `low` it is refused
    while low < high and compiler.left > 0:
        probe = (low + high + 1) // 2
        if compiler.refusal(group[probe:]):
            low = probe
        else:
            high = probe - 1
    group = group[low:]
    low, high = middle - low + 1, len(group)  # of the window's end: at `high` it is refused
    while low < high and compiler.left > 0:
        probe = (low + high) // 2
        if compiler.refusal(group[:probe]):
            high = probe
        else:
            low = probe + 1
    return group[:high]
