"""ONNX's own test suite through OpenCL and the CPU EP: no case wrong."""

from __future__ import annotations

from onnx_backend import OpenClBackend, suite

globals().update(suite(OpenClBackend, __name__))
