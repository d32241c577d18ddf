"""Divides the functions of a program into parts that take the driver's compiler about as long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LETTERS_OF_A_PART = 30_000
"""Size of functions for which a program of its own pays: the driver needs 0.4 s for them."""
LETTERS_OF_A_FUNCTION = 1500
"""Fixed cost of a function in the driver's compiler, in characters of source."""


def divide_functions(
    texts: Mapping[str, str], together: Iterable[frozenset[str]], most: int
) -> list[frozenset[str]]:
    """Names of the functions of each part; none where the program is too small for two.

    Args:
        texts: Of the functions, by name.
        together: Functions that one kernel calls, and that are in one part therefore.
        most: Parts.
    """
    groups = _join_sets([frozenset((name,)) for name in texts], together)
    costs = {
        group: sum(len(texts[name]) + LETTERS_OF_A_FUNCTION for name in group) for group in groups
    }
    count = min(most, sum(costs.values()) // LETTERS_OF_A_PART, len(groups))
    if count < 2:
        return []
    loads = [0] * count
    parts: list[frozenset[str]] = [frozenset()] * count
    for group in sorted(groups, key=costs.__getitem__, reverse=True):
        least = loads.index(min(loads))
        loads[least] += costs[group]
        parts[least] |= group
    return parts


def _join_sets(
    groups: list[frozenset[str]], together: Iterable[frozenset[str]]
) -> list[frozenset[str]]:
    """The groups, joined wherever a set of `together` has members of several."""
    for names in together:
        if len(names) > 1:
            touched = [group for group in groups if group & names]
            joined = frozenset().union(*touched)
            at = groups.index(touched[0])
            groups = [g for g in groups if g not in touched]
            groups.insert(at, joined)
    return groups
