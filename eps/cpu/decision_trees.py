"""Ensembles of decision trees, all rows and trees walked together."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import check_allocation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelInfo

_BLOCK = 1 << 20
"""Rows times trees times targets that are worked on at a time."""

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


def values_of(info: KernelInfo, name: str) -> Any:  # noqa: ANN401 - an array
    """A float attribute, or its form as a tensor, which keeps doubles; empty if not given."""
    tensor = info.attr(f"{name}_as_tensor")
    if tensor is not None:
        return tensor
    return np.array(info.attr(name) or [], np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Nodes of all trees in one numbering; a leaf is its own child.

    Attributes:
        modes: (comparison, nodes that make it), of nodes that branch.
        depth: How many steps reach every leaf.
        weights: [nodes, targets], what a leaf adds to each target.
        has_weight: [nodes, targets], whether it adds anything.
    """

    roots: Array
    feature: Array
    threshold: Array
    when_true: Array
    when_false: Array
    missing_is_true: Array
    modes: tuple[tuple[Callable[[Array, Array], Array], Array], ...]
    depth: int
    weights: Array
    has_weight: Array

    @classmethod
    def of(cls, info: KernelInfo, prefix: str, targets: int) -> Forest:
        """From the attributes nodes_* and those of the leaves, class_* or target_*.

        Raises:
            ValueError: Nodes are missing, or make a circle.
        """
        keys = list(zip(info.attr("nodes_treeids"), info.attr("nodes_nodeids"), strict=True))
        places = {key: i for i, key in enumerate(keys)}
        names = info.attr("nodes_modes")
        leaf = np.array([name == "LEAF" for name in names], np.bool_)
        own = np.arange(len(keys))
        children = [
            np.where(leaf, own, _children(info.attr(f"nodes_{side}nodeids"), keys, places, leaf))
            for side in ("true", "false")
        ]
        roots = np.setdiff1d(own, np.concatenate([c[~leaf] for c in children]))
        missing = info.attr("nodes_missing_value_tracks_true") or [0] * len(keys)
        dtype = values_of(info, f"{prefix}_weights").dtype
        weights = np.zeros(check_allocation((len(keys), targets), dtype), dtype)
        has_weight = np.zeros(weights.shape, np.bool_)
        where = [info.attr(f"{prefix}_{part}ids") for part in ("tree", "node", "")]
        rows = np.array([places[key] for key in zip(*where[:2], strict=True)], np.intp)
        np.add.at(weights, (rows, np.array(where[2])), values_of(info, f"{prefix}_weights"))
        has_weight[rows, np.array(where[2])] = True
        return cls(
            roots=roots,
            feature=np.array(info.attr("nodes_featureids")),
            threshold=values_of(info, "nodes_values"),
            when_true=children[0],
            when_false=children[1],
            missing_is_true=np.array(missing, np.bool_),
            modes=modes_of(names),
            depth=steps_to_leaves(children, roots, leaf),
            weights=weights,
            has_weight=has_weight,
        )

    def scores(self, x: Array, aggregate: str) -> tuple[Array, Array]:
        """Scores [N, targets] of rows [N, features], and which of them any tree gave.

        Raises:
            ValueError: A tree asks for a feature that rows have not.
        """
        if self.feature.size and int(self.feature.max()) >= x.shape[1]:
            raise ValueError(f"rows of {x.shape[1]} features, feature {self.feature.max()} is used")
        if self.feature.size and int(self.feature.min()) < 0:
            raise ValueError(f"feature {self.feature.min()} is used")
        step = max(1, _BLOCK // max(1, self.roots.size * self.weights.shape[1]))
        parts = [
            self._block(x[start : start + step], aggregate)
            for start in range(0, max(len(x), 1), step)
        ]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _block(self, x: Array, aggregate: str) -> tuple[Array, Array]:
        leaves = self._leaves(x)
        weights: Array = self.weights[leaves]
        has_weight: Array = self.has_weight[leaves]
        if aggregate in ("MIN", "MAX"):
            function, nothing = (np.min, np.inf) if aggregate == "MIN" else (np.max, -np.inf)
            result = function(np.where(has_weight, weights, nothing), 1)
        else:
            result = weights.sum(1)
            if aggregate == "AVERAGE":
                result = result / self.roots.size
        there: Array = np.any(has_weight, 1)
        return np.where(there, result, 0).astype(self.weights.dtype), there

    def _leaves(self, x: Array) -> Array:
        """The leaf [N, trees] that each row reaches in each tree."""
        node = np.broadcast_to(self.roots, (len(x), self.roots.size))
        rows = np.arange(len(x))[:, None]
        for _ in range(self.depth):
            value, bound = x[rows, self.feature[node]], self.threshold[node]
            if len(self.modes) == 1:
                yes = self.modes[0][0](value, bound)
            else:
                yes = np.zeros(node.shape, np.bool_)
                for compare, nodes in self.modes:
                    yes |= compare(value, bound) & nodes[node]
            yes |= np.isnan(value) & self.missing_is_true[node]
            node = np.where(yes, self.when_true[node], self.when_false[node])
        return node


def _children(
    ids: Sequence[int],
    keys: Sequence[tuple[int, int]],
    places: Mapping[tuple[int, int], int],
    leaf: Array,
) -> Array:
    children = np.zeros(len(keys), np.intp)
    for i, (tree, _) in enumerate(keys):
        if not leaf[i]:
            if (tree, ids[i]) not in places:
                raise ValueError(f"tree {tree} has no node {ids[i]}")
            children[i] = places[tree, ids[i]]
    return children


def modes_of(
    names: Sequence[str],
) -> tuple[tuple[Callable[[Array, Array], Array], Array], ...]:
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


def steps_to_leaves(children: Sequence[Array], roots: Array, leaf: Array) -> int:
    """Steps from the roots to the last leaf.

    Raises:
        ValueError: Nodes make a circle.
    """
    level, depth = roots, 0
    while level.size and not leaf[level].all():
        branching = level[~leaf[level]]
        level = np.unique(np.concatenate([side[branching] for side in children]))
        depth += 1
        if depth > leaf.size:
            raise ValueError("the nodes of a tree make a circle")
    return depth
