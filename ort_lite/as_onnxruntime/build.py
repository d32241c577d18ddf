"""Build information of the stand-in, in the format that code for onnxruntime expects."""

from __future__ import annotations

from ort_lite.version import ONNXRUNTIME_VERSION, VERSION


def get_version_string() -> str:
    """The release of onnxruntime whose interface this is."""
    return ONNXRUNTIME_VERSION


def get_build_info() -> str:
    """One line, which begins as onnxruntime's."""
    return f"ORT Build Info: ort_lite={VERSION}, in place of onnxruntime {ONNXRUNTIME_VERSION}"
