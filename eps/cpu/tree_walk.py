"""Walks rows down all trees of an ensemble, to the leaves that they reach."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.cpu.arrays import Array

    Modes = tuple[tuple[Callable[[Array, Array], Array], Array], ...]
    """(comparison, for each node whether it makes it), of nodes that branch."""

LEVELS = 4
"""Steps after which rows that have reached their leaves may be left out."""
_NODES_OF_A_STEP = 1024
"""Nodes that are compared in the time that a step takes for one row, at least."""

_COMPARE: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        "BRANCH_LEQ": np.less_equal,
        "BRANCH_LT": np.less,
        "BRANCH_GTE": np.greater_equal,
        "BRANCH_GT": np.greater,
        "BRANCH_EQ": np.equal,
        "BRANCH_NEQ": np.not_equal,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNodes:
    """Nodes of all trees in one numbering, those that branch first.

    Attributes:
        count: How many there are, leaves included.
        roots: [trees].
        feature: [branching nodes], as all others: the column that is compared.
        threshold: What the feature is compared with.
        when_true: The child where the comparison is true.
        when_false: The other one.
        missing_is_true: Whether NaN goes where a true comparison goes.
        modes: The comparisons.
    """

    count: int
    roots: Array
    feature: Array
    threshold: Array
    when_true: Array
    when_false: Array
    missing_is_true: Array
    modes: Modes


class TreeWalk:
    """Steps from the roots to the leaves.

    A step picks from tables alone: of each node the feature and the threshold, of each row the
    feature's value, and the child from a table of pairs.
    """

    def __init__(self, nodes: TreeNodes) -> None:
        """Make the tables.

        Raises:
            ValueError: The nodes of a tree make a circle.
        """
        branching = self.branching = nodes.feature.size
        self._depth = _steps_to_leaves(nodes)
        self._roots = nodes.roots.astype(np.intp)
        self._leaves = np.arange(branching, nodes.count)
        self._sides = nodes.when_true.astype(np.intp), nodes.when_false.astype(np.intp)
        self._pairs = np.concatenate(
            (np.stack(self._sides[::-1], 1).reshape(-1), np.repeat(self._leaves, 2))
        )
        more = nodes.count - branching
        self._feature = np.pad(nodes.feature.astype(np.intp), (0, more))
        self._threshold = np.pad(nodes.threshold, (0, more))
        self._modes = tuple((compare, np.pad(makes, (0, more))) for compare, makes in nodes.modes)
        missing = nodes.missing_is_true
        self._missing = np.pad(missing, (0, more)) if missing.any() else None

    def find_leaves(self, x: Array) -> Array:
        """The leaf [trees, N] that each row of `x` [N, features] reaches in each tree."""
        rows, values = len(x), x.reshape(-1)
        if rows == 1 and self.branching <= _NODES_OF_A_STEP * self._depth:
            return self._jump(values)
        node = np.repeat(self._roots, rows)
        row = np.tile(np.arange(rows) * x.shape[1], self._roots.size)
        missing = None if self._missing is None or not np.isnan(x).any() else self._missing
        leaves, place = node, None
        for level in range(self._depth):
            if level and level % LEVELS == 0:
                walking = np.flatnonzero(node < self.branching)
                if not walking.size:
                    break
                if 2 * walking.size <= node.size:
                    if place is None:
                        leaves, place = node, walking
                    else:
                        leaves[place], place = node, place[walking]
                    node, row = node[walking], row[walking]
            node = self._step(values, row, node, missing)
        if place is None:
            leaves = node
        else:
            leaves[place] = node
        return leaves.reshape(self._roots.size, rows)

    def _step(self, values: Array, row: Array, node: Array, missing: Array | None) -> Array:
        """The children that the values of rows lead to, [n]."""
        value = values.take(self._feature.take(node) + row)
        bound = self._threshold.take(node)
        if len(self._modes) == 1:
            yes: Array = self._modes[0][0](value, bound)
        else:
            yes = np.zeros(node.shape, np.bool_)
            for compare, nodes in self._modes:
                yes |= compare(value, bound) & nodes.take(node)
        if missing is not None:
            yes |= np.isnan(value) & missing.take(node)
        return self._pairs.take(node + node + yes)

    def _jump(self, row: Array) -> Array:
        """As `find_leaves` of one row [features], from the child of every node."""
        count = self.branching
        value = row.take(self._feature[:count])
        bound = self._threshold[:count]
        if len(self._modes) == 1:
            yes: Array = self._modes[0][0](value, bound)
        else:
            yes = np.zeros(count, np.bool_)
            for compare, nodes in self._modes:
                yes |= compare(value, bound) & nodes[:count]
        if self._missing is not None:
            yes |= np.isnan(value) & self._missing[:count]
        child = np.concatenate((np.where(yes, *self._sides), self._leaves))
        node = self._roots
        for _ in range(self._depth):
            node = child.take(node)
        return node[:, None]


def modes_of(names: Sequence[str]) -> Modes:
    """Each comparison with the nodes that make it; `names` has one for each branching node.

    Raises:
        ValueError: A name is not known.
    """
    modes = sorted(set(names))
    for name in modes:
        if name not in _COMPARE:
            raise ValueError(f"node mode '{name}' is not known")
    every = np.array(names)
    return tuple((_COMPARE[name], every == name) for name in modes)


def _steps_to_leaves(nodes: TreeNodes) -> int:
    """Steps from the roots to the last leaf.

    Raises:
        ValueError: Nodes make a circle.
    """
    branching = nodes.feature.size
    level, depth = nodes.roots, 0
    while (level := level[level < branching]).size:
        reached = np.zeros(nodes.count, np.bool_)
        for side in (nodes.when_true, nodes.when_false):
            reached[side[level]] = True
        level = np.flatnonzero(reached)
        depth += 1
        if depth > branching:
            raise ValueError("the nodes of a tree make a circle")
    return depth
