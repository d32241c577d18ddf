"""Shows the OpenCL loader Intel's CPU runtime from PyPI beside the system's own drivers.

The runtime's wheel puts libintelocl.so into `<prefix>/lib`, and its .icd file names a folder of
the build machine (seen with intel-opencl-rt 2026.2.0), so no loader finds it. The loader in
pyopencl's wheel reads OCL_ICD_VENDORS once, at the first platform query, and then looks there
instead of in /etc/OpenCL/vendors: the private folder made here holds the system's files too.
PYOPENCL_HOME says where the wheel's own PoCL lies; without it that loader dies (2026.1.4).
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ort_lite.session_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

log = get_logger(__name__)

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
VARIABLE = "OCL_ICD_VENDORS"
HOME = "PYOPENCL_HOME"
CHOSEN_BY_USER = (VARIABLE, "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES")
LIBRARY = "libintelocl.so"


def intel_runtime(environ: Mapping[str, str], *, prefix: Path = Path(sys.prefix)) -> Path | None:
    """The runtime's library, where it is installed and the user has not chosen the drivers."""
    library = prefix / "lib" / LIBRARY
    chosen = any(environ.get(key) for key in CHOSEN_BY_USER)
    return library if library.is_file() and not chosen else None


def show_intel_runtime(
    environ: MutableMapping[str, str],
    folder: Path,
    *,
    prefix: Path = Path(sys.prefix),
    system: Path = SYSTEM_VENDORS,
) -> str:
    """Point the loader at a folder with every driver, where the user has not chosen one.

    Args:
        environ: `os.environ`; the loader reads the process's own environment.
        folder: An empty one, for the .icd files.
        prefix: Where the wheel was installed.
        system: Folder of the system's .icd files.

    Returns:
        What was done or why nothing was, one line for `ort-lite devices`.
    """
    chosen = [key for key in CHOSEN_BY_USER if environ.get(key)]
    if chosen:
        return f"{chosen[0]}={environ[chosen[0]]} decides which drivers are seen"
    library = prefix / "lib" / LIBRARY
    if not library.is_file():
        return f"{library} is not there: pip install 'ort-lite[opencl-intel]'"
    try:
        ctypes.CDLL(str(library))
    except OSError as exc:
        told = f"{library} does not load: {exc}. {_advice(str(exc))}"
        log.warning("Intel's OpenCL runtime is not used: %s", told)
        return told
    for entry in sorted(system.glob("*.icd")) if system.is_dir() else ():
        (folder / entry.name).write_bytes(entry.read_bytes())
    (folder / "ort_lite_intel.icd").write_text(f"{library}\n", encoding="utf-8")
    environ[VARIABLE] = str(folder)
    return f"{library} shown to the loader"


def _advice(problem: str) -> str:
    if "tbb" in problem:
        return (
            "An older libtbb.so.12 was loaded before it, as `import openvino` does: open an "
            "ort_lite session first"
        )
    return "pip install intel-cmplr-lib-rt"


@contextmanager
def drivers_shown(package: Path) -> Iterator[str]:
    """For the first platform query of the process: every driver is shown to the loader.

    Gives the line of `show_intel_runtime`; `package` is pyopencl's folder. The environment is as
    before afterwards, so that child processes do not inherit a folder that is gone.
    """
    if sys.platform != "linux":
        yield "the system's loader"
        return
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - not before libraries load

    with TemporaryDirectory(prefix="ort_lite_icd_") as folder:
        before = {key: os.environ.get(key) for key in (VARIABLE, HOME)}
        os.environ[HOME] = str(package)  # as pyopencl itself does
        note = show_intel_runtime(os.environ, Path(folder))
        try:
            yield note
        finally:
            for key, value in before.items():
                os.environ.pop(key, None)
                if value is not None:
                    os.environ[key] = value
