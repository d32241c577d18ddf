"""TfIdfVectorizer: how often the n-grams of a pool occur in a sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import FLOAT32, check_allocation
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


@dataclass(frozen=True, slots=True)
class _Pool:
    """N-grams by length, with the column that counts each one."""

    by_length: Mapping[int, Mapping[tuple[Any, ...], int]]
    most_skipped: int
    width: int

    @classmethod
    def of(cls, info: KernelInfo) -> _Pool:
        """From a node's attributes.

        Raises:
            ValueError: They do not fit each other.
        """
        pool = info.attr("pool_strings") or info.attr("pool_int64s") or []
        starts, columns = info.attr("ngram_counts"), info.attr("ngram_indexes")
        least, most = int(info.attr("min_gram_length")), int(info.attr("max_gram_length"))
        if not 1 <= least <= most:
            raise ValueError(f"TfIdfVectorizer: n-grams of {least} to {most} elements")
        if any(not 0 <= start <= len(pool) for start in starts) or min(columns, default=0) < 0:
            raise ValueError(f"TfIdfVectorizer: ngram_counts {starts} of a pool of {len(pool)}")
        columns_of: dict[int, dict[tuple[Any, ...], int]] = {}
        place = 0
        for length, start in enumerate(starts, 1):
            end = starts[length] if length < len(starts) else len(pool)
            grams = [tuple(pool[i : i + length]) for i in range(start, end, length)]
            if place + len(grams) > len(columns):
                raise ValueError(f"TfIdfVectorizer: {len(columns)} ngram_indexes for more n-grams")
            if least <= length <= most:
                columns_of[length] = dict(zip(grams, columns[place:], strict=False))
            place += len(grams)
        (width,) = check_allocation((max(columns, default=-1) + 1,), FLOAT32)
        return cls(columns_of, int(info.attr("max_skip_count")), width)

    def count(self, row: Sequence[Any]) -> Array:
        """How often each column's n-gram occurs in `row`, elements left out between counted."""
        result = np.zeros(self.width, np.float32)
        for length, grams in self.by_length.items():
            steps = 2 if length == 1 else min(self.most_skipped + 2, len(row) + 1)
            for step in range(1, steps):
                parts = [row[i * step :] for i in range(length)]
                for gram in zip(*parts, strict=False):
                    column = grams.get(gram)
                    if column is not None:
                        result[column] += 1
        return result


def _tf_idf(info: KernelInfo) -> KernelFn:
    """ONNX TfIdfVectorizer-9."""
    pool, mode = _Pool.of(info), info.attr("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ValueError(f"TfIdfVectorizer: mode is '{mode}', expected TF, IDF or TFIDF")
    attribute = info.attr("weights")
    weights = np.ones(pool.width, np.float32)
    if attribute and mode != "TF":
        listed = np.array(attribute, np.float32)
        columns = np.array(info.attr("ngram_indexes"))
        weights[columns] = listed[: columns.size]

    def run(x: Array) -> Array:
        if x.ndim > 2:
            raise ValueError(f"TfIdfVectorizer of rank {x.ndim}, expected 1 or 2")
        rows = x.reshape(1, -1) if x.ndim < 2 else x
        counts = np.stack([pool.count(row) for row in rows.tolist()]) if len(rows) else None
        if counts is None:
            return np.zeros((0, pool.width), np.float32)
        if mode == "IDF":
            counts = (counts > 0).astype(np.float32)
        counts *= weights
        return counts if x.ndim == 2 else counts[0]

    return run


KERNELS: tuple[KernelDef, ...] = (kernel("TfIdfVectorizer", since=(9, 9))(_tf_idf),)
