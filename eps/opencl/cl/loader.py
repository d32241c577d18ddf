"""OpenCL's loader, which comes with pyopencl and is found without importing it.

`import pyopencl` takes as long as a driver's start: it brings templates, arrays and caches of its
own. The loader in its wheel is a library like any other; a program that imports pyopencl before or
after this shares the library, and with it the drivers and the memory behind it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from ctypes import c_void_p
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from eps.opencl.cl.c_api import CApi, OpenCLError, list_handles
from eps.opencl.cl.constants import CL_DEVICE_TYPE_ALL
from eps.opencl.cl.library import MISSING, library_of, package_folder
from eps.opencl.cl.signal_handlers import KeptSignalHandlers
from eps.opencl.runtime.icd import drivers_shown, platforms_unseen
from eps.opencl.runtime.pocl_threads import threads_on_cores
from ort_lite.ep import EPFail, NotInstalled

if TYPE_CHECKING:
    from collections.abc import Sequence

_looking = Lock()


class _Loader(NamedTuple):
    """The loader after its first look around.

    Attributes:
        note: What it was shown.
        platforms: Every driver's, those first that it lists itself.
        problem: Why it lists none; None if it does.
    """

    api: CApi
    note: str
    platforms: tuple[int, ...]
    problem: OpenCLError | None


@cache
def api() -> CApi:
    """The loader's functions, after it and the drivers have looked around, once in a process.

    Raises:
        EPFail: No loader was found.
    """
    return _open_loader().api


def loader_note() -> str:
    """Note on the drivers that were shown to the loader; "" if there is nothing to say.

    Raises:
        EPFail: No loader was found.
    """
    return _open_loader().note


def platform_handles() -> tuple[int, ...]:
    """Of every driver.

    Raises:
        OpenCLError: No driver was found.
        EPFail: No loader was found.
    """
    opened = _open_loader()
    if opened.problem is not None and not opened.platforms:
        raise opened.problem
    return opened.platforms


def _open_loader() -> _Loader:
    with _looking:  # threads may open their first sessions at once
        return _open_loader_once()


@cache
def _open_loader_once() -> _Loader:
    folder = package_folder()
    if folder is None:
        raise NotInstalled(MISSING)
    library = library_of(folder)
    if library is None:
        raise EPFail(f"the pyopencl package in {folder} has no extension module")
    try:
        c_api = CApi(library)
    except OSError as exc:
        raise EPFail(f"OpenCL's loader cannot be loaded from {library}: {exc}") from exc
    listing: list[int] = []
    problem = None
    with drivers_shown(folder) as note, threads_on_cores(), KeptSignalHandlers():
        try:
            listing = list(
                dict.fromkeys(list_handles(c_api.clGetPlatformIDs))
            )  # a folder may have two
        except OpenCLError as exc:
            problem = exc
        _ask_for_devices(c_api, listing)
    unlisted = platforms_unseen(os.environ, listing)
    with KeptSignalHandlers():
        _ask_for_devices(c_api, unlisted)
    return _Loader(c_api, note, (*listing, *unlisted), problem)


def _ask_for_devices(c_api: CApi, platforms: Sequence[int]) -> None:
    for platform in platforms:
        with suppress(OpenCLError):  # reported to whoever lists its devices
            list_handles(c_api.clGetDeviceIDs, c_void_p(platform), CL_DEVICE_TYPE_ALL)
