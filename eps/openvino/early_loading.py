"""Which of OpenVINO's libraries can be loaded before anything of it is used."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from eps.openvino.shared_tbb import newest_tbb

EXTENSION = "openvino._pyopenvino"
RUNTIME = "libopenvino.so.*"
C_API = "libopenvino_c.so.*"
PLUGINS = {
    "CPU": "libopenvino_intel_cpu_plugin.so",
    "GPU": "libopenvino_intel_gpu_plugin.so",
    "NPU": "libopenvino_intel_npu_plugin.so",
}
"""By kind of device."""


def libraries(kind: str) -> list[Path]:
    """The runtime and the plug-in of a kind of device, in the order in which to load them.

    None where the extension is loaded, where the package is not installed, or not on Linux.
    """
    if sys.platform != "linux" or EXTENSION in sys.modules:
        return []
    folder = _folder()
    if folder is None:
        return []
    tbb, plugin = newest_tbb(), PLUGINS.get(kind)
    first = [tbb] if tbb is not None else []
    last = [folder / plugin] if plugin is not None else []
    return [*first, *folder.glob(RUNTIME), *folder.glob(C_API), *last]


def c_library() -> Path | None:
    """The library of OpenVINO's C API; None where the package holds none, or not on Linux."""
    folder = _folder() if sys.platform == "linux" else None
    return next(iter(folder.glob(C_API)), None) if folder is not None else None


def _folder() -> Path | None:
    spec = find_spec("openvino")
    for package in (spec.submodule_search_locations if spec is not None else None) or ():
        folder = Path(package) / "libs"
        if folder.is_dir():
            return folder
    return None
