"""What onnxruntime's package offers besides sessions: facts for bug reports, preloading."""

from __future__ import annotations

import platform
import sys

from ort_lite.providers.catalog import get_available_providers
from ort_lite.version import ONNXRUNTIME_VERSION, VERSION


def print_debug_info() -> None:
    """Print versions, the system and the execution providers to stdout, for a bug report."""
    lines = (
        f"ort_lite version: {VERSION}, with the interface of onnxruntime {ONNXRUNTIME_VERSION}",
        f"platform: {platform.platform()}",
        f"Python: {platform.python_implementation()} {platform.python_version()}",
        f"execution providers: {', '.join(get_available_providers())}",
    )
    sys.stdout.write("\n".join(lines) + "\n")


def preload_dlls(
    cuda: bool = True,  # noqa: FBT001, FBT002 - onnxruntime's signature
    cudnn: bool = True,  # noqa: FBT001, FBT002 - as above
    msvc: bool = True,  # noqa: FBT001, FBT002 - as above
    directory: str | None = None,
) -> None:
    """Nothing: onnxruntime loads CUDA's libraries here, which no execution provider here uses."""
