"""Names with `*` for any text; brackets are just brackets, as rows have them in their names."""

from __future__ import annotations

import re


def fits(name: str, pattern: str) -> bool:
    """Whether all of `name` fits."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None
