"""Prints, as JSON, the names of onnxruntime's modules, the members of classes and signatures.

Run by itself it describes onnxruntime; by the stand-in, what ort_lite has in its place.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys

MODULES = (
    "onnxruntime",
    "onnxruntime.backend",
    "onnxruntime.backend.backend",
    "onnxruntime.backend.backend_rep",
    "onnxruntime.capi",
    "onnxruntime.capi._ld_preload",
    "onnxruntime.capi._pybind_state",
    "onnxruntime.capi.build_and_package_info",
    "onnxruntime.capi.convert_npz_to_onnx_adapter",
    "onnxruntime.capi.onnxruntime_inference_collection",
    "onnxruntime.capi.onnxruntime_pybind11_state",
    "onnxruntime.capi.onnxruntime_validation",
)


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name != "__init__"


def signature(function: object) -> list[str] | None:
    """Parameters with their defaults; None where nobody can tell, as of pybind11's functions."""
    try:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]  # tried
    except (TypeError, ValueError):
        return None
    found = []
    for parameter in parameters:
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(
            parameter.kind, ""
        )
        default = parameter.default
        has_one = default is not parameter.empty
        value = f"={int(default) if isinstance(default, int) else default!r}" if has_one else ""
        found.append(f"{prefix}{parameter.name}{value}")
    return found


def members(kind: type) -> dict[str, list[str] | None]:
    names = [name for name in dir(kind) if not is_special(name)]
    return {name: signature(getattr(kind, name, None)) for name in names}


def described(module: str) -> dict[str, object]:
    found: dict[str, object] = {}
    imported = importlib.import_module(module)
    for name in dir(imported):
        if is_special(name):
            continue
        value = getattr(imported, name)
        if inspect.isclass(value):
            found[name] = members(value)
        elif inspect.ismodule(value):
            found[name] = "module"
        else:
            found[name] = signature(value) if callable(value) else "value"
    return found


if __name__ == "__main__":
    json.dump({module: described(module) for module in MODULES}, sys.stdout)
