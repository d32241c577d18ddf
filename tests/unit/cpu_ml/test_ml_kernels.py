"""Operators of ai.onnx.ml on the CPU EP, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu.single_node import run_node
from unit.cpu_contrib.peer import Array, both, f32

from ort_lite.status import Fail, RuntimeException

ML = "ai.onnx.ml"
NAN = float("nan")


def texts(*values: str) -> Array:
    return np.array(values, object)


def floats(count: int) -> list[float]:
    return [float(value) for value in f32(count)]


def same(mine: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert a == pytest.approx(b)
        return
    assert mine.dtype == theirs.dtype
    if theirs.dtype.kind == "f":
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    else:
        assert mine.tolist() == theirs.tolist()


def agree(op: str, inputs: list[Array | None], outputs: int = 1, **attributes: Any) -> None:
    mine, theirs = both(op, inputs, outputs, domain=ML, **attributes)
    for a, b in zip(mine, theirs, strict=True):
        same(a, b)


CASES: list[tuple[str, list[Array | None], int, dict[str, Any]]] = [
    ("ArrayFeatureExtractor", [f32(3, 5), np.array([4, 0, 2])], 1, {}),
    ("Binarizer", [f32(3, 5)], 1, {"threshold": 0.2}),
    ("CategoryMapper", [texts("a", "b", "zz")], 1,
     {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "b", "c"], "default_int64": -1}),
    ("CategoryMapper", [np.array([1, 3, 9])], 1,
     {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "b", "c"], "default_string": "?"}),
    ("FeatureVectorizer", [f32(3, 2), f32(3, 3)], 1, {"inputdimensions": [2, 3]}),
    ("Imputer", [np.array([[1, NAN, 2], [3, 4, NAN]], np.float32)], 1,
     {"imputed_value_floats": [9.0, 8.0, 7.0], "replaced_value_float": NAN}),
    ("LabelEncoder", [texts("a", "b", "q")], 1,
     {"keys_strings": ["a", "b"], "values_int64s": [5, 6], "default_int64": -7}),
    ("LabelEncoder", [np.array([1, 2, 5])], 1,
     {"keys_int64s": [1, 2], "values_strings": ["x", "y"], "default_string": "d"}),
    ("LinearClassifier", [f32(4, 3)], 2,
     {"coefficients": floats(9), "intercepts": [0.1, 0.2, 0.3], "classlabels_ints": [3, 5, 7],
      "post_transform": "SOFTMAX"}),
    ("LinearClassifier", [f32(4, 3)], 2,
     {"coefficients": floats(3), "intercepts": [0.1], "classlabels_strings": ["n", "y"],
      "post_transform": "LOGISTIC"}),
    ("OneHotEncoder", [np.array([[1, 3], [2, 9]])], 1, {"cats_int64s": [1, 2, 3], "zeros": 1}),
    ("OneHotEncoder", [texts("a", "z")], 1, {"cats_strings": ["a", "b"], "zeros": 1}),
    ("Scaler", [f32(4, 3)], 1, {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 0.25, 2.0]}),
    ("Scaler", [np.array([[1, 2, 3]])], 1, {"offset": [1.0], "scale": [0.5]}),
    ("ZipMap", [f32(2, 3)], 1, {"classlabels_strings": ["a", "b", "c"]}),
    ("ZipMap", [f32(2, 3)], 1, {"classlabels_int64s": [5, 6, 7]}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "outputs", "attributes"), CASES)
def test_an_operator_gives_onnxruntimes_values(
    op: str, inputs: list[Array | None], outputs: int, attributes: dict[str, Any]
) -> None:
    agree(op, inputs, outputs, **attributes)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_are_normalised(norm: str) -> None:
    agree("Normalizer", [f32(4, 3)], norm=norm)


@pytest.mark.parametrize("finish", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_linear_regression_with_every_transform(finish: str) -> None:
    options = {"coefficients": [0.1, 0.2, 0.3, 0.1, 0.1, 0.2], "intercepts": [0.1, 0.2]}
    x = np.abs(f32(4, 3)) * np.float32(0.1)
    agree("LinearRegressor", [x], targets=2, post_transform=finish, **options)


@pytest.mark.parametrize("shape", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(shape: str) -> None:
    options = {"kernel_type": shape, "kernel_params": [0.3, 0.1, 2.0]}
    agree("SVMRegressor", [f32(4, 3)], n_supports=2, support_vectors=floats(6),
          coefficients=[0.5, -0.7], rho=[0.2], **options)  # fmt: skip
    agree("SVMClassifier", [f32(4, 3)], 2, vectors_per_class=[2, 1, 2],
          support_vectors=floats(15), coefficients=floats(10), rho=[0.1, 0.2, 0.3],
          classlabels_ints=[0, 1, 2], **options)  # fmt: skip


TREES: dict[str, Any] = {
    "nodes_treeids": [0] * 5 + [1] * 3,
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_values": [0.1, 0.5, 0.0, 0.0, 0.0, -0.2, 0.0, 0.0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
    "nodes_missing_value_tracks_true": [0, 1, 0, 0, 0, 1, 0, 0],
}
LEAVES = {"class_treeids": [0, 0, 0, 1, 1], "class_nodeids": [2, 3, 4, 1, 2]}


def modes(first: str, second: str, third: str) -> list[str]:
    return [first, second, "LEAF", "LEAF", "LEAF", third, "LEAF", "LEAF"]


MIXED = modes("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT")


def rows() -> Array:
    x = f32(9, 3)
    x[0, 0] = x[1, 2] = NAN
    return x


@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_for_regression(mode: str, aggregate: str) -> None:
    options = {
        "target_treeids": [0, 0, 0, 0, 1, 1],
        "target_nodeids": [2, 3, 4, 4, 1, 2],
        "target_ids": [0, 1, 0, 1, 0, 1],
        "target_weights": floats(6),
        "base_values": [0.1, 0.2],
        "nodes_modes": modes(*[f"BRANCH_{mode}"] * 3),
    }
    agree("TreeEnsembleRegressor", [rows()], n_targets=2, aggregate_function=aggregate,
          **TREES, **options)  # fmt: skip


@pytest.mark.parametrize("finish", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
def test_trees_for_three_classes(finish: str) -> None:
    options = {"class_ids": [0, 1, 2, 0, 1], "class_weights": [0.3, 0.4, 0.2, 0.1, 0.5]}
    agree("TreeEnsembleClassifier", [rows()], 2, post_transform=finish, nodes_modes=MIXED,
          classlabels_strings=["a", "b", "c"], **TREES, **LEAVES, **options)  # fmt: skip


@pytest.mark.parametrize("finish", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "mixed"])
def test_trees_for_two_classes_that_name_one(finish: str, sign: int) -> None:
    options = {"class_ids": [0] * 5, "class_weights": [0.1, 0.4, 0.2 * sign, 0.05, 0.1 * sign]}
    agree("TreeEnsembleClassifier", [rows()], 2, post_transform=finish, nodes_modes=MIXED,
          classlabels_int64s=[0, 1], **TREES, **LEAVES, **options)  # fmt: skip


def test_a_forest_of_realistic_size() -> None:
    """200 trees of depth 8, as gradient boosting makes them, on 1000 rows."""
    random = np.random.default_rng(5)
    inner, whole, trees = 2**8 - 1, 2**9 - 1, 200
    node = np.arange(whole)
    options: dict[str, Any] = {
        "nodes_treeids": np.repeat(np.arange(trees), whole).tolist(),
        "nodes_nodeids": np.tile(node, trees).tolist(),
        "nodes_featureids": random.integers(0, 20, trees * whole).tolist(),
        "nodes_values": random.standard_normal(trees * whole).astype(np.float32).tolist(),
        "nodes_modes": (["BRANCH_LT"] * inner + ["LEAF"] * (whole - inner)) * trees,
        "nodes_truenodeids": np.tile(np.where(node < inner, 2 * node + 1, 0), trees).tolist(),
        "nodes_falsenodeids": np.tile(np.where(node < inner, 2 * node + 2, 0), trees).tolist(),
        "target_treeids": np.repeat(np.arange(trees), whole - inner).tolist(),
        "target_nodeids": np.tile(node[inner:], trees).tolist(),
        "target_ids": [0] * (trees * (whole - inner)),
        "target_weights": (random.standard_normal(trees * (whole - inner)) * 0.01).tolist(),
    }
    agree("TreeEnsembleRegressor", [f32(1000, 20)], n_targets=1, **options)


def test_maps_become_rows() -> None:
    run = run_node("DictVectorizer", {"b": 2.0, "a": 1.0}, domain=ML, string_vocabulary=["a", "b"])
    assert run.tolist() == [[1.0, 2.0]]
    run = run_node("CastMap", {3: 2.0, 1: 5.0}, domain=ML, cast_to="TO_INT64")
    assert run.tolist() == [[5, 2]]
    run = run_node("CastMap", {2: 7.0}, domain=ML, map_form="SPARSE", max_map=4)
    assert run.tolist() == [[0.0, 0.0, 7.0, 0.0]]


def broken(**changes: list[Any]) -> dict[str, Any]:
    leaves = {"target_treeids": [0], "target_nodeids": [2], "target_ids": [0],
              "target_weights": [1.0], "n_targets": 1, "nodes_modes": MIXED}  # fmt: skip
    return {**TREES, **leaves, **changes}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (broken(nodes_truenodeids=[9, 3, 0, 0, 0, 1, 0, 0]), "tree 0 has no node 9"),
        (broken(nodes_truenodeids=[1, 1, 0, 0, 0, 1, 0, 0]), "make a circle"),
        (broken(nodes_modes=modes("BRANCH_XX", "BRANCH_LT", "BRANCH_LT")), "'BRANCH_XX'"),
        (broken(post_transform="SQUARE"), "post_transform is 'SQUARE'"),
    ],
    ids=["missing node", "circle", "mode", "transform"],
)
def test_a_broken_ensemble_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(Fail, match=says):
        run_node("TreeEnsembleRegressor", f32(2, 3), domain=ML, **options)


def test_rows_with_too_few_features_are_refused() -> None:
    with pytest.raises(RuntimeException, match="rows of 2 features, feature 2 is used"):
        run_node("TreeEnsembleRegressor", f32(2, 2), domain=ML, **broken())


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("widths", [[2, 3], [1, 5], [4, 2]])
def test_vectors_of_features_are_float32(kind: type[Any], widths: list[int]) -> None:
    inputs = [np.arange(4).reshape(2, 2).astype(kind), np.arange(6).reshape(2, 3).astype(kind)]
    mine, theirs = both("FeatureVectorizer", inputs, domain="ai.onnx.ml", inputdimensions=widths)
    assert mine[0].dtype == theirs[0].dtype == np.float32
    np.testing.assert_array_equal(mine[0], theirs[0])
