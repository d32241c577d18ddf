"""Whether a loader and a driver of OpenCL are installed, without asking either."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from eps.opencl.cl.library import MISSING, package_folder
from eps.opencl.icd import CHOSEN_BY_USER, SYSTEM_VENDORS, intel_runtime

NO_DRIVER = "no OpenCL driver is installed: pip install 'ort-lite[opencl-intel]' brings Intel's"


def missing_part() -> str:
    """Why no platform can be there; "" where one may be, as far as files on the disk tell.

    On Linux a driver is a .icd file of the system's, of pyopencl's wheel (PoCL), or Intel's
    runtime from PyPI. Elsewhere drivers are in the system's registry, which is not looked at.
    """
    folder = package_folder()
    if folder is None:
        return MISSING
    if sys.platform != "linux" or any(os.environ.get(key) for key in CHOSEN_BY_USER):
        return ""
    places = (Path(SYSTEM_VENDORS), Path(folder, ".libs"))
    if intel_runtime(os.environ) or any(any(place.glob("*.icd")) for place in places):
        return ""
    return NO_DRIVER
