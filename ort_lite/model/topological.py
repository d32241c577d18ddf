"""Topological order of numbered things: nodes of a graph, partitions of a plan."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def topological_order(needs: Sequence[Collection[int]]) -> list[int]:
    """Numbers such that each comes after those that it needs, the lowest first of several.

    Kahn's algorithm. What is on a cycle, and what needs it, is left out.

    Args:
        needs: For each number from 0 on, the distinct numbers that must come before it.
    """
    users: list[list[int]] = [[] for _ in needs]
    missing = [len(need) for need in needs]
    for number, need in enumerate(needs):
        for other in need:
            users[other].append(number)
    ready = [number for number, count in enumerate(missing) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for user in users[number]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    return order
