"""Facts and settings of the whole process, under onnxruntime's names."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

from ort_lite.providers.catalog import get_available_providers
from ort_lite.version import ONNXRUNTIME_VERSION, VERSION

if TYPE_CHECKING:
    from ort_lite.options import SessionOptions


def get_device() -> str:
    """Device of a session's inputs and outputs: always "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """The version of ort_lite."""
    return VERSION


def get_build_info() -> str:
    """One line for a bug report."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"ort_lite {VERSION}, {python}, {platform.system()} {platform.machine()}"


def get_default_session_options() -> SessionOptions:
    """Options as a session has them without any."""
    from ort_lite.options import SessionOptions  # noqa: PLC0415 - lazy: reload

    return SessionOptions()


def has_collective_ops() -> bool:
    """False: no operator of ours speaks with another machine."""
    return False


def enable_telemetry_events() -> None:
    """Do nothing: ort_lite collects and sends no telemetry."""


def disable_telemetry_events() -> None:
    """Do nothing: ort_lite has no telemetry."""


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
