"""What onnxruntime tells of its build and takes for the whole process."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from ort_lite.version import VERSION

if TYPE_CHECKING:
    from ort_lite.options import SessionOptions


def get_device() -> str:
    """Where values at the border of a session live: always "CPU"."""
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
    """Nothing: ort_lite sends nothing to anybody, and has nothing to switch on."""


def disable_telemetry_events() -> None:
    """Nothing: there is no telemetry."""
