"""What the stand-in says of its build, in the words that code written for onnxruntime expects."""

from __future__ import annotations

import platform
import sys

from ort_lite.version import ONNXRUNTIME_VERSION, VERSION


def get_version_string() -> str:
    """The release of onnxruntime whose interface this is."""
    return ONNXRUNTIME_VERSION


def get_build_info() -> str:
    """One line, which begins as onnxruntime's."""
    return f"ORT Build Info: ort_lite={VERSION}, in place of onnxruntime {ONNXRUNTIME_VERSION}"


def print_debug_info() -> None:
    """Print versions and providers to stdout, for a bug report."""
    from ort_lite.providers.catalog import get_available_providers  # noqa: PLC0415 - few ask

    lines = (
        f"onnxruntime version: {ONNXRUNTIME_VERSION} (ort_lite {VERSION} in its place)",
        f"platform: {platform.platform()}",
        f"Python: {platform.python_implementation()} {platform.python_version()}",
        f"execution providers: {', '.join(get_available_providers())}",
    )
    sys.stdout.write("\n".join(lines) + "\n")
