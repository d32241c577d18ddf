"""Finds an SDK's package, and loads its libraries in a thread, while Python goes on.

The interpreter's lock is held while an extension module is imported, and that takes the SDK's
libraries along. `dlopen` through ctypes gives the lock away; what it has loaded, the import then
finds (docs/adr/0015-early-loading.md).
"""

from __future__ import annotations

import _json  # noqa: F401 - see mmap
import ctypes
import mmap  # noqa: F401 - extension modules that a session needs: importing one takes the
import os
import sys
import zlib  # noqa: F401 - dynamic loader's lock, which the thread holds while it loads
from contextlib import suppress
from typing import TYPE_CHECKING

import blake3  # noqa: F401 - see mmap

from ort_lite.shortages import start_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def package_folders(name: str) -> Sequence[str]:
    """Where a top-level package lies, which is not imported; empty where it is not installed.

    As importlib.util.find_spec, whose module a reload needs for nothing else.
    """
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None)
        if spec is not None:
            return spec.submodule_search_locations or ()
    return ()


def load_early(libraries: Sequence[str], then: Callable[[], None] | None = None) -> bool:
    """Begin to load shared libraries, in this order; for Linux.

    Nothing is reported: what cannot be loaded here, the SDK's import says why. Nothing is done
    where the process has them all.

    Args:
        libraries: To load; each needs those before it.
        then: Called after that, in the same thread; may raise OSError or ImportError.

    Returns:
        Whether the process has them all.
    """
    if not libraries:
        return False
    if _is_loaded(libraries[-1]):
        return True
    start_helper(_load, "ort_lite library loading", libraries, then)
    return False


def _is_loaded(library: str) -> bool:
    try:
        ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def _load(libraries: Sequence[str], then: Callable[[], None] | None) -> None:
    with suppress(OSError, ImportError, MemoryError):  # whoever needs what is missing says so
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.restype = ctypes.c_void_p
        for library in libraries:
            dlopen(os.fsencode(library), os.RTLD_NOW)
        if then is not None:
            then()
