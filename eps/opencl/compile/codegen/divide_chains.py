"""Divides the calls of a program with chains into ranges that are built as programs of their own.

A chain calls functions of one program, so each range has all calls of its functions. Networks of
convolutions have other sizes after each pooling and can be cut there; layers of a decoder are all
alike, and stay in one program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.divide_functions import LETTERS_OF_A_FUNCTION, LETTERS_OF_A_PART

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Range = tuple[int, int]

MOST_OF_A_HALF = 0.75
"""Part of a range's cost that its costlier half may have; if more, the cut saves too little."""


def divide_calls(
    calls: Sequence[str],
    needed: Mapping[str, frozenset[str]],
    texts: Mapping[str, str],
    most: int,
) -> list[Range]:
    """Ranges of calls, in order; none where the program is too small for two, or cannot be cut.

    Args:
        calls: Names of kernels.
        needed: Names of the functions of each kernel.
        texts: Of the functions.
        most: Ranges.
    """

    def cost(part: Range) -> int:
        names = frozenset().union(*(needed[name] for name in calls[part[0] : part[1]]))
        return sum(len(texts[name]) + LETTERS_OF_A_FUNCTION for name in names)

    whole = (0, len(calls))
    count = min(most, cost(whole) // LETTERS_OF_A_PART)
    cuts, ranges = _find_cuts(calls), [whole]
    while len(ranges) < count:
        largest = max(ranges, key=cost)
        begin, end = largest
        halves = [((begin, cut), (cut, end)) for cut in cuts if begin < cut < end]
        best = min(halves, key=lambda pair: max(map(cost, pair)), default=None)
        if best is None or max(map(cost, best)) > MOST_OF_A_HALF * cost(largest):
            break
        at = ranges.index(largest)
        ranges[at : at + 1] = best
    return ranges if len(ranges) > 1 else []


def cut_chains(chains: Sequence[Range], ranges: Sequence[Range]) -> tuple[Range, ...]:
    """The chains, none of which is in two ranges; a single call is a launch of its own."""
    if not ranges:
        return tuple(chains)
    pieces = [
        (max(chain[0], part[0]), min(chain[1], part[1])) for chain in chains for part in ranges
    ]
    return tuple((begin, end) for begin, end in pieces if end - begin > 1)


def _find_cuts(calls: Sequence[str]) -> list[int]:
    """Indices of calls before which no kernel is called that is called from there on."""
    last = {name: at for at, name in enumerate(calls)}
    cuts, furthest = [], 0
    for at, name in enumerate(calls[:-1]):
        furthest = max(furthest, last[name])
        if furthest == at:
            cuts.append(at + 1)
    return cuts
