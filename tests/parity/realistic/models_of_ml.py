"""Recorded cases: ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper
from parity.realistic.case import RecordedCase, node
from parity.realistic.drawn import Drawn, ints, normal, texts, uniform, whole

ML = "ai.onnx.ml"


def listed(drawn: Drawn, key: str) -> list[Any]:
    """An attribute's numbers."""
    values: list[Any] = drawn.array(key).reshape(-1).tolist()
    return values


def ml(op: str, *inputs: Any, version: int = 3, **options: Any) -> RecordedCase:
    """A case of ai.onnx.ml `version`."""
    return node(op, *inputs, domain=ML, domain_version=version, **{"rtol": 1e-5, **options})


def _columns() -> list[RecordedCase]:
    x = normal(300, 8)
    words = texts(*("abcdefgh"[i * 5 % 8] for i in range(90)))
    pairs = {"cats_int64s": list(range(8)), "cats_strings": list("abcdefgh")}
    return [
        ml("ArrayFeatureExtractor", x, ints(4, 0, 7), rtol=0),
        ml("Binarizer", x, threshold=0.2, rtol=0),
        ml("CategoryMapper", words, default_int64=-1, **pairs),
        ml("CategoryMapper", whole(0, 12, 90), what="to text", default_string="?", **pairs),
        ml("FeatureVectorizer", x, normal(300, 3), inputdimensions=[8, 3], rtol=0),
        ml(
            "Imputer",
            _with_gaps(),
            imputed_value_floats=[1.0, 2.0, 3.0, 4.0],
            replaced_value_float=float("nan"),
            rtol=0,
        ),
        ml(
            "Imputer",
            whole(0, 5, 90, 2),
            what="int64",
            imputed_value_int64s=[7],
            replaced_value_int64=3,
        ),
        ml(
            "LabelEncoder",
            words,
            keys_strings=["a", "b", "c"],
            values_int64s=[5, 6, 7],
            default_int64=-7,
        ),
        ml(
            "LabelEncoder",
            whole(0, 12, 90),
            what="to text",
            keys_int64s=[1, 2, 9],
            values_strings=["x", "y", "z"],
            default_string="d",
        ),
        ml(
            "LabelEncoder",
            whole(0, 12, 90, dtype=np.float32),
            what="floats",
            keys_floats=[1.0, 2.0],
            values_floats=[0.5, -1.0],
            default_float=9.0,
        ),
        ml("Normalizer", x, norm="L2"),
        ml("Normalizer", x, what="L1", norm="L1"),
        ml("Normalizer", uniform(0, 9, 300, 8), what="MAX", norm="MAX"),
        ml("OneHotEncoder", whole(0, 9, 90), cats_int64s=list(range(7)), zeros=1, rtol=0),
        ml("OneHotEncoder", words, what="text", cats_strings=list("abcd"), zeros=1, rtol=0),
        ml(
            "Scaler",
            x,
            offset=listed(normal(8), "offset"),
            scale=listed(uniform(0.5, 2, 8), "scale"),
            rtol=0,
        ),
        ml("ZipMap", uniform(0, 1, 20, 3), classlabels_strings=["a", "b", "c"], rtol=0),
        ml("ZipMap", uniform(0, 1, 20, 3), what="int64", classlabels_int64s=[5, 6, 7], rtol=0),
    ]


def _with_gaps() -> np.ndarray:
    x = np.arange(400, dtype=np.float32).reshape(100, 4)
    x[x % 7 == 3] = np.nan
    return x


def _linear() -> list[RecordedCase]:
    x = normal(300, 8)
    three = {"coefficients": listed(normal(24), "three"), "intercepts": [0.1, 0.2, 0.3]}
    two = {"coefficients": listed(normal(8), "two"), "intercepts": [0.1]}
    return [
        *(
            ml(
                "LinearClassifier",
                x,
                what=t,
                outputs=2,
                classlabels_ints=[3, 5, 7],
                post_transform=t,
                **three,
            )
            for t in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
        ),
        *(
            ml(
                "LinearClassifier",
                x,
                what=f"two {t}",
                outputs=2,
                classlabels_strings=["n", "y"],
                post_transform=t,
                **two,
            )
            for t in ("NONE", "LOGISTIC", "SOFTMAX")
        ),
        *(
            ml("LinearRegressor", x, what=t, targets=3, post_transform=t, **three)
            for t in ("NONE", "SOFTMAX")
        ),
    ]


def _support_vectors() -> list[RecordedCase]:
    x = normal(200, 6, scale=0.5)
    cases = []
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        options = {"kernel_type": kernel, "kernel_params": [0.3, 0.1, 2.0]}
        vectors = listed(normal(12, 6), "vectors")
        many = {
            **options,
            "support_vectors": vectors,
            "vectors_per_class": [4, 3, 5],
            "rho": [0.1, 0.2, -0.3],
            "coefficients": listed(normal(24), "many"),
        }
        two = {
            **options,
            "support_vectors": vectors,
            "vectors_per_class": [5, 7],
            "rho": [0.1],
            "coefficients": listed(normal(12), "two"),
        }
        sure = {"prob_a": [-1.5, -0.7, -2.0], "prob_b": [0.1, -0.2, 0.3]}
        cases += [
            ml(
                "SVMRegressor",
                x,
                what=kernel,
                n_supports=12,
                support_vectors=vectors,
                coefficients=listed(normal(12), "one"),
                rho=[0.2],
                **options,
            ),
            ml("SVMClassifier", x, what=kernel, outputs=2, classlabels_ints=[0, 1, 2], **many),
            ml(
                "SVMClassifier",
                x,
                what=f"{kernel} probabilities",
                outputs=2,
                classlabels_ints=[4, 2, 9],
                rtol=2e-5,
                **{**many, **sure},
            ),
            ml(
                "SVMClassifier",
                x,
                what=f"{kernel} two",
                outputs=2,
                classlabels_strings=["n", "y"],
                **two,
            ),
            ml(
                "SVMClassifier",
                x,
                what=f"{kernel} two probabilities",
                outputs=2,
                classlabels_ints=[0, 1],
                prob_a=[-1.5],
                prob_b=[0.1],
                **two,
            ),
        ]
    linear = {
        "kernel_type": "LINEAR",
        "kernel_params": [0.0] * 3,
        "rho": [0.1],
        "coefficients": listed(normal(18), "l"),
    }
    for finish in ("NONE", "LOGISTIC", "SOFTMAX"):
        cases.append(
            ml(
                "SVMClassifier",
                x,
                what=f"linear {finish}",
                outputs=2,
                classlabels_ints=[0, 1, 2],
                post_transform=finish,
                **linear,
            )
        )
    return [
        *cases,
        ml(
            "SVMRegressor",
            x,
            what="linear mode",
            coefficients=listed(normal(6), "c"),
            rho=[0.2],
            kernel_type="LINEAR",
            kernel_params=[0.0] * 3,
        ),
        ml(
            "SVMRegressor",
            x,
            what="one class",
            n_supports=12,
            support_vectors=listed(normal(12, 6), "v"),
            coefficients=listed(uniform(0, 1, 12), "u"),
            rho=[-3.0],
            one_class=1,
            kernel_type="RBF",
            kernel_params=[0.3, 0.0, 3.0],
        ),
    ]


TREES, DEPTH, FEATURES = 30, 6, 10
INNER, WHOLE = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1


def _nodes(mode: str) -> dict[str, Any]:
    node = np.arange(WHOLE)
    features = listed(whole(0, FEATURES, TREES * WHOLE), "features")
    bounds = listed(normal(TREES * WHOLE, scale=0.5), "bounds")
    return {
        "nodes_treeids": np.repeat(np.arange(TREES), WHOLE).tolist(),
        "nodes_nodeids": np.tile(node, TREES).tolist(),
        "nodes_featureids": features,
        "nodes_values": bounds,
        "nodes_modes": ([f"BRANCH_{mode}"] * INNER + ["LEAF"] * (WHOLE - INNER)) * TREES,
        "nodes_truenodeids": np.tile(np.where(node < INNER, 2 * node + 1, 0), TREES).tolist(),
        "nodes_falsenodeids": np.tile(np.where(node < INNER, 2 * node + 2, 0), TREES).tolist(),
    }


def _leaves(prefix: str, kinds: int) -> dict[str, Any]:
    count = TREES * (WHOLE - INNER)
    return {
        f"{prefix}_treeids": np.repeat(np.arange(TREES), WHOLE - INNER).tolist(),
        f"{prefix}_nodeids": np.tile(np.arange(INNER, WHOLE), TREES).tolist(),
        f"{prefix}_ids": listed(whole(0, kinds, count), "kinds"),
        f"{prefix}_weights": listed(normal(count, scale=0.1), "weights"),
    }


def _forests() -> list[RecordedCase]:
    x = normal(500, FEATURES)
    classes = {"classlabels_int64s": [0, 1, 2], "outputs": 2, **_leaves("class", 3)}
    cases = [
        ml(
            "TreeEnsembleRegressor",
            x,
            what=f"{mode} {how}",
            n_targets=2,
            aggregate_function=how,
            **_nodes(mode),
            **_leaves("target", 2),
        )
        for mode, how in (("LEQ", "SUM"), ("LT", "AVERAGE"), ("GTE", "MIN"), ("GT", "MAX"))
    ]
    cases += [
        ml(
            "TreeEnsembleClassifier",
            x,
            what=finish,
            post_transform=finish,
            **_nodes("LEQ"),
            **classes,
        )
        for finish in ("NONE", "SOFTMAX", "LOGISTIC")
    ]
    return cases


def _newest_forest(dtype: type, *, sets: bool, how: int, finish: int = 0) -> RecordedCase:
    """TreeEnsemble-5: inner nodes and leaves are numbered apart."""
    inner, leaves = 2**DEPTH - 1, 2**DEPTH
    node = np.arange(inner)
    low = node < inner // 2  # their children are inner nodes
    start_inner = (np.arange(TREES) * inner)[:, None]
    start_leaf = (np.arange(TREES) * leaves)[:, None]

    def children(side: int) -> list[int]:
        child = 2 * node + side
        return np.where(low, child + start_inner, child - inner + start_leaf).reshape(-1).tolist()

    count = TREES * inner
    modes, bounds = np.zeros(count, np.uint8), uniform(-1, 1, count, dtype=dtype).array("bounds")
    options: dict[str, Any] = {}
    if sets:
        modes[::5] = 6  # BRANCH_MEMBER
        bounds[::5] = np.nan
        options["membership_values"] = _tensor(_sets(len(modes[::5]), dtype))
    return ml(
        "TreeEnsemble",
        (whole(0, 4, 400, FEATURES, dtype=dtype) if sets else normal(400, FEATURES, dtype=dtype)),
        what=f"{np.dtype(dtype).name} {how} {finish}{' sets' if sets else ''}",
        version=5,
        tree_roots=start_inner.reshape(-1).tolist(),
        nodes_featureids=listed(whole(0, FEATURES, count), "features"),
        nodes_modes=_tensor(modes),
        nodes_splits=_tensor(bounds),
        nodes_truenodeids=children(1),
        nodes_trueleafs=np.tile(~low, TREES).astype(int).tolist(),
        nodes_falsenodeids=children(2),
        nodes_falseleafs=np.tile(~low, TREES).astype(int).tolist(),
        leaf_targetids=listed(whole(0, 3, TREES * leaves), "targets"),
        leaf_weights=_tensor(normal(TREES * leaves, scale=0.1, dtype=dtype).array("weights")),
        n_targets=3,
        aggregate_function=how,
        post_transform=finish,
        **options,
    )


def _sets(count: int, dtype: type) -> np.ndarray:
    """Two members for each node, then NaN."""
    members = np.stack(
        (np.arange(count) % 4, (np.arange(count) + 1) % 4, np.full(count, np.nan)), 1
    )
    return members.reshape(-1).astype(dtype)


def _tensor(array: np.ndarray) -> Any:
    return numpy_helper.from_array(array)


CASES = (
    *_columns(),
    *_linear(),
    *_support_vectors(),
    *_forests(),
    _newest_forest(np.float32, sets=False, how=1),
    _newest_forest(np.float64, sets=False, how=1),
    _newest_forest(np.float32, sets=True, how=1),
    # SOFTMAX and LOGISTIC are not here: onnxruntime takes 1 and 2 the other way round than ONNX.
    _newest_forest(np.float32, sets=False, how=0, finish=3),
    _newest_forest(np.float32, sets=False, how=2),
    _newest_forest(np.float32, sets=False, how=3),
)
