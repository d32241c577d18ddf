"""Support vector machines and linear classifiers of ai.onnx.ml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.post_transform import labels_of, transform_of
from eps.cpu.svm_functions import kernel_function, weighted_sums
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from eps.cpu.svm_functions import KernelFunction
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "ai.onnx.ml"

_LEAST_PROBABILITY = 1e-7
_COUPLING_ROUNDS = 100
_COUPLING_ERROR = 0.005


def _floats(info: KernelInfo, name: str) -> Array:
    return np.array(info.attr(name) or [], np.float32)


def _rows(x: Array) -> Array:
    """Rows [N, features] in float32."""
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    return rows.astype(np.float32, copy=False)


def _regressor(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml SVMRegressor-1; without support vectors the coefficients are a plane's."""
    count = int(info.attr("n_supports", 0))
    coefficients, rho = _floats(info, "coefficients"), _floats(info, "rho")
    finish = transform_of(info)
    one_class = bool(info.attr("one_class", 0))
    if not rho.size:
        raise ValueError("SVMRegressor: rho is empty")
    weights = coefficients[:, None]
    vectors = _floats(info, "support_vectors").reshape(count, -1) if count else weights.T
    function = kernel_function(info, vectors)

    def run(x: Array) -> Array:
        rows = _rows(x)
        scores = weighted_sums(function, weights, rows) if count else rows @ weights
        scores += rho[0]
        if one_class:
            return np.where(scores > 0, np.float32(1), np.float32(-1))
        return finish(scores)

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """One decision for each pair of classes: libsvm's one against one.

    Attributes:
        function: Of rows and the support vectors [M, features], class after class.
        weights: [M, pairs]; a pair's column is 0 for the vectors of other classes.
        pairs: [pairs, 2], the classes, in order.
    """

    function: KernelFunction
    weights: Array
    rho: Array
    pairs: Array
    classes: int

    @classmethod
    def of(cls, info: KernelInfo, per_class: list[int]) -> _Machine:
        """From the attributes.

        Raises:
            ValueError: Their sizes do not fit each other.
        """
        classes, total = len(per_class), sum(per_class)
        rho = _floats(info, "rho")
        coefficients = _floats(info, "coefficients")
        vectors = _floats(info, "support_vectors")
        sizes = (coefficients.size, rho.size, vectors.size % total)
        expected = ((classes - 1) * total, classes * (classes - 1) // 2, 0)
        if min(per_class) < 0 or sizes != expected:
            raise ValueError(
                f"SVMClassifier: {coefficients.size} coefficients, {rho.size} rho and "
                f"{vectors.size} numbers of vectors do not fit {per_class} vectors per class"
            )
        pairs = np.array([(i, j) for i in range(classes) for j in range(i + 1, classes)])
        coefficients = coefficients.reshape(classes - 1, total)
        ends = np.cumsum(per_class)
        weights = np.zeros((total, len(pairs)), np.float32)
        for column, (i, j) in enumerate(pairs):
            for own, row in ((i, j - 1), (j, i)):
                part = slice(ends[own] - per_class[own], ends[own])
                weights[part, column] = coefficients[row, part]
        return cls(
            function=kernel_function(info, vectors.reshape(total, -1)),
            weights=weights,
            rho=rho,
            pairs=pairs,
            classes=classes,
        )

    def decisions(self, x: Array) -> Array:
        """[N, pairs]; over 0 speaks for a pair's first class."""
        return weighted_sums(self.function, self.weights, x) + self.rho

    def votes(self, decisions: Array) -> Array:
        """Votes of the class pairs for each class, [N, classes]."""
        counts = np.zeros((len(decisions), self.classes), np.int64)
        for column, (i, j) in enumerate(self.pairs):
            first = decisions[:, column] > 0
            counts[:, i] += first
            counts[:, j] += ~first
        return counts

    def probabilities(self, decisions: Array, a: Array, b: Array) -> Array:
        """[N, classes]: Platt's sigmoids, coupled as by Wu, Lin and Weng (libsvm)."""
        chance = 1 / (1 + np.exp(decisions * a + b))
        chance = np.clip(chance, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        between = np.zeros((len(decisions), self.classes, self.classes), np.float32)
        between[:, self.pairs[:, 0], self.pairs[:, 1]] = chance
        between[:, self.pairs[:, 1], self.pairs[:, 0]] = 1 - chance
        return _couple_pairs(between)


def _couple_pairs(between: Array) -> Array:
    """Class probabilities [N, k] from those of pairs [N, k, k]: libsvm multiclass_probability."""
    rows, k, _ = between.shape
    q = -np.swapaxes(between, 1, 2) * between
    each = np.arange(k)
    q[:, each, each] = np.square(between).sum(1)
    p = np.full((rows, k), 1 / k, between.dtype)
    open_rows = np.arange(rows)
    for _ in range(max(_COUPLING_ROUNDS, k)):
        some, qs = p[open_rows], q[open_rows]
        qp = (qs @ some[:, :, None])[:, :, 0]
        pqp = (some * qp).sum(1)
        going = np.abs(qp - pqp[:, None]).max(1, initial=0) >= _COUPLING_ERROR / k
        open_rows, some, qs, qp, pqp = (part[going] for part in (open_rows, some, qs, qp, pqp))
        if not open_rows.size:
            break
        for t in range(k):
            change = (pqp - qp[:, t]) / qs[:, t, t]
            some[:, t] += change
            whole = 1 + change
            pqp = (pqp + change * (change * qs[:, t, t] + 2 * qp[:, t])) / whole**2
            qp = (qp + change[:, None] * qs[:, t]) / whole[:, None]
            some /= whole[:, None]
        p[open_rows] = some
    return p


def _classifier(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml SVMClassifier-1: pairs of classes, or a plane for each class."""
    per_class = info.attr("vectors_per_class") or []
    return _pairwise(info, per_class) if sum(per_class) else _planes(info)


def _pairwise(info: KernelInfo, per_class: list[int]) -> KernelFn:
    """Most votes win; scores are those of pairs, or probabilities where prob_a is given."""
    labels, finish = labels_of(info), transform_of(info)
    machine = _Machine.of(info, per_class)
    a, b = _floats(info, "prob_a"), _floats(info, "prob_b")
    if a.size != b.size or a.size not in (0, len(machine.pairs)) or len(labels) != len(per_class):
        raise ValueError(
            f"SVMClassifier: {len(labels)} labels, {a.size} prob_a and {b.size} prob_b for "
            f"{len(per_class)} classes"
        )
    spread = _two_columns(info)

    def run(x: Array) -> tuple[Array, Array]:
        decisions = machine.decisions(_rows(x))
        label = labels[np.argmax(machine.votes(decisions), 1)]
        if a.size:
            return label, finish(machine.probabilities(decisions, a, b))
        if decisions.shape[1] == 1:
            return label, spread(decisions[:, 0])
        return label, finish(decisions)

    return run


def _two_columns(info: KernelInfo) -> Callable[[Array], Array]:
    """One decision as the scores of two classes, as ONNX Runtime writes them (ml_common.h)."""
    name, finish = info.attr("post_transform", "NONE"), transform_of(info)
    if name in ("NONE", "LOGISTIC"):
        return lambda score: finish(np.stack((-score, score), 1))
    if name == "PROBIT":  # where ONNX Runtime leaves memory as it was
        return lambda score: finish(np.stack((1 - score, score), 1))
    return lambda score: np.stack((1 - score, score), 1)


def _planes(info: KernelInfo) -> KernelFn:
    """liblinear: one score for each class.

    Of two classes ONNX Runtime takes the second where a score is high enough (at least 0.5
    if no coefficient is negative, else over 0), whichever class it belongs to.
    """
    labels, finish = labels_of(info), transform_of(info)
    planes = _floats(info, "coefficients").reshape(len(labels), -1).T
    rho = _floats(info, "rho")[:1]
    positive = bool((planes >= 0).all())

    def run(x: Array) -> tuple[Array, Array]:
        scores = _rows(x) @ planes + rho
        best = _find_best(scores)
        if len(labels) == 2:
            high = scores.max(1)
            best = np.where(high >= 0.5 if positive else high > 0, 1, best)
        if len(labels) == 1 and info.attr("post_transform", "NONE") != "PROBIT":
            return labels[best], scores
        return labels[best], finish(scores)

    return run


def _linear_classifier(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml LinearClassifier-1; one row of coefficients for two classes is the second's.

    As in onnxruntime the input says how many coefficients a row has; further ones are not read.
    Without labels one row tells 1 from 0.
    """
    intercepts = _floats(info, "intercepts")
    unlabeled = not (info.attr("classlabels_strings") or info.attr("classlabels_ints"))
    labels = np.arange(2) if unlabeled and intercepts.size == 1 else labels_of(info)
    coefficients = _floats(info, "coefficients")
    rows = intercepts.size or len(labels)
    bias = intercepts if intercepts.size else np.zeros(rows, np.float32)
    finish, name = transform_of(info), info.attr("post_transform", "NONE")

    def two(score: Array) -> Array:
        if name == "LOGISTIC":
            score = finish(score)
        both = np.stack((1 - score, score), 1)
        return finish(both) if name == "PROBIT" else both

    def run(x: Array) -> tuple[Array, Array]:
        values = _rows(x)
        width = values.shape[1]
        if coefficients.size < rows * width:
            raise ValueError(
                f"{coefficients.size} coefficients for {rows} rows of {width} features"
            )
        scores = values @ coefficients[: rows * width].reshape(rows, width).T + bias
        if rows == 1 and len(labels) == 2:
            label = labels[(scores[:, 0] > 0).astype(np.intp)]
            if unlabeled:
                return label, finish(scores) if name == "PROBIT" else scores
            return label, two(scores[:, 0])
        return labels[_find_best(scores)], finish(scores)

    return run


def _find_best(scores: Array) -> Array:
    """Column of the largest score in each row; NaN is taken in the first one alone.

    So onnxruntime finds it, which asks of each further score whether it is larger.
    """
    best: Array = np.argmax(scores, 1)
    if np.isnan(scores).any():
        known = np.where(np.isnan(scores), -np.inf, scores)
        best = np.where(np.isnan(scores[:, 0]), 0, np.argmax(known, 1))
    return best


KERNELS: tuple[KernelDef, ...] = (
    kernel("SVMRegressor", domain=DOMAIN)(_regressor),
    kernel("SVMClassifier", domain=DOMAIN)(_classifier),
    kernel("LinearClassifier", domain=DOMAIN)(_linear_classifier),
)
