"""Lets OpenVINO and Intel's OpenCL runtime live in one process: both want a libtbb.so.12.

A process has one library of a name. OpenVINO brings its own, which is older than the one that
Intel's OpenCL runtime (intel-opencl-rt on PyPI) is linked against: with OpenVINO's loaded first
that runtime does not load any more (undefined symbol; seen with 2026.4.1 and 2026.2.0). oneTBB
serves programs that were linked against older releases, so the newer one comes first.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING

from ort_lite.ep import get_logger

if TYPE_CHECKING:
    PathLike = str | os.PathLike[str]

log = get_logger(__name__)

OPENCL_RUNTIME = "libintelocl.so"
TBB = "libtbb.so.12"


def newest_tbb(prefix: PathLike = sys.prefix) -> str | None:
    """PyPI's oneTBB, where Intel's OpenCL runtime is installed; else OpenVINO's own will do.

    Args:
        prefix: Of the Python environment; the wheels put their libraries into its `lib`.
    """
    folder = os.path.join(prefix, "lib")
    if sys.platform != "linux" or not os.path.isfile(os.path.join(folder, OPENCL_RUNTIME)):
        return None
    return os.path.join(folder, TBB)


def load_newest_tbb(prefix: PathLike = sys.prefix) -> bool:
    """Load `newest_tbb`, before `import openvino`.

    Returns:
        Whether it was loaded. Without it OpenVINO loads its own, and works alone.
    """
    library = newest_tbb(prefix)
    if library is None:
        return False
    try:
        ctypes.CDLL(library)
    except OSError as exc:
        log.debug("Intel's OpenCL runtime is here, and its oneTBB does not load: %s", exc)
        return False
    return True
