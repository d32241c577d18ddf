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
"""Nodes that are compared in the time that a step takes for few rows, at least."""

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
    """Nodes of all trees in one numbering; a leaf is its own child.

    Attributes:
        roots: [trees].
        feature: [nodes], as all others; that of a leaf is not used.
        threshold: What the feature is compared with.
        when_true: The child where the comparison is true.
        when_false: The other one.
        missing_is_true: Whether NaN goes where a true comparison goes.
        modes: The comparisons.
        leaf: Whether the node is one.
    """

    roots: Array
    feature: Array
    threshold: Array
    when_true: Array
    when_false: Array
    missing_is_true: Array
    modes: Modes
    leaf: Array


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
        self._branches = ~nodes.leaf
        children = nodes.when_true, nodes.when_false
        self._depth = _steps_to_leaves(children, nodes.roots, self._branches)
        self._roots = nodes.roots.astype(np.intp)
        self._feature = np.where(self._branches, nodes.feature, 0).astype(np.intp)
        self._threshold = nodes.threshold
        self._first_of_pair = 2 * np.arange(self._feature.size)
        self._pairs = np.stack(children[::-1], 1).astype(np.intp).reshape(-1)
        self._modes = nodes.modes
        self._missing = nodes.missing_is_true if nodes.missing_is_true.any() else None

    def find_leaves(self, x: Array) -> Array:
        """The leaf [trees, N] that each row of `x` [N, features] reaches in each tree."""
        rows, values = len(x), x.reshape(-1)
        if 0 < rows * self._feature.size <= _NODES_OF_A_STEP * self._depth:
            return self._jump(x)
        node = np.repeat(self._roots, rows)
        row = np.tile(np.arange(rows) * x.shape[1], self._roots.size)
        missing = None if self._missing is None or not np.isnan(x).any() else self._missing
        leaves, place = node, None
        for level in range(self._depth):
            if level and level % LEVELS == 0:
                walking = np.flatnonzero(self._branches.take(node))
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

    def _jump(self, x: Array) -> Array:
        """As `find_leaves`, from the children of every node for every row."""
        value = x.take(self._feature, axis=1)
        if len(self._modes) == 1:
            yes: Array = self._modes[0][0](value, self._threshold)
        else:
            yes = np.zeros(value.shape, np.bool_)
            for compare, nodes in self._modes:
                yes |= compare(value, self._threshold) & nodes
        if self._missing is not None:
            yes |= np.isnan(value) & self._missing
        child = self._pairs.take(self._first_of_pair + yes)
        node = np.repeat(self._roots[None], len(x), 0)
        if len(x) == 1:
            for _ in range(self._depth):
                node = child.take(node)
            return node.T
        start = np.arange(len(x))[:, None] * self._feature.size
        for _ in range(self._depth):
            node = child.take(start + node)
        return node.T


def modes_of(names: Sequence[str]) -> Modes:
    """Each comparison with the nodes that make it; `names` has one for each node.

    Raises:
        ValueError: A name is not known.
    """
    modes = sorted(set(names) - {"LEAF"})
    for name in modes:
        if name not in _COMPARE:
            raise ValueError(f"node mode '{name}' is not known")
    every = np.array(names)
    return tuple((_COMPARE[name], every == name) for name in modes)


def _steps_to_leaves(children: Sequence[Array], roots: Array, branches: Array) -> int:
    """Steps from the roots to the last leaf.

    Raises:
        ValueError: Nodes make a circle.
    """
    level, depth = roots, 0
    while level.size:
        branching = level[branches[level]]
        if not branching.size:
            break
        reached = np.zeros(branches.size, np.bool_)
        for side in children:
            reached[side[branching]] = True
        level = np.flatnonzero(reached)
        depth += 1
        if depth > branches.size:
            raise ValueError("the nodes of a tree make a circle")
    return depth
