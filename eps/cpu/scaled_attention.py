"""softmax(Q K' * scale + bias) V over heads, with the masks that ONNX Attention has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import FLOAT64, check_allocation
from eps.cpu.products import matmul

if TYPE_CHECKING:
    from eps.cpu.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The requested outputs of attention other than its result.

    Attributes:
        kept: [B, H, L, T] at the stage that `keep` named, or None.
    """

    y: Array
    kept: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The operations on scores.

    Attributes:
        scale: Factor on them.
        softcap: If not 0, they go through softcap * tanh(scores / softcap) before the bias.
        keep: "product", "capped", "biased" or "softmax": a stage whose scores are given back.
    """

    scale: float
    softcap: float = 0.0
    keep: str = ""


def check_scores(q: Array, k: Array) -> None:
    """Refuse queries [B, H, L, D] and keys [B, G, T, D] whose scores or masks would not fit.

    Raises:
        ValueError: [B, H, L, T] is more than the memory that is left.
    """
    rows = [max(dim, 1) for dim in q.shape[:2]]  # masks are as large without batch or heads
    check_allocation((*rows, q.shape[2], k.shape[2]), FLOAT64)


def attend(q: Array, k: Array, v: Array, bias: Array | None, how: Scoring) -> Scores:
    """Attention of [B, H, L, D] queries to [B, G, T, D] keys and [B, G, T, E] values.

    Args:
        q: float32 or float64; H is a multiple of G, heads of one group follow each other.
        k: As q.
        v: As q.
        bias: Broadcast to [B, H, L, T], added to the scores; a row of -infinity alone
            attends to nothing and gives zeros.
        how: Scale, cap, and what to give back.

    Raises:
        ValueError: Heads do not fit.
    """
    batch, heads, length, _ = q.shape
    groups = k.shape[1]
    if groups == 0 or heads % groups or v.shape[1] != groups:
        raise ValueError(f"{heads} heads cannot share {groups} key and {v.shape[1]} value heads")
    # Heads of a group are one longer block of queries, so that keys are not repeated.
    queries = (q * q.dtype.type(how.scale)).reshape(
        batch, groups, heads // groups * length, q.shape[3]
    )
    scores = matmul(queries, k.swapaxes(2, 3)).reshape(batch, heads, length, k.shape[2])
    kept = scores.copy() if how.keep == "product" else None
    if how.softcap:
        scores /= q.dtype.type(how.softcap)
        np.tanh(scores, out=scores)
        scores *= q.dtype.type(how.softcap)
    if how.keep == "capped":
        kept = scores.copy()
    if bias is not None:
        scores = scores + bias
    if how.keep == "biased":
        kept = scores.copy()
    weights = _guarded_softmax(scores, bias)
    if how.keep == "softmax":
        kept = weights
    rows = heads // groups * length
    mixed = matmul(weights.reshape(batch, groups, rows, k.shape[2]), v)
    return Scores(y=mixed.reshape(batch, heads, length, v.shape[3]), kept=kept)


def _guarded_softmax(scores: Array, bias: Array | None) -> Array:
    """Softmax of the last axis, in place; rows whose bias is all -infinity become 0."""
    if not scores.shape[-1]:
        return scores
    peak = np.maximum.reduce(scores, -1, keepdims=True)
    if bias is not None:
        peak = np.where(np.isneginf(peak), 0, peak)
    scores -= peak
    np.exp(scores, out=scores)
    total = np.add.reduce(scores, -1, keepdims=True)
    if bias is not None:
        total = np.where(total == 0, 1, total)
    scores /= total
    if bias is not None:
        nothing = np.isneginf(np.maximum.reduce(bias, -1, keepdims=True))
        if nothing.any():
            scores = np.where(nothing, scores.dtype.type(0), scores)
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Masks:
    """Which keys a query may attend to, from positions alone.

    Attributes:
        causal: Query i attends up to key i + offset.
        left: Keys further than this before a query are masked; -1 for none.
        right: Keys further than this after a query are masked; -1 for none.
    """

    causal: bool = False
    left: int = -1
    right: int = -1

    def allowed_keys(self, length: int, total: int, offset: Array | int) -> Array | None:
        """Boolean [L, T], or [B, 1, L, T] for an offset per batch; None if all are allowed.

        Args:
            length: Queries.
            total: Keys.
            offset: Position of the first query among the keys; one number, or [B].
        """
        if not self.causal and self.left < 0 and self.right < 0:
            return None
        start = np.asarray(offset)
        rows = np.arange(length)[:, None]
        if start.ndim:
            start = start.reshape(-1, 1, 1, 1)
        distance = rows + start - np.arange(total)  # how far the key lies before the query
        result = np.ones(distance.shape, np.bool_)
        if self.causal:
            result &= distance >= 0
        if self.left >= 0:
            result &= distance <= self.left
        if self.right >= 0:
            result &= -distance <= self.right
        return result


def as_bias(allowed: Array, like: Array) -> Array:
    """0 if allowed, -infinity elsewhere, in the type of `like`."""
    return np.asarray(np.where(allowed, like.dtype.type(0), like.dtype.type(-np.inf)))


def combine_biases(*biases: Array | None) -> Array | None:
    """The sum of those that are there."""
    result = None
    for bias in biases:
        if bias is not None:
            result = bias if result is None else result + bias
    return result
