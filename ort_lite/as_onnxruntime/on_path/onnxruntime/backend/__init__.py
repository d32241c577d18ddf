"""onnxruntime.backend: ort_lite.backend, of this package's session class."""

from __future__ import annotations

from importlib import import_module

import ort_lite.backend

__path__ = list(ort_lite.backend.__path__)
_backend = import_module(f"{__name__}.backend")
is_compatible, prepare = _backend.is_compatible, _backend.prepare
run, supports_device = _backend.run, _backend.supports_device
__all__ = ["is_compatible", "prepare", "run", "supports_device"]
