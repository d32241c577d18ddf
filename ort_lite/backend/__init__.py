"""ONNX's backend interface (onnx.backend.base) over sessions, with onnxruntime's names.

The stand-in runs the modules of this folder a second time, as `onnxruntime.backend.X`: they take
the session class from the package above them.
"""

from __future__ import annotations

from ort_lite.backend.backend import is_compatible, prepare, run, supports_device

__all__ = ["is_compatible", "prepare", "run", "supports_device"]
