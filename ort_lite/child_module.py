"""Modules run in a child process, where vendors' code may end the process that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def run_module(module: str, *arguments: str, limit: float) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m module` with this process's import path; its exit code and output.

    Raises:
        subprocess.TimeoutExpired: The child did not end within `limit` seconds; it was killed.
        OSError: The interpreter cannot be started.
    """
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109 - a text
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=limit,
        check=False,
    )


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
