"""OpenVINO's runtime as `ov`: the extension module alone, without the package around it.

`import openvino` takes ten times as long as the runtime in it: it brings the model converter,
telemetry with urllib and http, and sixteen opsets. The extension module needs none of that.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from eps.openvino.sdk.early_loading import EXTENSION
from ort_lite.ep import load_extension

ON_WINDOWS = sys.platform == "win32"
"""There the package is needed, to find the libraries."""

ov: Any = import_module(EXTENSION) if ON_WINDOWS else load_extension(*EXTENSION.split("."))
"""What `import openvino as ov` gives of the runtime: Core, Tensor, Type, PartialShape and so on,
as the binding has them, without the package's Python wrappers."""

VERSION: str = ov.get_version()
"""As `openvino.__version__`."""
