"""Processes without what an environment imports at its start: a checkout's hooks bring pathlib."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})

SLOW = frozenset(
    {
        *("pathlib", "urllib.parse", "ipaddress", "importlib.util", "logging", "dataclasses"),
        *("tempfile", "shutil", "random"),
    }
)
"""Of Python's own modules those that take milliseconds, and that numpy does not import."""


def bare(code: str) -> list[str]:
    """The command that runs `code` with this environment's packages and ours."""
    lines = [
        "import sys",
        f"sys.path[:0] = {[str(ROOT), *PACKAGES]!r}",
        f"sys.prefix = {sys.prefix!r}",
        code,
    ]
    return [sys.executable, "-I", "-S", "-c", "\n".join(lines)]
