"""What of OpenVINO can be begun before a session asks for it: loading, and naming the device."""

from __future__ import annotations

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
from eps.openvino.sdk.shared_tbb import newest_tbb
from eps.openvino.sdk_errors import SDK_ERRORS
from ort_lite.ep import InvalidArgument, package_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EXTENSION = "openvino._pyopenvino"
RUNTIME = "libopenvino.so."
C_API = "libopenvino_c.so."
PLUGINS = {
    "CPU": "libopenvino_intel_cpu_plugin.so",
    "GPU": "libopenvino_intel_gpu_plugin.so",
    "NPU": "libopenvino_intel_npu_plugin.so",
}
"""By kind of device."""

SMALL_IR = b"""<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="1" name="y" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""
"""A model that hands its input through."""


def libraries(kind: str) -> list[str]:
    """The runtime and the plug-in of a kind of device, in the order in which to load them.

    None where the extension is loaded, where the package is not installed, or not on Linux.
    """
    if EXTENSION in sys.modules:
        return []
    tbb, plugin = newest_tbb(), PLUGINS.get(kind)
    found = _libraries(RUNTIME, C_API, *([plugin] if plugin is not None else []))
    return [tbb, *found] if found and tbb is not None else found


def c_library() -> str | None:
    """The library of OpenVINO's C API; None where the package holds none, or not on Linux."""
    return next(iter(_libraries(C_API)), None)


def first_use(options: Mapping[str, str]) -> Callable[[], None] | None:
    """What a session's Core can do once it is loaded, without the interpreter's lock.

    Args:
        options: The execution provider's, not checked yet.
    """
    kind = device_kind(options.get(DEVICE_OPTION, "CPU"))
    return partial(_use_cpu, options) if kind == "CPU" else None


def _use_cpu(options: Mapping[str, str]) -> None:
    """Make the Core that the execution provider will have; it names the CPU and reads a model.

    The first to ask waits for the plug-in to look at the machine, and the first to read for the
    operator sets and the reader of OpenVINO's IR, which is in every blob. What goes wrong,
    opening the device says.
    """
    from eps.openvino.sdk.c_api import VERSIONS, core_with, open_library  # noqa: PLC0415 - lazy: reload

    library = c_library()
    if library is None:
        return
    try:
        config = import_config(parse_options(options))
        api = open_library(library)
        if api.version().startswith(VERSIONS):
            core = core_with(api, "CPU", config)
            api.text(api.ov_core_get_property, core, b"CPU", b"FULL_DEVICE_NAME")
            read = api.ov_core_read_model_from_memory_buffer
            api.create(read, core, SMALL_IR, len(SMALL_IR), None, free=api.ov_model_free)
    except (OSError, InvalidArgument, *SDK_ERRORS):
        return


def _libraries(*beginnings: str) -> list[str]:
    """Files in the package's folder of libraries, the first with each beginning."""
    folder, names = _folder()
    found = (next((n for n in names if n.startswith(b)), None) for b in beginnings)
    return [os.path.join(folder, name) for name in found if name is not None]


@cache
def _folder() -> tuple[str, tuple[str, ...]]:
    """The package's folder of libraries and what is in it, looked at once in a process."""
    for package in package_folders(PACKAGE) if sys.platform == "linux" else ():
        folder = os.path.join(package, "libs")
        if os.path.isdir(folder):
            return folder, tuple(sorted(os.listdir(folder)))
    return "", ()
