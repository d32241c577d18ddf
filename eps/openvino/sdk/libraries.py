"""OpenVINO's libraries: where they are, and how they are loaded before a session needs them.

OpenVINO and Intel's OpenCL runtime both want a libtbb.so.12, and a process has one library of a
name. OpenVINO brings its own, which is older than the one that Intel's OpenCL runtime
(intel-opencl-rt on PyPI) is linked against: with OpenVINO's loaded first, it fails to load
(undefined symbol; seen with 2026.4.1 and 2026.2.0). oneTBB serves programs that were linked against
older releases, so the newer one comes first.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache, partial
from typing import TYPE_CHECKING

from eps.openvino.options import (
    DEVICE_OPTION,
    PACKAGE,
    device_kind,
    import_config,
    parse_options,
)
from eps.openvino.sdk_errors import SDK_ERRORS
from ort_lite.ep import InvalidArgument, get_logger, package_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    PathLike = str | os.PathLike[str]

log = get_logger(__name__)

EXTENSION = "openvino._pyopenvino"
RUNTIME = "libopenvino.so."
C_API = "libopenvino_c.so."
PLUGINS = {
    "CPU": "libopenvino_intel_cpu_plugin.so",
    "GPU": "libopenvino_intel_gpu_plugin.so",
    "NPU": "libopenvino_intel_npu_plugin.so",
}
"""Plug-in library by kind of device."""
OPENCL_RUNTIME = "libintelocl.so"
TBB = "libtbb.so.12"

SMALL_IR = b"""<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="1" name="y" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""
"""An OpenVINO IR of a model whose output is its input."""


def libraries(kind: str) -> list[str]:
    """Paths of the runtime and of a device kind's plug-in, in load order.

    Empty if the extension is loaded already, the package is not installed, or not on Linux.
    """
    if EXTENSION in sys.modules:
        return []
    tbb, plugin = newest_tbb(), PLUGINS.get(kind)
    paths = _libraries(RUNTIME, C_API, *([plugin] if plugin is not None else []))
    return [tbb, *paths] if paths and tbb is not None else paths


def c_library() -> str | None:
    """Path of OpenVINO's C API library; None if the package has none, or not on Linux."""
    return next(iter(_libraries(C_API)), None)


def newest_tbb(prefix: PathLike = sys.prefix) -> str | None:
    """Path of PyPI's oneTBB if Intel's OpenCL runtime is installed; else None.

    Args:
        prefix: The Python environment, in whose `lib` wheels put their libraries.
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


def first_use(options: Mapping[str, str]) -> Callable[[], None] | None:
    """Work that prepares a session's Core in a thread; None for other devices than the CPU.

    Args:
        options: The execution provider's options, not checked yet.
    """
    kind = device_kind(options.get(DEVICE_OPTION, "CPU"))
    return partial(_prepare_cpu, options) if kind == "CPU" else None


def _prepare_cpu(options: Mapping[str, str]) -> None:
    """Create the execution provider's Core, query the CPU's name and read a small model.

    The first query waits for the plug-in to examine the machine, and the first read for the
    operator sets and the reader of OpenVINO's IR, which is part of every blob. Errors are ignored
    here; opening the device reports them.
    """
    from eps.openvino.sdk.c_api import VERSIONS, core_with, open_library  # noqa: PLC0415 - lazy: reload
    from eps.openvino.sdk.signal_stack import KeptSignalStack  # noqa: PLC0415 - lazy: reload

    library = c_library()
    if library is None:
        return
    try:
        config = import_config(parse_options(options))
        api = open_library(library)
        if api.version().startswith(VERSIONS):
            core = core_with(api, "CPU", config)
            with KeptSignalStack():
                api.text(api.ov_core_get_property, core, b"CPU", b"FULL_DEVICE_NAME")
            read = api.ov_core_read_model_from_memory_buffer
            api.create(read, core, SMALL_IR, len(SMALL_IR), None, free=api.ov_model_free)
    except (OSError, InvalidArgument, *SDK_ERRORS):
        return


def _libraries(*prefixes: str) -> list[str]:
    """Paths in the package's library folder: the first file with each prefix."""
    folder, names = _folder()
    first = (next((n for n in names if n.startswith(prefix)), None) for prefix in prefixes)
    return [os.path.join(folder, name) for name in first if name is not None]


@cache
def _folder() -> tuple[str, tuple[str, ...]]:
    """The package's library folder and its file names, read once; ("", ()) if absent."""
    for package in package_folders(PACKAGE) if sys.platform == "linux" else ():
        folder = os.path.join(package, "libs")
        if os.path.isdir(folder):
            return folder, tuple(sorted(os.listdir(folder)))
    return "", ()
