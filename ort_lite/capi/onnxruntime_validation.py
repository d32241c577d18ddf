"""The checks of system and package that onnxruntime makes at import."""

from __future__ import annotations

from ort_lite.capi.build_and_package_info import package_name as _package_name
from ort_lite.version import ONNXRUNTIME_VERSION as _version  # noqa: N811 - not a name of this module


def check_distro_info() -> None:
    """Nothing: ort_lite is Python and has no system that it was built for."""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """Name, version and CUDA's version, which is "": there is no CUDA here."""
    return _package_name, _version, ""


def check_training_module() -> tuple[bool, str, str, str]:
    """Whether onnxruntime-training is here, which it never is, and what above function returns."""
    return (False, *get_package_name_and_version_info())
