"""onnx's compiled part alone: schemas and shape inference, without the package around it.

`import onnx` takes ten times as long: it brings protobuf's Python side, helpers for every kind of
value and printers. The extension module takes and gives models as bytes and needs none of that. A
program that imports onnx before or after this gets all of the package, on the same extension.
"""

from __future__ import annotations

import sys
from importlib import _bootstrap
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

PACKAGE, NAME = "onnx", "onnx_cpp2py_export"
EXTENSION = f"{PACKAGE}.{NAME}"

_IMPORT_LOCK: Any = getattr(_bootstrap, "_ModuleLockManager", None)
"""CPython's lock of one module's import, which has no public name; without it, the package."""


def onnx_extension() -> Any:  # noqa: ANN401 - onnx has no types for it
    """The module `onnx.onnx_cpp2py_export`, with `defs` and `shape_inference`.

    It is in sys.modules from then on, as after `import onnx`; a thread that imports onnx meanwhile
    waits for it.

    Raises:
        ImportError: onnx is not installed.
    """
    if EXTENSION in sys.modules:
        return sys.modules[EXTENSION]
    path = _extension_path()
    if path is None or _IMPORT_LOCK is None:
        __import__(EXTENSION)
        return sys.modules[EXTENSION]
    with _IMPORT_LOCK(EXTENSION):
        if EXTENSION not in sys.modules:
            sys.modules[EXTENSION] = _loaded_from(path)
        return sys.modules[EXTENSION]


def _loaded_from(path: Path) -> ModuleType:
    loader = ExtensionFileLoader(EXTENSION, str(path))
    spec = spec_from_file_location(EXTENSION, path, loader=loader)
    assert spec is not None, "a loader was given"
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _extension_path() -> Path | None:
    """The extension's file; None where it does not lie in the package's folder."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("the onnx package is not installed")
    for folder in spec.submodule_search_locations:
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder) / f"{NAME}{suffix}"
            if path.is_file():
                return path
    return None
