"""ONNX's own test suite through OpenVINO and the CPU EP: no case wrong."""

from __future__ import annotations

from onnx_backend import OpenVinoBackend, suite

globals().update(suite(OpenVinoBackend, __name__))
