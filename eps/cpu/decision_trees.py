"""Ensembles of decision trees, all rows and trees walked together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import check_allocation
from eps.cpu.shared_work import run_shared
from eps.cpu.tree_walk import TreeNodes, TreeWalk, modes_of

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelInfo

_BLOCK = 1 << 15
"""Rows times trees that are walked at a time: what a step reads and writes stays in a cache.

Smaller ones do not pay as parts for other threads: calls of numpy become so short that threads wait
for the interpreter's lock (100 rows of 300 trees took four times as long)."""
_NOTHING = {"MIN": np.inf, "MAX": -np.inf}
"""What a tree without a weight adds to those."""
_WEIGHTS = 1 << 19
"""Rows times trees times targets that are added up at a time."""


def values_of(info: KernelInfo, name: str) -> Any:  # noqa: ANN401 - an array
    """A float attribute, or its form as a tensor, which keeps doubles; empty if not given."""
    tensor = info.attr(f"{name}_as_tensor")
    if tensor is not None:
        return tensor
    return np.array(info.attr(name) or [], np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Trees, and what their leaves add.

    Attributes:
        walk: From rows to leaves.
        trees: How many.
        features: Least and greatest index of those that are compared; of none (0, -1).
        weights: [nodes, targets], what a leaf adds to each target; nodes that branch come first.
        has_weight: [nodes, targets], whether it adds anything.
        complete: Whether all leaves have weights for all targets.
        target: [nodes], the only target of a leaf; None if a leaf has none, or several.
    """

    walk: TreeWalk
    trees: int
    features: tuple[int, int]
    weights: Array
    has_weight: Array
    complete: bool = field(init=False)
    target: Array | None = field(init=False)

    def __post_init__(self) -> None:
        """Find out whether each leaf has one target, or all of them."""
        leaves = self.has_weight.any(1)
        one = self.weights.shape[1] > 1 and bool((self.has_weight.sum(1) <= 1).all())
        target = np.where(leaves, np.argmax(self.has_weight, 1), -1) if one else None
        complete = self.trees > 0 and bool(self.has_weight[self.walk.branching :].all())
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "complete", complete)

    @classmethod
    def of(cls, info: KernelInfo, prefix: str, targets: int, ids: Array) -> Forest:
        """From the attributes nodes_* and those of the leaves, class_* or target_*.

        Args:
            info: The node.
            prefix: "class" or "target".
            targets: How many there are.
            ids: The target of each weight, in [0, targets).

        Raises:
            ValueError: Nodes are missing, or make a circle; attributes differ in length.
        """
        nodes = _Nodes(_integers(info, "nodes_treeids"), _integers(info, "nodes_nodeids"))
        names = np.array(info.attr("nodes_modes"), np.str_)
        leaf = names == "LEAF"
        inner = np.flatnonzero(~leaf)
        place = np.empty(nodes.count, np.intp)
        place[np.concatenate((inner, np.flatnonzero(leaf)))] = np.arange(nodes.count)
        children: list[Array] = []
        is_root = np.ones(nodes.count, np.bool_)
        for side in ("true", "false"):
            numbers = _integers(info, f"nodes_{side}nodeids", nodes.count)
            child = nodes.find(nodes.trees[inner], numbers[inner])
            is_root[child] = False
            children.append(place[child])
        roots = place[np.flatnonzero(is_root)]
        missing = np.array(
            info.attr("nodes_missing_value_tracks_true") or [0] * nodes.count, np.bool_
        )
        feature = _integers(info, "nodes_featureids", nodes.count)[inner]
        values = values_of(info, f"{prefix}_weights")
        weights = np.zeros(check_allocation((nodes.count, targets), values.dtype), values.dtype)
        has_weight = np.zeros(weights.shape, np.bool_)
        rows = place[
            nodes.find(_integers(info, f"{prefix}_treeids"), _integers(info, f"{prefix}_nodeids"))
        ]
        np.add.at(weights, (rows, ids), values)
        has_weight[rows, ids] = True
        return cls(
            walk=TreeWalk(
                TreeNodes(
                    count=nodes.count,
                    roots=roots,
                    feature=feature,
                    threshold=values_of(info, "nodes_values")[inner],
                    when_true=children[0],
                    when_false=children[1],
                    missing_is_true=missing[inner],
                    modes=modes_of(names[inner].tolist()),
                )
            ),
            trees=roots.size,
            features=range_of(feature),
            weights=weights,
            has_weight=has_weight,
        )

    def scores(self, x: Array, aggregate: str) -> tuple[Array, Array]:
        """Scores [N, targets] of rows [N, features], and which of them any tree gave.

        They are added up tree after tree, in float32 unless rows or weights are doubles: as
        onnxruntime does on one thread, so that ties between classes are the same ones.

        Raises:
            ValueError: A tree asks for a feature that rows have not.
        """
        least, greatest = self.features
        if greatest >= x.shape[1]:
            raise ValueError(f"rows of {x.shape[1]} features, feature {greatest} is used")
        if least < 0:
            raise ValueError(f"feature {least} is used")
        trees = max(1, self.trees)
        wide = 1 if self.target is not None else self.weights.shape[1]
        step = max(1, min(_BLOCK // trees, _WEIGHTS // (trees * max(1, wide))))
        if len(x) <= step:
            return self._block(x, aggregate)
        parts: dict[int, tuple[Array, Array]] = {}

        def add(start: int) -> None:
            parts[start] = self._block(x[start : start + step], aggregate)

        starts = range(0, len(x), step)
        run_shared([partial(add, start) for start in starts])
        scores, there = zip(*(parts[start] for start in starts), strict=True)
        return np.concatenate(scores), np.concatenate(there)

    def _block(self, x: Array, aggregate: str) -> tuple[Array, Array]:
        kind = np.result_type(x.dtype, self.weights.dtype, np.float32)
        leaves = self.walk.find_leaves(x)
        if self.target is not None and aggregate not in _NOTHING:
            result, there = self._add_by_target(leaves, self.target, kind)
        elif self.complete:
            result = _aggregate(self.weights.take(leaves, axis=0), aggregate, kind)
            there = np.ones(result.shape, np.bool_)
        else:
            has_weight = self.has_weight.take(leaves, axis=0)
            there = np.any(has_weight, 0)
            weights = self.weights.take(leaves, axis=0)
            if aggregate in _NOTHING:
                weights = np.where(has_weight, weights, _NOTHING[aggregate])
            result = np.where(there, _aggregate(weights, aggregate, kind), 0)
        if aggregate == "AVERAGE":
            result = result / kind.type(self.trees)
        return result.astype(kind, copy=False), there

    def _add_by_target(
        self, leaves: Array, target: Array, kind: np.dtype[Any]
    ) -> tuple[Array, Array]:
        """Sums [N, targets] of type `kind`, and whether a leaf named the target.

        Args:
            leaves: [trees, N].
            target: Of each node.
            kind: float32 or float64.
        """
        rows, targets = leaves.shape[1], self.weights.shape[1]
        which = target.take(leaves)
        place = np.arange(rows) * targets + which
        adds = which >= 0
        place, leaves = place[adds], leaves[adds]
        values = self.weights.reshape(-1).take(leaves * targets + place % targets)
        sums = np.zeros(rows * targets, kind)
        np.add.at(sums, place, values.astype(kind, copy=False))
        there = np.zeros(rows * targets, np.bool_)
        there[place] = True
        return sums.reshape(rows, targets), there.reshape(rows, targets)


def _aggregate(weights: Array, aggregate: str, kind: np.dtype[Any]) -> Array:
    """Least, greatest or sum of [trees, N, targets] over the trees, sums one after the other.

    numpy adds in pairs where there is one number for each tree.
    """
    if aggregate in _NOTHING:
        function = np.min if aggregate == "MIN" else np.max
        return np.asarray(function(weights, 0))
    if weights[0:1].size == 1:
        return np.asarray(np.add.accumulate(weights, 0, dtype=kind)[-1])
    return np.asarray(weights.sum(0, dtype=kind))


class _Nodes:
    """Nodes by tree and number."""

    def __init__(self, trees: Array, numbers: Array) -> None:
        """Sort them; of equal ones the last counts.

        Raises:
            ValueError: The arrays differ in length.
        """
        if trees.size != numbers.size:
            raise ValueError(f"{trees.size} nodes_treeids and {numbers.size} nodes_nodeids")
        self.trees, self.count = trees, trees.size
        self._trees, tree = np.unique(trees, return_inverse=True)
        self._numbers, number = np.unique(numbers, return_inverse=True)
        keys = tree * self._numbers.size + number
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def find(self, trees: Array, numbers: Array) -> Array:
        """Where the nodes are.

        Raises:
            ValueError: A tree has no such node, or the arrays differ in length.
        """
        if trees.size != numbers.size:
            raise ValueError(f"{trees.size} ids of trees and {numbers.size} of their nodes")
        if not trees.size:
            return np.zeros(0, np.intp)
        if not self.count:
            raise ValueError(f"tree {trees[0]} has no node {numbers[0]}")
        tree = np.searchsorted(self._trees[:-1], trees)
        number = np.searchsorted(self._numbers[:-1], numbers)
        keys = tree * self._numbers.size + number
        place = np.searchsorted(self._keys, keys, side="right") - 1
        known = (self._trees[tree] == trees) & (self._numbers[number] == numbers)
        known &= (place >= 0) & (self._keys[place] == keys)
        if not known.all():
            wrong = int(np.argmin(known))
            raise ValueError(f"tree {trees[wrong]} has no node {numbers[wrong]}")
        return self._order[place]


def range_of(features: Array) -> tuple[int, int]:
    """Least and greatest index of features; (0, -1) without any."""
    return (int(features.min()), int(features.max())) if features.size else (0, -1)


def _integers(info: KernelInfo, name: str, count: int | None = None) -> Array:
    """An attribute of integers.

    Raises:
        ValueError: It has not `count` of them.
    """
    values = np.array(info.attr(name) or [], np.int64)
    if count not in (None, values.size):
        raise ValueError(f"{values.size} {name} for {count} nodes")
    return values
