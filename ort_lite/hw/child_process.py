"""Child processes with a time limit: a vendor's crash or hang ends only the child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TAIL_BYTES = 4000
KEPT_AWAY = (
    *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "ORT_LITE_CACHE_DIR", "ONEDNN_MAX_CPU_ISA"),
    *("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH", "CL_CONFIG_CPU_TARGET_ARCH"),
)
"""Environment variables that would change what a row runs."""
if sys.platform == "win32":
    APART = subprocess.CREATE_NEW_PROCESS_GROUP
else:
    APART = 0
"""Keeps a console's Ctrl-C away from a child, as a new session does on other systems."""
FIRST_NTSTATUS_ERROR = 0xC0000000
"""Windows ends a process with such a code where Linux sends a signal: 0xC0000005 for SIGSEGV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExit:
    """How a child process ended.

    Attributes:
        code: Its exit status; negative for a signal, as subprocess has it, or Windows' NTSTATUS.
        tail: The end of its output.
    """

    code: int
    timed_out: bool
    seconds: float
    tail: str

    @property
    def has_crashed(self) -> bool:
        """Whether a fault ended it rather than the time limit."""
        return (self.code < 0 or self.code >= FIRST_NTSTATUS_ERROR) and not self.timed_out

    def describe(self) -> str:
        """One line: `killed by SIGSEGV after 1.2 s`."""
        if self.timed_out:
            return f"no answer within {self.seconds:.0f} s; killed"
        if self.has_crashed:
            return f"killed by {_fault_name(self.code)} after {self.seconds:.1f} s"
        return f"ended with status {self.code} after {self.seconds:.1f} s"


def run_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    timeout_s: float,
    log: Path,
) -> ChildExit:
    """Run a command to its end, or kill it and everything it started.

    Args:
        command: Program and arguments.
        env: All of its environment variables.
        folder: Where it starts.
        timeout_s: Seconds until it is killed.
        log: Its output is appended here.
    """
    began = monotonic()
    with log.open("ab") as out:
        out.write(f"$ {' '.join(command)}\n".encode())
        out.flush()
        start = out.tell()
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            creationflags=APART,
        )
        timed_out = False
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _kill_tree(process)
    return ChildExit(
        code=process.returncode,
        timed_out=timed_out,
        seconds=monotonic() - began,
        tail=_tail(log, start),
    )


def row_environ(environ: Mapping[str, str], own: Mapping[str, str], env: Path) -> dict[str, str]:
    """Environment of a row's children: the outer one less `KEPT_AWAY`, plus the row's variables."""
    kept = {key: value for key, value in environ.items() if key not in KEPT_AWAY}
    own_values = {key: value.replace("{env}", str(env)) for key, value in own.items()}
    return {**kept, "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1", **own_values}


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """End the child and everything it started.

    On Windows, processes started by a child that has already ended cannot be found any more.
    """
    if sys.platform == "win32":
        tree = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(tree, capture_output=True, check=False)  # fails where it has ended
    else:
        with suppress(ProcessLookupError):  # it has ended, and so has everything it started
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start, size - TAIL_BYTES))
        return file.read().decode(errors="replace").strip()


def _fault_name(code: int) -> str:
    if code > 0:
        return f"0x{code:X}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
