"""ONNX's own test suite through OpenCL and the CPU EP: no case wrong.

One case in ten, because each compiles a program; all with ORT_LITE_WHOLE_SUITE=1.
"""

from __future__ import annotations

from onnx_backend import OpenClBackend, suite

globals().update(suite(OpenClBackend, __name__, every=10))
