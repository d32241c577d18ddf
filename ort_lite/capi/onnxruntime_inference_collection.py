"""Names of the module in which onnxruntime defines its session."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PACKAGE = import_module(__name__.partition(".")[0])
"""ort_lite, or onnxruntime where this is a module of the stand-in."""
_NAMES = {
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "SparseTensor",
    "copy_tensors",
}
_FUNCTIONS = {
    "check_and_normalize_provider_args",
    "get_ort_device_type",
    "get_vendor_id_for_device_type",
}
__all__ = sorted({*_NAMES, *_FUNCTIONS, "C", "Session"})


def __getattr__(name: str) -> Any:  # noqa: ANN401 - as various as the names
    """Import what `name` lives in (PEP 562)."""
    if name == "C":
        return import_module(f"{__package__}._pybind_state")
    if name == "Session":
        return import_module("ort_lite.session").InferenceSession
    if name in _FUNCTIONS:
        return getattr(import_module("ort_lite.capi.provider_arguments"), name)
    if name in _NAMES:
        return getattr(_PACKAGE, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)


def __dir__() -> list[str]:
    """Names of the module, for `dir`."""
    return list(__all__)
