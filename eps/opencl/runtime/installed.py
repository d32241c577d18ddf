"""Whether a loader and a driver of OpenCL are installed, without asking either."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eps.opencl.cl.library import MISSING, library_of, package_folder
from eps.opencl.code_version import CODE_VERSION
from eps.opencl.runtime.icd import (
    CHOSEN_BY_USER,
    LIBRARY,
    SYSTEM_VENDORS,
    intel_runtime,
    prefixes,
)
from ort_lite.ep import pick_variables, stamp_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    PathLike = str | os.PathLike[str]

NO_DRIVER = 'no OpenCL driver is installed: pip install "ort-lite[opencl-intel]" brings Intel\'s'


VARIABLES = (
    *("OCL_ICD_", "OPENCL_", "OCL_", "POCL_", "PYOPENCL_", "CL_CONFIG_", "CL_", "RUSTICL_"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "ROCR_", "HIP_", "ZE_", "NEO"),
)
"""Beginnings of the names of environment variables that choose drivers or what they compile for."""


def installation_fields(environ: Mapping[str, str]) -> dict[str, str]:
    """The code generator, files of the loader and of drivers, and variables, each as text."""
    package = package_folder()
    bundled = [os.path.join(package, ".libs")] if package is not None else []
    libraries = [os.path.join(prefix, "lib", LIBRARY) for prefix in prefixes()]
    chosen = [environ.get(key, "") for key in CHOSEN_BY_USER]
    loader = library_of(package) if package is not None else None
    return {
        "code": CODE_VERSION,
        "drivers": stamp_files(filter(None, (*libraries, *bundled, loader, *chosen))),
        "variables": pick_variables(environ, VARIABLES),
    }


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
