"""The file that OpenCL's loader is in, found without importing anything of pyopencl's."""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES

from ort_lite.ep import package_folders

PACKAGE = "pyopencl"
MISSING = 'the pyopencl package is not installed: pip install "ort-lite[opencl]"'


def package_folder() -> str | None:
    """pyopencl's folder; None if it is not installed."""
    return next(iter(package_folders(PACKAGE)), None)


def library_of(folder: str) -> str | None:
    """The loader in pyopencl's wheel for Windows, and elsewhere what pyopencl's extension needs.

    The loader's own file has another name in each wheel; but for Windows, a library gives the
    functions of those that it needs as if they were its own.

    Returns:
        None if pyopencl's folder holds no extension.
    """
    if sys.platform == "win32":
        return (
            _find_bundled(os.path.join(os.path.dirname(folder), f"{PACKAGE}.libs")) or "OpenCL.dll"
        )
    paths = (os.path.join(folder, f"_cl{suffix}") for suffix in EXTENSION_SUFFIXES)
    return next((path for path in paths if os.path.isfile(path)), None)


def _find_bundled(folder: str) -> str | None:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    libraries = [name for name in names if name.startswith("opencl") and name.endswith(".dll")]
    return os.path.join(folder, libraries[0]) if libraries else None
