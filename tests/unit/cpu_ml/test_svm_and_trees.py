"""Support vector machines, linear classifiers and TreeEnsemble-5: odd forms and hostile ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from unit.cpu.single_node import run_node
from unit.cpu_contrib.peer import Array, both, f32

from ort_lite.status import Fail, RuntimeException

ML = "ai.onnx.ml"
FINISHES = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
X = np.array([[-2.0], [-0.3], [0.3], [0.7], [2.0]], np.float32)


def agree(op: str, x: Array, **attributes: Any) -> None:
    mine, theirs = both(op, [x], 2, domain=ML, **attributes)
    assert mine[0].tolist() == theirs[0].tolist()
    np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_one_row_of_coefficients_tells_two_classes_apart(finish: str, slope: float) -> None:
    agree("LinearClassifier", X, coefficients=[slope], intercepts=[0.05],
          classlabels_ints=[3, 5], post_transform=finish)  # fmt: skip


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_coefficients_that_no_feature_needs_are_not_read(finish: str, rows: int) -> None:
    """Of onnxruntime.datasets' logreg_iris.onnx half of them, for its input has two features."""
    coefficients = [0.4, -1.4, 2.1, -1.0, 0.6, -1.7, 0.5, -1.4, -1.7, -1.2, 2.2, 2.4]
    agree(
        "LinearClassifier",
        f32(4, 2),
        coefficients=coefficients,
        intercepts=[0.2, 0.6, -0.9][:rows],
        classlabels_ints=[3, 5, 6][: max(rows, 2)],
        post_transform=finish,
    )


def test_a_score_that_is_no_number_is_not_the_best_one() -> None:
    """Infinite features make some scores NaN, which onnxruntime takes in the first column alone."""
    inf, nan = np.inf, np.nan
    rows = [[inf, 1, inf], [inf, 1, -inf], [-inf, inf, 1], [nan, 1, 2], [1, -inf, -inf], [1, 2, 3]]
    agree(
        "LinearClassifier",
        np.array(rows, np.float32),
        coefficients=[0.5, -0.2, 0.1, -0.3, 0.4, 0.2, 0.1, 0.1, 0.9, 0.5, 0.5, 0.5],
        intercepts=[0.1, 0.2, 0.3, 0.4],
        classlabels_ints=[5, 6, 7, 8],
    )


@pytest.mark.parametrize("finish", FINISHES)
def test_a_row_without_labels_tells_one_from_zero(finish: str) -> None:
    agree("LinearClassifier", X, coefficients=[-0.5], intercepts=[0.05], post_transform=finish)


def test_too_few_coefficients_are_an_error() -> None:
    few: dict[str, Any] = {"coefficients": [1.0] * 5, "intercepts": [0.0, 0.0]}
    with pytest.raises(RuntimeException, match="5 coefficients for 2 rows of 3 features"):
        run_node("LinearClassifier", f32(4, 3), domain=ML, classlabels_ints=[0, 1], **few)


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "labels", [{"classlabels_ints": [3, 5]}, {"classlabels_strings": ["n", "y"]}]
)
def test_two_classes_of_support_vectors(finish: str, sign: int, labels: dict[str, Any]) -> None:
    options = {"coefficients": [0.4, 0.6 * sign], "support_vectors": [0.5, 1.0], "rho": [0.05],
               "vectors_per_class": [1, 1], "kernel_params": [0.0] * 3,
               "post_transform": finish, **labels}  # fmt: skip
    agree("SVMClassifier", X, **options)
    agree("SVMClassifier", X, prob_a=[-1.5], prob_b=[0.1], **options)


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_plane_for_each_class(finish: str, sign: int, count: int) -> None:
    agree("SVMClassifier", X, coefficients=[0.4, 0.6 * sign, 0.3][:count], rho=[0.05],
          kernel_params=[0.0] * 3, classlabels_ints=[3, 5, 7][:count],
          post_transform=finish)  # fmt: skip


def ensemble(**changes: Any) -> dict[str, Any]:
    """Two trees: x0 <= 0.5 of leaves 1 and 2; x1 in {2, 0} of leaves 4 and 8."""
    plain: dict[str, Any] = {
        "tree_roots": [0, 1],
        "nodes_featureids": [0, 1],
        "nodes_modes": np.array([0, 6], np.uint8),
        "nodes_splits": np.array([0.5, 0], np.float32),
        "nodes_truenodeids": [0, 2],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 3],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 0, 1, 1],
        "leaf_weights": np.array([1, 2, 4, 8], np.float32),
        "membership_values": np.array([2, 0, np.nan], np.float32),
        "n_targets": 2,
    }
    found = {**plain, **changes}
    return {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in found.items()
        if value is not None
    }


def trees(x: Array, **changes: Any) -> Any:
    return run_node("TreeEnsemble", x, domain=ML, domain_version=5, **ensemble(**changes))


def test_members_of_a_set_take_the_true_branch() -> None:
    x = np.array([[0, 2], [1, 0], [0, 1], [1, np.nan]], np.float32)
    assert trees(x).tolist() == [[1, 4], [2, 4], [1, 8], [2, 8]]
    tracked = trees(x, nodes_missing_value_tracks_true=[0, 1])
    assert tracked.tolist() == [[1, 4], [2, 4], [1, 8], [2, 4]]


def test_one_and_two_are_softmax_and_logistic_as_onnx_says() -> None:
    x = np.array([[0, 2]], np.float32)
    scores = np.array([1.0, 4.0])
    powers = np.exp(scores)
    np.testing.assert_allclose(trees(x, post_transform=1)[0], powers / powers.sum(), rtol=1e-6)
    np.testing.assert_allclose(trees(x, post_transform=2)[0], 1 / (1 + 1 / powers), rtol=1e-6)


def test_features_of_doubles_give_doubles() -> None:
    assert trees(np.zeros((1, 2))).dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nodes_truenodeids": [9, 2]}, "leaf 9 is not in"),
        ({"nodes_trueleafs": [0, 1], "nodes_truenodeids": [7, 2]}, "node 7 is not in"),
        ({"nodes_trueleafs": [0, 1], "nodes_truenodeids": [0, 2]}, "make a circle"),
        ({"leaf_targetids": [0, 0, 1, 2]}, "target 2 is not in"),
        ({"leaf_targetids": [0, 0, 1]}, "3 targets of 4 leaves"),
        ({"tree_roots": [-1]}, "root node -1 is not in"),
        ({"nodes_featureids": [0]}, "1 nodes_featureids for 2 nodes"),
        ({"nodes_modes": np.array([0, 7], np.uint8)}, "node mode 7 is not in"),
        ({"membership_values": None}, "0 sets of members for 1 nodes"),
        ({"post_transform": 5}, "post_transform is 5, expected 0 to 4"),
        ({"n_targets": 1 << 50}, "would take"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_ensemble_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(Fail, match=says):
        trees(np.zeros((1, 2), np.float32), **changes)


@pytest.mark.parametrize("feature", [-1, 2])
def test_a_feature_that_rows_have_not_is_refused(feature: int) -> None:
    with pytest.raises(RuntimeException, match="is used"):
        trees(np.zeros((1, 2), np.float32), nodes_featureids=[0, feature])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"coefficients": [1.0]}, "1 coefficients, 1 rho and 2 numbers of vectors"),
        ({"rho": []}, "do not fit"),
        ({"prob_a": [1.0]}, "1 prob_a and 0 prob_b"),
        ({"kernel_type": "CUBE"}, "kernel_type is 'CUBE'"),
        ({"classlabels_ints": []}, "no class labels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_machine_is_refused(changes: dict[str, Any], says: str) -> None:
    options = {"coefficients": [0.4, 0.6], "support_vectors": [0.5, 1.0], "rho": [0.05],
               "vectors_per_class": [1, 1], "classlabels_ints": [3, 5], **changes}  # fmt: skip
    given = {name: value for name, value in options.items() if value != []}
    with pytest.raises(Fail, match=says):
        run_node("SVMClassifier", f32(2, 1), domain=ML, outputs=2, **given)
