"""A package's extension module alone, without the package around it.

Packages with a compiled core bring much that the core does not need, and importing the core in the
usual way imports all of that first. A program that imports the package before or after this gets
all of it, on the same extension module.
"""

from __future__ import annotations

import sys
from importlib import _bootstrap, import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

_IMPORT_LOCK: Any = getattr(_bootstrap, "_ModuleLockManager", None)
"""CPython's lock of one module's import, which has no public name; without it, the package."""


def load_extension(package: str, name: str) -> Any:  # noqa: ANN401 - extensions have no types
    """The module `package.name`, which is in sys.modules from then on.

    A thread that imports the package meanwhile waits for it.

    Raises:
        ImportError: The package is not installed, or a library that the extension needs is not.
    """
    full_name = f"{package}.{name}"
    if full_name in sys.modules:
        return sys.modules[full_name]
    path = _path(package, name)
    if path is None or _IMPORT_LOCK is None:
        return import_module(full_name)
    with _IMPORT_LOCK(full_name):
        if full_name not in sys.modules:
            sys.modules[full_name] = _load_from(path, full_name)
        return sys.modules[full_name]


def _load_from(path: Path, full_name: str) -> Any:  # noqa: ANN401 - see load_extension
    loader = ExtensionFileLoader(full_name, str(path))
    spec = spec_from_file_location(full_name, path, loader=loader)
    assert spec is not None, "a loader was given"
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _path(package: str, name: str) -> Path | None:
    """The extension's file; None if it is not in the package's folder."""
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError(f"the {package} package is not installed")
    for folder in spec.submodule_search_locations:
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder) / f"{name}{suffix}"
            if path.is_file():
                return path
    return None


def onnx_extension() -> Any:  # noqa: ANN401 - onnx has no types for it
    """The module `onnx.onnx_cpp2py_export`, with `defs` and `shape_inference`.

    `import onnx` takes ten times as long: it brings protobuf's Python side and helpers. The module
    takes and gives models as bytes and needs none of that.

    Raises:
        ImportError: onnx is not installed.
    """
    return load_extension("onnx", "onnx_cpp2py_export")
