"""TfIdfVectorizer against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu.single_node import run_node
from unit.cpu_contrib.peer import RANDOM, both

from ort_lite.status import Fail

POOL = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 1, 2, 3, 5, 7, 8]
OPTIONS: dict[str, Any] = {
    "ngram_counts": [0, 4, 10],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6, 8, 7],
    "weights": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 0.8],
}


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 2), (2, 3), (1, 3)], ids=str)
@pytest.mark.parametrize("skips", [0, 1, 5])
@pytest.mark.parametrize("kind", ["int64", "string"])
def test_n_grams_are_counted_as_onnxruntime_does(
    mode: str, lengths: tuple[int, int], skips: int, kind: str
) -> None:
    x = RANDOM.integers(1, 9, (3, 20))
    pool: dict[str, Any] = {"pool_int64s": POOL}
    if kind == "string":
        x, pool = x.astype(str).astype(object), {"pool_strings": [str(item) for item in POOL]}
    options = {"mode": mode, "max_skip_count": skips, **pool, **OPTIONS}
    options["min_gram_length"], options["max_gram_length"] = lengths
    for given in (x, x[0]):
        mine, theirs = both("TfIdfVectorizer", [given], domain="", **options)
        assert mine[0].shape == theirs[0].shape
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mode": "SUM"}, "mode is 'SUM'"),
        ({"min_gram_length": 3}, "n-grams of 3 to 2 elements"),
        ({"ngram_counts": [0, 99]}, "ngram_counts [0, 99] of a pool of 16"),
        ({"ngram_indexes": [0]}, "1 ngram_indexes for more n-grams"),
    ],
    ids=["mode", "lengths", "counts", "indexes"],
)
def test_attributes_that_do_not_fit_are_refused(changes: dict[str, Any], says: str) -> None:
    options = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0}
    options |= {"pool_int64s": POOL, **OPTIONS, **changes}
    with pytest.raises(Fail) as caught:
        run_node("TfIdfVectorizer", np.array([1, 2]), opset=17, **options)
    assert says in caught.value.message
