"""Prints, as JSON, the names of onnxruntime's modules, the members of classes and signatures.

Run by itself it describes onnxruntime. By the stand-in, with that description as argument, it says
what ort_lite has in its place.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

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
    return name.startswith("__") and name.endswith("__")


def signature(function: Any) -> list[str] | None:
    """Parameters, those without a default marked by "!"; None where nobody can tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        marks[p.kind] if p.kind in marks else p.name + ("!" if p.default is p.empty else "")
        for p in parameters
    ]


def described(module: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Names to members of classes, to signatures of functions, or to None.

    Args:
        asked: As this function describes another module of that name: its names are looked for,
            too, since not every attribute is in `dir`.
    """
    imported = importlib.import_module(module)
    found: dict[str, Any] = {}
    for name in sorted({*dir(imported), *asked}):
        if is_special(name) or not hasattr(imported, name):
            continue
        value = getattr(imported, name)
        if inspect.isclass(value):
            wanted = asked.get(name)
            members = {*dir(value), *(wanted if isinstance(wanted, dict) else ())}
            found[name] = {
                member: signature(getattr(value, member))
                for member in sorted(members)
                if not is_special(member) and hasattr(value, member)
            }
        else:
            found[name] = signature(value) if callable(value) else None
    return found


if __name__ == "__main__":
    other = json.loads(Path(sys.argv[1]).read_text("utf-8")) if sys.argv[1:] else {}
    json.dump({name: described(name, other.get(name, {})) for name in MODULES}, sys.stdout)
