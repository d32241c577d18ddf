"""The counterpart of `onnxruntime.capi`; code for onnxruntime imports names from its modules.

The stand-in runs the modules of this folder a second time, as `onnxruntime.capi.X`: they hold
nothing but names, which they take from the package above them, be it ort_lite or onnxruntime.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_MODULES = (
    "_ld_preload",
    "_pybind_state",
    "build_and_package_info",
    "onnxruntime_inference_collection",
    "onnxruntime_pybind11_state",
    "onnxruntime_validation",
)
"""Submodules that `onnxruntime.capi` has once onnxruntime is imported."""


def modules_of(package: str) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package with these modules, which import them when asked."""

    def get(name: str) -> ModuleType:
        if name in _MODULES:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name)

    return get, lambda: list(_MODULES)


__getattr__, __dir__ = modules_of(__name__)
