"""What can be begun before a session asks for its device: loading drivers, and waking one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from eps.opencl.cl.library import library_of, package_folder
from eps.opencl.icd import intel_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def libraries() -> list[Path]:
    """Intel's runtime, where the loader is to be shown it, and the loader; none but on Linux."""
    folder = package_folder() if sys.platform == "linux" else None
    if folder is None:
        return []
    return [path for path in (intel_runtime(os.environ), library_of(folder)) if path is not None]


def wake_device(options: Mapping[str, str]) -> None:
    """Have the loader find drivers, and a CPU's driver its threads: once in a process.

    Another device's driver may give up what it has made when nobody holds it. What goes wrong,
    opening the device says.
    """
    from eps.opencl.cl.c_api import OpenCLError  # noqa: PLC0415 - in the thread
    from eps.opencl.cl.objects import Context  # noqa: PLC0415 - in the thread
    from eps.opencl.device import choose, find_devices  # noqa: PLC0415 - in the thread
    from eps.opencl.options import parse_options  # noqa: PLC0415 - in the thread
    from ort_lite.status import OrtLiteError  # noqa: PLC0415 - in the thread

    try:
        found = choose(find_devices(), parse_options(options))
        if found.kind == "CPU":
            Context(found.device).release()
    except (OpenCLError, OrtLiteError):
        return
