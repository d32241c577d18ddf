"""The file that OpenCL's loader is in, found without importing anything of pyopencl's."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "pyopencl"


def package_folder() -> Path | None:
    """Where pyopencl lies; None where it is not installed."""
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    return Path(folders[0]) if folders else None


def library_of(folder: Path) -> Path | None:
    """The loader in pyopencl's wheel for Windows, and elsewhere what pyopencl's extension needs.

    The loader's own file has another name in each wheel; but for Windows, a library gives the
    functions of those that it needs as if they were its own.

    Returns:
        None where pyopencl's folder holds no extension.
    """
    if sys.platform == "win32":
        bundled = sorted((folder.parent / f"{PACKAGE}.libs").glob("opencl*.dll"))
        return bundled[0] if bundled else Path("OpenCL.dll")
    paths = (folder / f"_cl{suffix}" for suffix in EXTENSION_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)
