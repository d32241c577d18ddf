"""The number of threads of numpy's matrix products, which OpenBLAS keeps for the whole process."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ort_lite.ep import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = get_logger(__name__)

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")

_LOADING = Lock()
"""There is one BlasThreads, whichever threads ask for it first."""


class BlasThreads:
    """OpenBLAS's number of threads, which may be 1 for a while.

    Threads may meet: the first that wants one thread sets it, and the last restores the number.
    """

    def __init__(self, getter: Callable[[], int], setter: Callable[[int], object]) -> None:
        """Take functions that read and set OpenBLAS's number."""
        self._get, self._set = getter, setter
        self._lock = Lock()
        self._users = 0
        self._before = 1

    def set(self, count: int) -> None:
        """Let products use `count` threads, at once or once nobody wants a single one."""
        with self._lock:
            if self._users:
                self._before = count
            else:
                self._set(count)

    @contextmanager
    def single(self) -> Iterator[int]:
        """OpenBLAS has one thread; gives the number that it has otherwise."""
        with self._lock:
            if not self._users:
                self._before = self._get()
                self._set(1)
            self._users += 1
            before = self._before
        try:
            yield before
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self._get() == 1:  # else somebody else has set it
                    self._set(self._before)


def find_blas_threads() -> BlasThreads | None:
    """Those of OpenBLAS as numpy's wheels bring it; None for a numpy built against another BLAS."""
    process = os.getpid()
    if not _load_blas_threads.cache_info().currsize:
        with _LOADING:
            _load_blas_threads(process)
    return _load_blas_threads(process)


@lru_cache(maxsize=1)
def _load_blas_threads(process: int) -> BlasThreads | None:  # noqa: ARG001 - a forked process has its own
    root = Path(np.__file__).parent
    folders = (root.parent / "numpy.libs", root / ".dylibs")
    for path in (path for folder in folders for path in sorted(folder.glob("*openblas*"))):
        library = ctypes.PyDLL(str(path))  # the calls are too short to release the GIL for
        for name in _NAMES:
            setter = getattr(library, name.format("set"), None)
            getter = getattr(library, name.format("get"), None)
            if setter is not None and getter is not None:
                setter.argtypes, setter.restype = (ctypes.c_int,), None
                getter.argtypes, getter.restype = (), ctypes.c_int
                return BlasThreads(getter, setter)
    log.debug("numpy brings no OpenBLAS; intra_op_num_threads has no effect")
    return None


def set_blas_threads(count: int) -> bool:
    """Let OpenBLAS, as numpy's wheels bring it, use `count` threads; process-wide.

    Returns:
        Whether it was found; a numpy built against another BLAS is left as it is.
    """
    threads = find_blas_threads()
    if threads is not None:
        threads.set(count)
    return threads is not None
