"""OpenVINO's runtime as `ov`: the extension module alone, without the package around it.

`import openvino` takes ten times as long as the runtime in it: it brings the model converter,
telemetry with urllib and http, and sixteen opsets. The extension module needs none of that, and
none of it is imported here; a program that imports openvino before or after this gets all of the
package, on top of the same extension module.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from typing import Any

from eps.openvino.early_loading import EXTENSION

PACKAGE = "openvino"

_loading = Lock()


def load_extension() -> Any:  # noqa: ANN401 - the SDK has no types
    """The module `openvino._pyopenvino`; in sys.modules from then on, as after `import openvino`.

    Raises:
        ImportError: The package is not installed, or its libraries cannot be loaded.
    """
    with _loading:
        loaded = sys.modules.get(EXTENSION)
        if loaded is not None:
            return loaded
        path = None if sys.platform == "win32" else _extension_path()
        if path is None:  # Windows needs the package to find its libraries
            __import__(EXTENSION)
            return sys.modules[EXTENSION]
        return _loaded_from(path)


def _loaded_from(path: Path) -> Any:  # noqa: ANN401 - see load_extension
    loader = ExtensionFileLoader(EXTENSION, str(path))
    spec = spec_from_file_location(EXTENSION, path, loader=loader)
    assert spec is not None, "a loader was given"
    module = module_from_spec(spec)
    sys.modules[EXTENSION] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[EXTENSION]
        raise
    return module


def _extension_path() -> Path | None:
    """The extension's file; None where it does not lie in the package's folder."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("the openvino package is not installed")
    for folder in spec.submodule_search_locations:
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder) / f"_pyopenvino{suffix}"
            if path.is_file():
                return path
    return None


ov: Any = load_extension()
"""What `import openvino as ov` gives of the runtime: Core, Tensor, Type, PartialShape and so on,
as the binding has them, without the package's Python wrappers."""

VERSION: str = ov.get_version()
"""As `openvino.__version__`."""
