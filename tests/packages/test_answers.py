"""The comparison of check_packages.py, which takes too long to run here itself."""

from __future__ import annotations

import re

import pytest
from packages.answers import RELATIVE, difference

ANSWER = {"text": "No 20391", "boxes": [[1, 2.0], [3, 4.0]], "score": 0.9}


def test_the_same_answer_has_no_difference() -> None:
    assert difference(ANSWER, {**ANSWER}) == ""


def test_numbers_with_a_fraction_may_differ_a_little() -> None:
    assert difference(ANSWER, {**ANSWER, "score": 0.9 * (1 + RELATIVE / 2)}) == ""
    assert difference([1e-5], [2e-5]) == ""
    assert difference([float("nan")], [float("nan")]) == ""


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({**ANSWER, "text": "No 2O391"}, r"answer\['text'\] is 'No 2O391', not 'No 20391'"),
        ({**ANSWER, "score": 0.9 * (1 + 2 * RELATIVE)}, r"answer\['score'\] is 0.90"),
        ({**ANSWER, "score": float("nan")}, r"answer\['score'\] is nan"),
        ({**ANSWER, "boxes": [[1, 2.0]]}, r"answer\['boxes'\] has 1 items, not 2"),
        ({**ANSWER, "boxes": [[1, 2.0], [4, 4.0]]}, r"answer\['boxes'\]\[1\]\[0\] is 4, not 3"),
        ({"text": "No 20391"}, r"answer has the keys \['text'\], not"),
        (None, r"answer is None, not \{"),
    ],
)
def test_the_first_difference_is_named(found: object, said: str) -> None:
    assert re.match(said, difference(ANSWER, found))
