"""Patterns mean what RE2 says, with RE2 and without it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import re2  # noqa: F401 - without it patterns that backtrack would never end
from unit.cpu.single_node import run_node

from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Sequence


def matches(pattern: str, texts: Sequence[str]) -> list[bool]:
    found: list[bool] = run_node(
        "RegexFullMatch", np.array(texts, object), pattern=pattern
    ).tolist()
    return found


@pytest.fixture(params=["google-re2", "re"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "re":
        monkeypatch.setitem(sys.modules, "re2", None)
    return str(request.param)


@pytest.mark.parametrize(
    ("pattern", "text", "right"),
    [
        (r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "account@gmail.com", True),
        (r"a+", "aab", False),
        (r"a.c", "a\nc", False),
        (r"a$", "a\n", False),
        (r"\d+", "\u0663", False),  # an Arabic digit
        (r"\w+", "\u00e9", False),
        (r"\u00e9.", "\u00e9\u00e8", True),
        (r"(?i)AbC", "aBc", True),
        (r"", "", True),
    ],
)
def test_both_engines_answer_as_re2_does(
    engine: str, pattern: str, text: str, *, right: bool
) -> None:
    written = pattern.replace(r"\u00e9", "\u00e9")
    assert matches(written, [text, text]) == [right, right]


def test_a_pattern_made_to_backtrack_takes_no_longer_than_its_text() -> None:
    assert matches("(a+)+b", ["a" * 100_000]) == [False]


def test_posix_and_unicode_classes_are_re2s() -> None:
    assert matches(r"[[:alpha:]]+\pL", ["abc\u00e9", "abc1"]) == [True, False]


@pytest.mark.parametrize("pattern", [r"[[:alpha:]]+", r"\pL"])
def test_what_python_cannot_read_is_refused_with_what_to_install(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(Fail, match="google-re2"):
        matches(pattern, ["a"])


def test_a_pattern_that_neither_knows_is_refused(engine: str) -> None:
    with pytest.raises(Fail, match="RegexFullMatch: invalid pattern"):
        matches("(a", ["a"])
