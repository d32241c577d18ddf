"""Tries a device in a child process before nodes are given to it.

A driver may list a device that it cannot compile for, fail at its first kernel, or bring the
process down, then or at exit. The trial builds a small program, runs it and compares its numbers.
It is made where a session is about to compile, or devices are listed, and remembered
(eps/opencl/trials/record.py); a reload of a context makes none.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from eps.opencl.runtime.device import POCL
from eps.opencl.trials import failures
from eps.opencl.trials.failures import records_folder
from eps.opencl.trials.record import facts_of, read_problem, write_problem
from ort_lite.ep import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.runtime.device import ListedDevice

log = get_logger(__name__)

CHILD = "eps.opencl.trials.child"
BEGUN = "ort_lite trial"
"""The line that the child prints before it uses a driver."""
LIMIT = 120.0
"""Seconds; PoCL's first program takes two on a machine that is not busy."""
_MAX_SHOWN = 600
_SHORTAGES = (
    *("OUT_OF_HOST_MEMORY", "MemoryError", "bad_alloc", "can't start new thread"),
    *("out of memory", "not enough memory", "cannot allocate memory", "allocate section memory"),
    *("allocate memory for thread-local data", "resource temporarily unavailable"),
    *("too many open files", "failed to map segment"),
)
"""Messages of drivers and libraries about a shortage."""
_ENDED_BY_OTHERS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGXCPU")
"""The system's, where memory is short, a limit's or a person's: not the driver's doing."""


def recall_problem(device: ListedDevice) -> str | None:
    """The problem that an earlier trial found: "" if none, None if there was no trial."""
    facts = facts_of(device, os.environ)
    known = failures.problems_here.get(_key(facts))
    if known is None:
        known = read_problem(facts, records_folder(os.environ))
    return None if known is None else _explain_problem(device, known)


def problem_of(device: ListedDevice) -> str:
    """Why a device cannot be used, with the driver's words and a remedy; "" if it can be.

    Tried now where no earlier trial is known of, which takes a second or two.
    """
    known = recall_problem(device)
    if known is not None:
        return known
    facts = facts_of(device, os.environ)
    log.info("trying %s, once for this driver and CPU", device.label)
    problem, final = _try_in_child(device.name, facts)
    if _is_shortage(problem):
        return _explain_problem(device, problem)
    failures.problems_here[_key(facts)] = problem
    folder = records_folder(os.environ)
    if final and folder and not (problem and _limits()):
        write_problem(facts, folder, problem)
    return _explain_problem(device, problem)


def _is_shortage(problem: str) -> bool:
    """Whether the next trial may go another way, since the system lacked something."""
    text = problem.lower()
    return any(words.lower() in text for words in _SHORTAGES)


def _limits() -> str:
    """The limits of memory that this process hands on to a trial; "" for none."""
    if sys.platform == "win32":
        return ""
    import resource  # noqa: PLC0415 - lazy: reload

    kinds = {"RLIMIT_AS": resource.RLIMIT_AS, "RLIMIT_DATA": resource.RLIMIT_DATA}
    soft = {name: resource.getrlimit(kind)[0] for name, kind in kinds.items()}
    return " ".join(f"{k}={v}" for k, v in soft.items() if v != resource.RLIM_INFINITY)


def _key(facts: Mapping[str, str]) -> str:
    return f"{dict(facts)} {_limits()}"


def _explain_problem(device: ListedDevice, problem: str) -> str:
    if not problem:
        return ""
    remedy = "update its driver"
    if device.platform.name == POCL:
        remedy = (
            "install Intel's runtime, which runs on AMD's CPUs, too (pip install "
            '"ort-lite[opencl-intel]"), or a newer PoCL, whose environment variable '
            "POCL_LLVM_CPU_NAME names the CPU that it compiles for"
        )
    return f"{device.label} fails a trial: {problem}. To fix this: {remedy}"


def _try_in_child(name: str, facts: Mapping[str, str]) -> tuple[str, bool]:
    """Try a device in a child: the problem ("" for none), and whether it is final."""
    if not sys.executable or getattr(sys, "frozen", False):
        log.debug("%s is not tried: no Python interpreter can be started", name)
        return "", False
    import json  # noqa: PLC0415 - lazy: reload
    import subprocess  # noqa: PLC0415 - lazy: rare

    from ort_lite.ep import describe_exit, flatten_text, run_module  # noqa: PLC0415 - lazy: rare

    try:
        done = run_module(CHILD, name, json.dumps(dict(facts)), limit=LIMIT)
    except subprocess.TimeoutExpired:
        return f"a program of two lines did not finish within {LIMIT:.0f} seconds", False
    except OSError as exc:
        log.debug("%s is not tried: %s", name, exc)
        return "", False
    lines = done.stdout.decode(errors="replace").splitlines()
    if BEGUN not in lines:
        log.debug("%s is not tried: %s is not a Python interpreter", name, sys.executable)
        return "", False
    answer = lines[lines.index(BEGUN) + 1 :]
    if done.returncode == 0 and answer:
        problem, final = json.loads(answer[0])
        return _shorten(flatten_text(problem)), bool(final)
    ending = describe_exit(done.returncode)
    said = [json.loads(answer[0])[0]] if answer else []
    words = done.stderr.decode(errors="replace").split()
    parts = (f"a small program {ending}", *said, " ".join(words)[:300])
    final = not any(name in ending for name in _ENDED_BY_OTHERS)
    return _shorten(flatten_text(": ".join(filter(None, parts)))), final


def _shorten(line: str) -> str:
    return line[:_MAX_SHOWN].rstrip(". ")
