"""Loads an SDK's libraries in a thread, while Python goes on.

The interpreter's lock is held while an extension module is imported, and that takes the SDK's
libraries along. `dlopen` through ctypes gives the lock away; what it has loaded, the import then
finds (docs/adr/0015-early-loading.md).
"""

from __future__ import annotations

import ctypes
import os
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def load_early(libraries: Sequence[Path]) -> None:
    """Begin to load shared libraries, in this order; for Linux.

    Nothing is reported: what cannot be loaded here, the SDK's import says why.
    """
    if libraries:
        Thread(target=_load, args=(libraries,), name="ort_lite library loading").start()


def _load(libraries: Sequence[Path]) -> None:
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    for library in libraries:
        dlopen(os.fsencode(library), os.RTLD_NOW)
