"""TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.decision_trees import Forest, values_of
from eps.cpu.post_transform import labels_of, transform_of
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "ai.onnx.ml"


def _floats(x: Array) -> Array:
    """Rows [N, features] of floats."""
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    return rows if rows.dtype.kind == "f" else rows.astype(np.float32)


def _regressor(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml TreeEnsembleRegressor; a target that no leaf names is 0, as in ONNX Runtime."""
    targets = int(info.attr("n_targets", 1))
    forest = Forest.of(info, "target", targets)
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
    ids = info.attr("class_ids")
    forest = Forest.of(info, "class", max(len(labels), max(ids, default=0) + 1))
    base, finish = values_of(info, "base_values"), transform_of(info)
    single = len(labels) == 2 and len(set(ids)) == 1
    positive = bool((values_of(info, "class_weights") >= 0).all())
    logistic = info.attr("post_transform", "NONE") == "LOGISTIC"
    probit = info.attr("post_transform", "NONE") == "PROBIT"

    def one_class(x: Array) -> tuple[Array, Array]:
        scores, _ = forest.scores(_floats(x), "SUM")
        score = scores[:, ids[0]].astype(np.float32)
        if base.size:
            score = score + np.float32(base[-1])
        label = labels[(score > (0.5 if positive else 0)).astype(np.intp)]
        if logistic:
            return label, finish(np.stack((-score, score), 1))
        if probit:
            return label, finish(score[:, None])
        return label, np.stack((1 - score if positive else -score, score), 1)

    def classes(x: Array) -> tuple[Array, Array]:
        scores, _ = forest.scores(_floats(x), "SUM")
        scores = scores.astype(np.float32)
        if base.size:
            scores = scores + base.astype(np.float32)
        return labels[np.argmax(scores, 1)], finish(scores)

    return one_class if single else classes


KERNELS: tuple[KernelDef, ...] = (
    kernel("TreeEnsembleRegressor", domain=DOMAIN, since=(1, 5))(_regressor),
    kernel("TreeEnsembleClassifier", domain=DOMAIN, since=(1, 5))(_classifier),
)
