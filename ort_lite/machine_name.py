"""The processor's architecture, without what `platform` does on Windows to tell it."""

from __future__ import annotations

import os
import sys


def machine_name() -> str:
    """The architecture, in the words of `platform.machine()`: "x86_64", "AMD64", "arm64".

    On Windows that function also asks WMI, or starts `cmd /c ver` where there is no WMI, and
    imports `socket` (https://github.com/python/cpython/blob/v3.12.0/Lib/platform.py, `uname`).
    """
    if sys.platform == "win32":
        return os.environ.get("PROCESSOR_ARCHITECTURE", "")
    return os.uname().machine
