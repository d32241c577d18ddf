"""Ensembles of decision trees of all shapes, walked in blocks: onnxruntime's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu.single_node import run_node
from unit.cpu_contrib.peer import Array, both

from ort_lite.status import Fail

ML = "ai.onnx.ml"
FEATURES = 5


def forest(
    trees: int, depth: int, chance: float, *, seed: int, modes: tuple[str, ...] = ("BRANCH_LEQ",)
) -> dict[str, list[Any]]:
    """Attributes of trees that go on with a chance at each node, and down to `depth` at one."""
    drawn = np.random.default_rng(seed)
    columns = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids")
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in columns}
    nodes |= {"nodes_falsenodeids": [], "nodes_missing_value_tracks_true": []}
    for tree in range(trees):
        levels, children = [0], list[tuple[int, int]]()
        for node in range(10_000):
            if node == len(levels):
                break
            last = levels[node]
            goes_on = last < depth and (node == len(levels) - 1 or drawn.random() < chance)
            children.append((len(levels), len(levels) + 1) if goes_on else (0, 0))
            if goes_on:
                levels += [last + 1, last + 1]
        for node, (yes, no) in enumerate(children):
            row = (tree, node, str(drawn.choice(modes)) if yes else "LEAF")
            split = round(float(drawn.standard_normal()), 1)
            values = (*row, int(drawn.integers(FEATURES)) if yes else 0, split, yes, no)
            for name, value in zip(nodes, (*values, int(drawn.integers(2))), strict=True):
                nodes[name].append(value)
    return nodes


def leaves_of(nodes: dict[str, list[Any]]) -> list[tuple[int, int]]:
    rows = zip(nodes["nodes_treeids"], nodes["nodes_nodeids"], nodes["nodes_modes"], strict=True)
    return [(tree, node) for tree, node, mode in rows if mode == "LEAF"]


def rows_of(count: int, *, nan: bool = False) -> Array:
    x = np.random.default_rng(count).standard_normal((count, FEATURES)).astype(np.float32).round(1)
    if nan:
        x[::3, 1] = np.nan
    return x


def regress(nodes: dict[str, list[Any]], x: Array, **attributes: Any) -> None:
    mine, theirs = both(
        "TreeEnsembleRegressor",
        [x],
        domain=ML,
        n_targets=1,
        **weights_of(nodes),
        **nodes,
        **attributes,
    )
    np.testing.assert_allclose(mine[0], theirs[0], rtol=2e-5, atol=2e-5)


def weights_of(nodes: dict[str, list[Any]]) -> dict[str, Any]:
    leaves = leaves_of(nodes)
    return {
        "target_treeids": [tree for tree, _ in leaves],
        "target_nodeids": [node for _, node in leaves],
        "target_ids": [0] * len(leaves),
        "target_weights": np.random.default_rng(2).standard_normal(len(leaves)).tolist(),
    }


@pytest.mark.parametrize("rows", [1, 7, 3000])
@pytest.mark.parametrize(("depth", "chance"), [(0, 0.0), (3, 1.0), (40, 0.0), (14, 0.6)])
def test_full_deep_and_uneven_trees_agree(rows: int, depth: int, chance: float) -> None:
    """3,000 rows by 30 trees are several blocks; a depth of 40 is one long branch."""
    regress(forest(30, depth, chance, seed=depth), rows_of(rows))


@pytest.mark.parametrize("rows", [1, 500])
@pytest.mark.parametrize("modes", [("BRANCH_LT",), ("BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ")])
def test_missing_values_go_where_the_node_says(modes: tuple[str, ...], rows: int) -> None:
    regress(forest(20, 9, 0.7, seed=4, modes=modes), rows_of(rows, nan=True))


@pytest.mark.parametrize("rows", [1, 200])
@pytest.mark.parametrize("aggregate", ["AVERAGE", "MIN", "MAX"])
def test_aggregates_of_uneven_trees_agree(aggregate: str, rows: int) -> None:
    regress(forest(9, 8, 0.6, seed=6), rows_of(rows), aggregate_function=aggregate)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
def test_leaves_without_weights_add_nothing(aggregate: str) -> None:
    """As with weights of 0: onnxruntime adds what `nodes_values` has for such a leaf."""
    nodes, x = forest(9, 4, 0.8, seed=5), rows_of(200)
    zeros = weights_of(nodes)
    zeros["target_weights"][::3] = [0.0] * len(zeros["target_weights"][::3])
    few = {name: [v for n, v in enumerate(values) if n % 3] for name, values in zeros.items()}
    same: dict[str, Any] = {"domain": ML, "n_targets": 1, "aggregate_function": aggregate, **nodes}
    mine = run_node("TreeEnsembleRegressor", x, **few, **same)
    _, theirs = both("TreeEnsembleRegressor", [x], **zeros, **same)
    np.testing.assert_allclose(mine, theirs[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("aggregate", ["SUM", "MIN", "MAX"])
def test_leaves_that_name_one_of_two_targets_leave_the_other(aggregate: str) -> None:
    nodes = forest(9, 4, 0.8, seed=5)
    weights = weights_of(nodes) | {"n_targets": 2, "base_values": [0.5, -0.25]}
    weights["target_ids"] = [int(n % 3 == 0) for n in range(len(weights["target_ids"]))]
    mine, theirs = both(
        "TreeEnsembleRegressor",
        [rows_of(200)],
        domain=ML,
        aggregate_function=aggregate,
        **weights,
        **nodes,
    )
    np.testing.assert_allclose(mine[0], theirs[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("classes", [3, 4])
@pytest.mark.parametrize("one_each", [True, False])
def test_classes_of_trees_agree(classes: int, *, one_each: bool) -> None:
    """Boosted trees have one class each, and random forests all of them in each leaf."""
    nodes = forest(12, 7, 0.7, seed=classes)
    leaves = leaves_of(nodes)
    named = [
        (tree, node, label)
        for tree, node in leaves
        for label in ([tree % classes] if one_each else range(classes))
    ]
    drawn = np.random.default_rng(3)
    mine, theirs = both(
        "TreeEnsembleClassifier",
        [rows_of(700)],
        2,
        domain=ML,
        class_treeids=[tree for tree, _, _ in named],
        class_nodeids=[node for _, node, _ in named],
        class_ids=[label for _, _, label in named],
        class_weights=drawn.random(len(named)).tolist(),
        classlabels_int64s=[10 + label for label in range(classes)],
        **nodes,
    )
    assert mine[0].tolist() == theirs[0].tolist()
    np.testing.assert_allclose(mine[1], theirs[1], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("one_each", [True, False])
def test_sums_are_made_in_the_order_of_the_trees(*, one_each: bool, double: bool) -> None:
    """Bit for bit as onnxruntime's: weights of thirds make ties that rounding decides.

    So few rows and trees are one thread's there.
    """
    nodes = forest(70, 5, 0.8, seed=9)
    named = [
        (tree, node, label)
        for tree, node in leaves_of(nodes)
        for label in ([tree % 3] if one_each else range(3))
    ]
    weights = np.random.default_rng(5).integers(1, 4, len(named)) / 3
    mine, theirs = both(
        "TreeEnsembleClassifier",
        [rows_of(40).astype(np.float64 if double else np.float32)],
        2,
        domain=ML,
        class_treeids=[tree for tree, _, _ in named],
        class_nodeids=[node for _, node, _ in named],
        class_ids=[label for _, _, label in named],
        class_weights=weights.tolist(),
        classlabels_int64s=[10, 11, 12],
        **nodes,
    )
    assert mine[0].tolist() == theirs[0].tolist()
    np.testing.assert_array_equal(mine[1], theirs[1])


@pytest.mark.parametrize("rows", [1, 2])
def test_one_number_for_each_tree_is_added_in_order_too(rows: int) -> None:
    nodes = forest(70, 5, 0.8, seed=9)
    mine, theirs = both(
        "TreeEnsembleRegressor",
        [rows_of(rows)],
        domain=ML,
        n_targets=1,
        **weights_of(nodes),
        **nodes,
    )
    np.testing.assert_array_equal(mine[0], theirs[0])


def test_a_leaf_of_a_tree_that_is_not_there_is_an_error() -> None:
    nodes = forest(2, 2, 1.0, seed=1)
    wrong: dict[str, Any] = {"target_treeids": [7], "target_nodeids": [0], "target_ids": [0]}
    with pytest.raises(Fail, match="tree 7 has no node 0"):
        run_node(
            "TreeEnsembleRegressor", rows_of(2), domain=ML, target_weights=[1.0], **wrong, **nodes
        )
