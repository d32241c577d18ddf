"""Modules run in a child process, where vendors' code may end the process that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def start_module(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start `python -m module` with this process's import path, and pipes to and from it.

    What it writes to stderr is dropped.

    Raises:
        OSError: The interpreter cannot be started.
    """
    return subprocess.Popen(
        _command(module, arguments),
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )


def run_module(module: str, *arguments: str, limit: float) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m module` with this process's import path; its exit code and output.

    Raises:
        subprocess.TimeoutExpired: The child did not end within `limit` seconds; it was killed.
        OSError: The interpreter cannot be started.
    """
    return subprocess.run(
        _command(module, arguments),
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=limit,
        check=False,
    )


def _command(module: str, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", module, *arguments]


def _environment() -> dict[str, str]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109 - a text
    return {**os.environ, "PYTHONPATH": path}


def describe_exit(code: int) -> str:
    """An exit code as part of a sentence: "died of SIGABRT", "ended with code 1"."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"


def flatten_text(text: str) -> str:
    """A vendor's text on one line, "?" for each character that does not print."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line)
