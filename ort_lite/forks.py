"""Execution providers that a forked process cannot use: their SDKs' threads are not in it.

`os.fork` copies memory and one thread. An SDK that had started threads would wait in the child for
threads that do not exist, forever: in a run, in a compile, or when its objects are freed, at exit
too. So the child refuses what needs the SDK, says why, and frees nothing that the SDK made.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from ort_lite.status import EPFail

if TYPE_CHECKING:

    class CopiedByFork(Protocol):
        """A session, which is notified of a fork in the child."""

        def lose_threads(self) -> object:
            """Refuse to run from now on; the result is what must never be freed."""

    _sessions: WeakSet[CopiedByFork]

REMEDY = (
    "make sessions after the fork, in the child alone, or start processes without one: "
    "multiprocessing.set_start_method('spawn')"
)

_started: set[str] = set()
_lost: set[str] = set()
_sessions = WeakSet()


def note_started(name: str) -> None:
    """Remember that the SDK of the execution provider `name` runs in this process."""
    _started.add(name)


def is_lost(name: str) -> bool:
    """Whether the SDK ran before this process was forked."""
    return name in _lost


def require_threads(name: str) -> None:
    """Refuse an execution provider whose SDK ran before this process was forked.

    Raises:
        EPFail: It did.
    """
    if name in _lost:
        raise EPFail(
            f"{name} was in use when this process was forked, and its SDK's threads are not in the "
            f"child: {REMEDY}"
        )


def watch(session: CopiedByFork) -> None:
    """Have a session notified of a fork, in the child."""
    _sessions.add(session)


def _after_fork_in_child() -> None:
    if not _started:
        return
    import ctypes  # noqa: PLC0415 - lazy: reload

    _lost.update(_started)
    for session in list(_sessions):
        # Kept even when the interpreter ends: OpenVINO joins its threads when a model is freed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session.lose_threads()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
