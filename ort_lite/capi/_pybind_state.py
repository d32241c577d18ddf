"""Names of onnxruntime's binding, by the module that onnxruntime's own Python imports them from."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_binding = import_module(f"{__package__}.onnxruntime_pybind11_state")
__all__ = list(_binding.__all__)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - as various as the names
    """Return a name of the binding."""
    return getattr(_binding, name)


def __dir__() -> list[str]:
    """Names of the binding, for `dir`."""
    return list(__all__)
