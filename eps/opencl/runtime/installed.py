"""Whether a loader and a driver of OpenCL are installed, without asking either."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eps.opencl.cl.library import MISSING
from eps.opencl.runtime.icd import CHOSEN_BY_USER, SYSTEM_VENDORS, intel_runtime

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    PathLike = str | os.PathLike[str]

NO_DRIVER = "no OpenCL driver is installed: pip install 'ort-lite[opencl-intel]' brings Intel's"


def missing_part(
    environ: Mapping[str, str],
    *,
    package: PathLike | None,
    prefix: PathLike | None = None,
    system: PathLike = SYSTEM_VENDORS,
) -> str:
    """Why no platform can be there; "" where one may be, as far as files on the disk show.

    On Linux a driver is a .icd file of the system's, of pyopencl's wheel (PoCL), or Intel's
    runtime from PyPI. Elsewhere drivers are in the system's registry, which is not looked at.

    Args:
        environ: `os.environ`; a variable with which the user chose the drivers decides.
        package: pyopencl's folder; None if it is not installed.
        prefix: Where Intel's runtime may be installed; None for wherever pip installs.
        system: Folder of the system's .icd files.
    """
    if package is None:
        return MISSING
    if sys.platform != "linux" or any(environ.get(key) for key in CHOSEN_BY_USER):
        return ""
    places = (Path(system), Path(package, ".libs"))
    if intel_runtime(environ, prefix=prefix) or any(any(p.glob("*.icd")) for p in places):
        return ""
    return NO_DRIVER
