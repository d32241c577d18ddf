"""Loads OpenVINO's libraries in a thread, while Python goes on.

The interpreter's lock is held while an extension module is imported, and that takes OpenVINO's
runtime and a plug-in along: 20 ms in which nothing else runs. `dlopen` through ctypes gives the
lock away; what it has loaded, the import then finds.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from eps.openvino.shared_tbb import newest_tbb

EXTENSION = "openvino._pyopenvino"
RUNTIME = "libopenvino.so.*"
PLUGINS = {
    "CPU": "libopenvino_intel_cpu_plugin.so",
    "GPU": "libopenvino_intel_gpu_plugin.so",
    "NPU": "libopenvino_intel_npu_plugin.so",
}
"""By kind of device."""


def begin_loading(kind: str) -> Thread | None:
    """Begin to load the runtime, and the plug-in of a kind of device that has one.

    Nothing is reported: what cannot be loaded here, the import says why.

    Returns:
        What loads them; None where all is loaded, or nothing is there, or not on Linux.
    """
    wanted = sys.platform == "linux" and EXTENSION not in sys.modules
    folder = _libraries() if wanted else None
    if folder is None:
        return None
    tbb = newest_tbb()
    paths = [tbb] if tbb is not None else []
    paths += folder.glob(RUNTIME)
    paths += [folder / name for name in (PLUGINS.get(kind),) if name is not None]
    thread = Thread(target=_load, args=(paths,), name="ort_lite OpenVINO loading")
    thread.start()
    return thread


def _libraries() -> Path | None:
    spec = find_spec("openvino")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        libraries = Path(folder) / "libs"
        if libraries.is_dir():
            return libraries
    return None


def _load(paths: list[Path]) -> None:
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    for path in paths:
        dlopen(os.fsencode(path), os.RTLD_NOW)
