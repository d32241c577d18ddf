"""Shows the OpenCL loader Intel's CPU runtime from PyPI in addition to the system's own drivers.

The runtime's wheel puts libintelocl.so into `<prefix>/lib`, and its .icd file names a folder of
the build machine (seen with intel-opencl-rt 2026.2.0), so no loader finds it. The loader in
pyopencl's wheel reads OCL_ICD_VENDORS once, at the first platform query, and then looks there
instead of in /etc/OpenCL/vendors: the private folder made here holds the system's files too.
PYOPENCL_HOME is the folder of the wheel's own PoCL; without it that loader dies (2026.1.4).
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int32, c_uint32, c_void_p
from typing import TYPE_CHECKING

from ort_lite.ep import EPFail, get_logger, remedy_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence

    PathLike = str | os.PathLike[str]

log = get_logger(__name__)

SYSTEM_VENDORS = "/etc/OpenCL/vendors"
VARIABLE = "OCL_ICD_VENDORS"
HOME = "PYOPENCL_HOME"
TEMPORARY = ("/tmp", "/var/tmp")
CHOSEN_BY_USER = (VARIABLE, "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES")
LIBRARY = "libintelocl.so"
TBB = "libtbb.so.12"
_MOST_PLATFORMS = 4
"""Variable that names the .icd file of one driver."""
_QUERY = ctypes.CFUNCTYPE(c_int32, c_uint32, POINTER(c_void_p), POINTER(c_uint32))


def prefixes() -> tuple[str, ...]:
    """Folders that pip installs into: the environment's, its base's and the user's."""
    site = sys.modules.get("site")  # not there with python -S
    of_user = getattr(site, "USER_BASE", None) if getattr(site, "ENABLE_USER_SITE", False) else ""
    return tuple(dict.fromkeys(filter(None, (sys.prefix, sys.base_prefix, of_user))))


def _library_in(prefix: PathLike | None) -> str:
    """Path of the runtime's library, or its expected path in the first folder."""
    places = [os.path.join(p, "lib", LIBRARY) for p in ((prefix,) if prefix else prefixes())]
    return next(filter(os.path.isfile, places), places[0])


def intel_runtime(environ: Mapping[str, str], *, prefix: PathLike | None = None) -> str | None:
    """The runtime's library, where it is installed and the user has not chosen the drivers."""
    library = _library_in(prefix)
    chosen = any(environ.get(key) for key in CHOSEN_BY_USER)
    return library if os.path.isfile(library) and not chosen else None


def show_intel_runtime(
    environ: MutableMapping[str, str],
    folder: PathLike,
    *,
    prefix: PathLike | None = None,
    system: PathLike = SYSTEM_VENDORS,
) -> str:
    """Point the loader at a folder with every driver, where the user has not chosen one.

    Args:
        environ: `os.environ`; the loader reads the process's own environment.
        folder: An empty one, for the .icd files.
        prefix: Where the wheel was installed; None for `prefixes`.
        system: Folder of the system's .icd files.

    Returns:
        What was done or why nothing was, one line for `ort-lite devices`.

    Raises:
        EPFail: Intel's runtime does not load for want of memory or descriptors.
    """
    chosen = [key for key in CHOSEN_BY_USER if environ.get(key)]
    if chosen:
        return f"{chosen[0]}={environ[chosen[0]]} decides which drivers are seen"
    library = _library_in(prefix)
    if not os.path.isfile(library):
        return f'{library} does not exist: pip install "ort-lite[opencl-intel]"'
    try:
        _load(library, folder)
    except OSError as exc:
        if remedy := remedy_of(exc):
            # The loader looks for drivers once in a process: this one would be missing for good.
            raise EPFail(f"{library} does not load now: {exc}. To fix this: {remedy}") from exc
        reason = f"{library} does not load: {exc}. pip install intel-cmplr-lib-rt"
        log.warning("Intel's OpenCL runtime is not used: %s", reason)
        return reason
    for name in sorted(os.listdir(system)) if os.path.isdir(system) else ():
        if name.endswith(".icd"):
            with open(os.path.join(system, name), "rb") as file:
                _write(os.path.join(folder, name), file.read())
    _write(os.path.join(folder, "ort_lite_intel.icd"), os.fsencode(f"{library}\n"))
    environ[VARIABLE] = os.fspath(folder)
    return f"{library} shown to the loader"


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _load(library: str, folder: PathLike) -> None:
    """Load Intel's runtime, with its own oneTBB if the process has an older one.

    `import openvino` brings one of the same name, which lacks symbols (OpenVINO 2026.4.1, Intel's
    2026.2.0). It stays what OpenVINO uses.

    Raises:
        OSError: It cannot be loaded.
    """
    own = os.path.join(os.path.dirname(library), TBB)
    try:
        ctypes.CDLL(library)
    except OSError as exc:
        if "undefined symbol" not in str(exc) or not os.path.isfile(own):
            raise
        log.debug("Intel's OpenCL runtime gets a oneTBB of its own: %s", exc)
        from eps.opencl.runtime.search_order import load_in_order  # noqa: PLC0415 - lazy: rare

        load_in_order([own, library], os.fspath(folder))


def platforms_unseen(environ: Mapping[str, str], listed: Sequence[int]) -> list[int]:
    """Platforms of Intel's runtime that the loader does not list, asked of the runtime itself.

    The loader looks for drivers once in a process, which another package may have had it do before
    `drivers_shown`. It passes each call on to the driver that made the object, listed or not
    (cl_khr_icd).

    Args:
        environ: Of the process.
        listed: Handles of the platforms that the loader lists.
    """
    if sys.platform != "linux":
        return []
    library = intel_runtime(environ)
    if library is None:
        return []
    try:
        address = ctypes.CDLL(library, os.RTLD_NOLOAD | os.RTLD_NOW).clGetExtensionFunctionAddress
    except (OSError, AttributeError):  # it was not loaded, which show_intel_runtime has said why
        return []
    address.argtypes, address.restype = (c_char_p,), c_void_p
    query_at = address(b"clIcdGetPlatformIDsKHR")
    if not query_at:
        return []
    query = _QUERY(query_at)
    handles, count = (c_void_p * _MOST_PLATFORMS)(), c_uint32()
    if query(_MOST_PLATFORMS, handles, count):
        return []
    there = handles[: min(count.value, _MOST_PLATFORMS)]
    return [handle for handle in there if handle and handle not in listed]


@contextmanager
def drivers_shown(package: str) -> Iterator[str]:
    """For the first platform query of the process: every driver is shown to the loader.

    Gives the line of `show_intel_runtime`; `package` is pyopencl's folder. The environment is as
    before afterwards, so that child processes do not inherit a folder that is gone.
    """
    if sys.platform != "linux":
        yield "the system's loader"
        return
    with _private_folder() as folder:
        before = {key: os.environ.get(key) for key in (VARIABLE, HOME)}
        os.environ[HOME] = package  # as pyopencl itself does
        try:
            yield show_intel_runtime(os.environ, folder)
        finally:
            for key, value in before.items():
                os.environ.pop(key, None)
                if value is not None:
                    os.environ[key] = value


@contextmanager
def _private_folder() -> Iterator[str]:
    """A folder of this user's, where tempfile would make it, and gone afterwards.

    Without tempfile, whose import takes longer than the query that the folder is for: it brings
    shutil, bz2, lzma and random.

    Raises:
        EPFail: There is no place for one.
    """
    configured = [os.environ.get(key) for key in ("TMPDIR", "TEMP", "TMP")]
    parents = [
        p for p in (*configured, *TEMPORARY) if p and os.path.isdir(p) and os.access(p, os.W_OK)
    ]
    folder = f"ort_lite_icd_{os.urandom(8).hex()}"
    try:
        folder = os.path.join(os.path.abspath(parents[0]), folder)
        os.mkdir(folder, 0o700)
    except (IndexError, OSError) as exc:
        raise EPFail(
            "no folder for temporary files can be used, in which to show OpenCL's loader the "
            f"drivers ({exc}); set TMPDIR"
        ) from exc
    try:
        yield folder
    finally:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
