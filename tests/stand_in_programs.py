"""Programs run in child processes with the stand-in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[1]
COMMAND = ("-m", "ort_lite.as_onnxruntime")
CHOICES = ("ORT_LITE_PROVIDERS", "ORT_LITE_CACHE_DIR", "ORT_LITE_REPORT")


def environment(variables: dict[str, str] | None = None) -> dict[str, str]:
    """This process's, without what chooses for the stand-in, and with this checkout importable."""
    found = {key: value for key, value in os.environ.items() if key not in CHOICES}
    return {**found, "PYTHONPATH": str(ROOT), **(variables or {})}


def python(
    *arguments: str | Path,
    cwd: Path | None = None,
    variables: dict[str, str] | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """The interpreter with these arguments; its output where it fails is in the assertion."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment(variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def stand_in(
    *arguments: str | Path,
    cwd: Path | None = None,
    variables: dict[str, str] | None = None,
    check: bool = True,
    flags: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """`python FLAGS -m ort_lite.as_onnxruntime` with these arguments."""
    return python(*flags, *COMMAND, *arguments, cwd=cwd, variables=variables, check=check)
