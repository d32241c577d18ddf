"""Patterns that the matrix is written in: names with `*`, and ranges such as `>=32.0,<33`."""

from __future__ import annotations

import operator
import re
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def fits(name: str, pattern: str) -> bool:
    """Whether `name` matches a pattern in which `*` stands for any text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_CLAUSE = re.compile(r"(>=|<=|==|>|<)\s*(\d+(?:\.\d+)*)")


def is_range(text: str) -> bool:
    """Whether `text` is one: clauses with dotted numbers, separated by commas."""
    return all(_CLAUSE.fullmatch(clause.strip()) for clause in text.split(","))


def is_within(version: str, text: str) -> bool:
    """Whether the leading dotted number of `version` fulfils every clause of the range.

    Missing parts count as 0: 2026.4 is 2026.4.0. A version without a number is in no range.

    Raises:
        ValueError: `text` is not a range.
    """
    if not is_range(text):
        raise ValueError(f"{text!r} is not a range of versions, such as >=32.0,<33")
    number = re.search(r"\d+(?:\.\d+)*", version)
    if number is None:
        return False
    clauses = (_CLAUSE.fullmatch(clause.strip()) for clause in text.split(","))
    return all(_holds(number[0], match[1], match[2]) for match in clauses if match)


def _holds(version: str, sign: str, bound: str) -> bool:
    pairs = zip_longest(version.split("."), bound.split("."), fillvalue="0")
    order = next((1 if int(a) > int(b) else -1 for a, b in pairs if int(a) != int(b)), 0)
    return _COMPARE[sign](order, 0)
