"""Sets how many threads numpy's matrix products use."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from ort_lite.ep import get_logger

log = get_logger(__name__)

_SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads")


def set_blas_threads(count: int) -> bool:
    """Let OpenBLAS, as numpy's wheels bring it, use `count` threads; process-wide.

    Returns:
        Whether it was found; a numpy built against another BLAS is left as it is.
    """
    root = Path(np.__file__).parent
    folders = (root.parent / "numpy.libs", root / ".dylibs")
    for library in (path for folder in folders for path in sorted(folder.glob("*openblas*"))):
        loaded = ctypes.CDLL(str(library))
        for name in _SETTERS:
            setter = getattr(loaded, name, None)
            if setter is not None:
                setter(ctypes.c_int(count))
                return True
    log.debug("numpy brings no OpenBLAS; intra_op_num_threads has no effect")
    return False
