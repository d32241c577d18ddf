"""Ensembles of decision trees in ai.onnx.ml: TreeEnsembleRegressor and -Classifier, TreeEnsemble.

TreeEnsemble, of version 5, numbers inner nodes and leaves apart and has tests for membership.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import check_allocation
from eps.cpu.decision_trees import Forest, range_of, values_of
from eps.cpu.post_transform import labels_of, transform_named, transform_of
from eps.cpu.tree_walk import TreeNodes, TreeWalk, modes_of
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MEMBER = 6
_EQUAL = 4
_SIDES = ("true", "false")
DOMAIN = "ai.onnx.ml"


def _ensemble(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml TreeEnsemble-5."""
    aggregate = _mode_name(info, "aggregate_function", 1, _AGGREGATES)
    finish = transform_named(_mode_name(info, "post_transform", 0, _TRANSFORMS), info.op_type)
    forest = _forest(info)

    def run(x: Array) -> Array:
        scores, _ = forest.scores(x if x.ndim == 2 else x.reshape(1, -1), aggregate)
        return finish(scores.astype(x.dtype))

    return run


def _mode_name(info: KernelInfo, name: str, default: int, names: Sequence[str]) -> str:
    number = int(info.attr(name, default))
    if not 0 <= number < len(names):
        raise ValueError(f"TreeEnsemble: {name} is {number}, expected 0 to {len(names) - 1}")
    return names[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ensemble:
    """The operator's attributes, checked.

    Attributes:
        to_leaf, child: For the true and the false side: whether it is a leaf, and which one.
    """

    modes: Array
    splits: Array
    features: Array
    missing: Array
    to_leaf: tuple[Array, ...]
    child: tuple[Array, ...]
    roots: Array
    targets: Array
    weights: Array
    n_targets: int

    @classmethod
    def of(cls, info: KernelInfo) -> _Ensemble:
        """Read them.

        Raises:
            ValueError: They differ in length, or name modes, nodes, leaves or targets that are
                not there.
        """
        modes, weights = np.asarray(info.attr("nodes_modes")), np.asarray(info.attr("leaf_weights"))
        targets = np.array(info.attr("leaf_targetids"), np.int64)
        ensemble = cls(
            modes=modes,
            splits=np.asarray(info.attr("nodes_splits")),
            features=_per_node(info, "nodes_featureids", modes.size),
            missing=_per_node(info, "nodes_missing_value_tracks_true", modes.size) != 0,
            to_leaf=tuple(_per_node(info, f"nodes_{s}leafs", modes.size) != 0 for s in _SIDES),
            child=tuple(_per_node(info, f"nodes_{s}nodeids", modes.size) for s in _SIDES),
            roots=np.array(info.attr("tree_roots"), np.int64),
            targets=targets,
            weights=weights,
            n_targets=int(info.attr("n_targets") or targets.max(initial=0) + 1),
        )
        ensemble._check()
        return ensemble

    def _check(self) -> None:
        nodes, leaves = self.modes.size, self.weights.size
        if self.targets.size != leaves or self.splits.size != nodes:
            raise ValueError(
                f"TreeEnsemble: {self.targets.size} targets of {leaves} leaves, "
                f"{self.splits.size} splits of {nodes} nodes"
            )
        for ids, leaf in zip(self.child, self.to_leaf, strict=True):
            _check_ids(ids[leaf], leaves, "leaf")
            _check_ids(ids[~leaf], nodes, "node")
        _check_ids(self.targets, self.n_targets, "target")
        _check_ids(self.roots, nodes, "root node")
        _check_ids(self.modes, _MEMBER + 1, "node mode")


def _forest(info: KernelInfo) -> Forest:
    """All trees in one numbering: inner nodes, the rest of their sets, leaves.

    Raises:
        ValueError: The attributes contradict each other, or trees make a circle.
    """
    ensemble = _Ensemble.of(info)
    sets = _sets(info, int(np.count_nonzero(ensemble.modes == _MEMBER)))
    chained = _Chains(ensemble.modes, ensemble.splits, sets)
    inner, leaves = chained.mode.size, ensemble.weights.size
    sides = zip(ensemble.child, ensemble.to_leaf, strict=True)
    on_true, on_false = (np.where(leaf, ids + inner, ids) for ids, leaf in sides)
    shape = check_allocation((inner + leaves, ensemble.n_targets), ensemble.weights.dtype)
    table, named = np.zeros(shape, ensemble.weights.dtype), np.zeros(shape, np.bool_)
    own = np.arange(inner, inner + leaves)
    table[own, ensemble.targets] = ensemble.weights
    named[own, ensemble.targets] = True
    feature = ensemble.features[chained.origin]
    return Forest(
        walk=TreeWalk(
            TreeNodes(
                count=inner + leaves,
                roots=ensemble.roots,
                feature=feature,
                threshold=chained.split,
                when_true=on_true[chained.origin],
                when_false=np.where(chained.next >= 0, chained.next, on_false[chained.origin]),
                missing_is_true=ensemble.missing[chained.origin],
                modes=modes_of([_MODES[m] for m in chained.mode]),
            )
        ),
        trees=ensemble.roots.size,
        features=range_of(feature),
        weights=table,
        has_weight=named,
    )


def _per_node(info: KernelInfo, name: str, count: int) -> Array:
    values = np.array(info.attr(name) or [0] * count, np.int64)
    if values.size != count:
        raise ValueError(f"TreeEnsemble: {values.size} {name} for {count} nodes")
    return values


def _check_ids(ids: Array, count: int, what: str) -> None:
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < count:
        wrong = ids[(ids < 0) | (ids >= count)][0]
        raise ValueError(f"TreeEnsemble: {what} {wrong} is not in [0, {count})")


def _sets(info: KernelInfo, count: int) -> list[Array]:
    """The members of each BRANCH_MEMBER node; NaN ends a set."""
    attribute = info.attr("membership_values")
    values = np.asarray(attribute if attribute is not None else [])
    ends = np.flatnonzero(np.isnan(values)) if values.size else np.array([], np.int64)
    if ends.size != count:
        raise ValueError(f"TreeEnsemble: {ends.size} sets of members for {count} nodes that test")
    starts = [0, *(ends[:-1] + 1)]
    return [values[start:end] for start, end in zip(starts, ends, strict=False)]


class _Chains:
    """Nodes in which a test for membership is a chain of tests for equality.

    Attributes:
        origin: Of each node, which node of the model it serves.
        next: Of each node, which one goes on where the test fails; -1 is the model's own.
    """

    def __init__(self, modes: Array, splits: Array, sets: Sequence[Array]) -> None:
        mode: list[int] = modes.tolist()
        split: list[Any] = splits.tolist()
        origin = list(range(modes.size))
        following = [-1] * modes.size
        for node, members in zip(np.flatnonzero(modes == _MEMBER), sets, strict=True):
            mode[node], split[node] = _EQUAL, members[0] if members.size else np.nan
            last = int(node)
            for member in members[1:]:
                following[last] = len(mode)
                last = len(mode)
                mode.append(_EQUAL)
                split.append(member)
                origin.append(int(node))
                following.append(-1)
        self.mode = np.array(mode, np.intp)
        self.split = np.array(split, splits.dtype)
        self.origin = np.array(origin, np.intp)
        self.next = np.array(following, np.intp)


def _floats(x: Array) -> Array:
    """Rows [N, features] of floats."""
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    return rows if rows.dtype.kind == "f" else rows.astype(np.float32)


def _regressor(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml TreeEnsembleRegressor; a target that no leaf names is 0, as in ONNX Runtime."""
    targets = int(info.attr("n_targets", 1))
    forest = Forest.of(info, "target", targets, np.array(info.attr("target_ids"), np.intp))
    base, finish = values_of(info, "base_values"), transform_of(info)
    aggregate = info.attr("aggregate_function", "SUM")

    def run(x: Array) -> Array:
        scores, there = forest.scores(_floats(x), aggregate)
        if base.size:
            scores = np.where(there, scores + base.astype(scores.dtype), scores)
        return finish(scores.astype(np.float32))

    return run


def _classifier(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml TreeEnsembleClassifier; two classes as ONNX Runtime takes them.

    Leaves that all name one class of two give the score of the second: its counterpart is
    1 - score where no weight is negative, else -score.
    """
    labels = labels_of(info)
    ids = np.array(info.attr("class_ids"), np.intp)
    single = len(labels) == 2 and np.unique(ids).size == 1
    if single:
        forest = Forest.of(info, "class", 1, np.zeros_like(ids))
    else:
        forest = Forest.of(info, "class", max(len(labels), ids.max(initial=0) + 1), ids)
    base, finish = values_of(info, "base_values"), transform_of(info)
    positive = bool((values_of(info, "class_weights") >= 0).all())
    logistic = info.attr("post_transform", "NONE") == "LOGISTIC"
    probit = info.attr("post_transform", "NONE") == "PROBIT"

    def one_class(x: Array) -> tuple[Array, Array]:
        scores, _ = forest.scores(_floats(x), "SUM")
        score = scores[:, 0]
        if base.size:
            score = score + score.dtype.type(base[-1])
        label = labels[(score > (0.5 if positive else 0)).astype(np.intp)]
        score = score.astype(np.float32, copy=False)
        if logistic:
            return label, finish(np.stack((-score, score), 1))
        if probit:
            return label, finish(score[:, None])
        return label, np.stack((1 - score if positive else -score, score), 1)

    def classes(x: Array) -> tuple[Array, Array]:
        scores, _ = forest.scores(_floats(x), "SUM")
        if base.size:
            scores = scores + base.astype(scores.dtype)
        return labels[np.argmax(scores, 1)], finish(scores.astype(np.float32, copy=False))

    return one_class if single else classes


KERNELS: tuple[KernelDef, ...] = (
    kernel("TreeEnsembleRegressor", domain=DOMAIN, since=(1, 5))(_regressor),
    kernel("TreeEnsembleClassifier", domain=DOMAIN, since=(1, 5))(_classifier),
    kernel("TreeEnsemble", domain=DOMAIN, since=(5, 5))(_ensemble),
)
