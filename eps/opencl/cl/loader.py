"""OpenCL's loader, which comes with pyopencl and is found without importing it.

`import pyopencl` takes as long as a driver's start: it brings templates, arrays and caches of its
own. The loader in its wheel is a library like any other; a program that imports pyopencl before or
after this shares the library, and with it the drivers and the memory behind it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from threading import Lock

from eps.opencl.cl.c_api import ALL_TYPES, CApi, OpenCLError, listed
from eps.opencl.cl.library import library_of, package_folder
from eps.opencl.icd import drivers_shown
from eps.opencl.pocl_threads import threads_on_cores
from ort_lite.status import EPFail

MISSING = "the pyopencl package is not installed: pip install 'ort-lite[opencl]'"

_looking = Lock()


def api() -> CApi:
    """The loader's functions, after it and the drivers have looked around, once in a process.

    Raises:
        EPFail: There is no loader.
    """
    return _opened()[0]


def loader_note() -> str:
    """What the loader was shown.

    Raises:
        EPFail: There is no loader.
    """
    return _opened()[1]


def _opened() -> tuple[CApi, str]:
    with _looking:  # threads may open their first sessions at once
        return _opened_once()


@cache
def _opened_once() -> tuple[CApi, str]:
    folder = package_folder()
    if folder is None:
        raise EPFail(MISSING)
    library = library_of(folder)
    if library is None:
        raise EPFail(f"the pyopencl package in {folder} has no extension module")
    try:
        found = CApi(library)
    except OSError as exc:
        raise EPFail(f"OpenCL's loader cannot be loaded from {library}: {exc}") from exc
    with drivers_shown(folder) as note, threads_on_cores(), suppress(OpenCLError):
        for platform in listed(found.clGetPlatformIDs):
            with suppress(OpenCLError):  # who asks for its devices is told
                listed(found.clGetDeviceIDs, platform, ALL_TYPES)
    return found, note
