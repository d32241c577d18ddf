"""Errors for a lack of memory, threads, descriptors or disk space.

Imported with the session: where there are no descriptors left, no module can be imported.
"""

from __future__ import annotations

import errno
import os
from functools import wraps
from threading import Thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ort_lite.status import Fail, OrtLiteError, RuntimeException

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

KINDS = (MemoryError, OSError, RuntimeError, ImportError, SyntaxError, SystemError)
"""Exceptions that Python raises for a shortage, among other causes."""

DESCRIPTORS = "close files or sessions, or raise the limit (ulimit -n)"
SPACE = "make room, or name another folder"
MEMORY = "close sessions, or raise the limit of memory (ulimit -v, the container's)"
THREADS = "end threads or processes, or raise the limit (ulimit -u, the container's pids.max)"

_REMEDIES = {
    errno.EMFILE: DESCRIPTORS,
    errno.ENFILE: DESCRIPTORS,
    errno.ENOSPC: SPACE,
    errno.EDQUOT: SPACE,
    errno.EFBIG: "the file is larger than a limit allows (ulimit -f)",
    errno.ENOMEM: MEMORY,
    errno.EAGAIN: THREADS,
}
_TEXTS = (
    ("can't start new thread", THREADS),
    ("can't allocate lock", MEMORY),
    ("Resource temporarily unavailable", THREADS),
    ("Too many open files", DESCRIPTORS),
    ("Cannot allocate memory", MEMORY),
    ("cannot allocate memory", MEMORY),
    ("failed to map segment", MEMORY),
    ("bad_alloc", MEMORY),
    ("bad allocation", MEMORY),
    ("error return without exception set", MEMORY),
)
"""Of a loader of libraries, of threads, of vendors and of CPython, all general."""

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - lean
_OURS = tuple(f"{_ROOT}{os.sep}{package}{os.sep}" for package in ("ort_lite", "eps", "ctx_formats"))
_INSTALLED = f"{os.sep}site-packages{os.sep}"


def remedy_of(error: BaseException) -> str:
    """Remedy for an error caused by a shortage; "" for other errors."""
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, OSError) and error.errno is not None:
        return _REMEDIES.get(error.errno, "")
    if isinstance(error, SyntaxError):
        return MEMORY if _is_installed(error.filename) else ""
    if isinstance(error, KINDS):
        text = str(error)
        return next((remedy for part, remedy in _TEXTS if part in text), "")
    return ""


def _is_installed(filename: str | None) -> bool:
    """Whether a module belongs to ort_lite or was installed by pip.

    Those modules parse. Where memory runs out meanwhile, CPython's parser may lose the MemoryError
    and report the place it had reached ("expected ':'"), or raise SystemError.
    """
    path = filename or ""
    return path.startswith(_OURS) or _INSTALLED in path


def as_status(error: BaseException, doing: str) -> OrtLiteError | None:
    """An error of ort_lite for one of Python's; None if the system lacks nothing.

    As onnxruntime has it: FAIL where a file cannot be had, RUNTIME_EXCEPTION for the rest.

    Args:
        error: Of `KINDS`.
        doing: What failed, as a sentence without an end: "the session cannot be created".
    """
    remedy = "" if isinstance(error, OrtLiteError) else remedy_of(error)
    if not remedy:
        return None
    files = remedy in (DESCRIPTORS, SPACE, _REMEDIES[errno.EFBIG])
    kind = Fail if files else RuntimeException
    message = str(error) or "out of memory"
    return kind(f"{doing}: {message}. To fix this: {remedy}.")


def write_error(error: OSError, doing: str) -> OrtLiteError:
    """An error of ort_lite for a file that cannot be written, with a remedy if one is known.

    Args:
        error: Of the system.
        doing: See `as_status`.
    """
    return as_status(error, doing) or Fail(f"{doing}: {error}")


def start_helper(target: Callable[..., None], name: str, *arguments: object) -> Thread | None:
    """A started thread that makes something quicker, which goes on without it.

    None if the system has no thread to spare, or the interpreter is on its way out.
    """
    thread = Thread(target=target, name=name, args=arguments)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


def shortage_as_status(doing: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have a function raise an error of ort_lite where the system has no more of something.

    Args:
        doing: See `as_status`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except KINDS as exc:
                status = as_status(exc, doing)
                if status is None:
                    raise
                raise status from exc

        return reporting

    return decorate
