"""ONNX's own test suite through the CPU EP: every case but the exempt ones."""

from __future__ import annotations

from onnx_backend import CpuBackend, suite

globals().update(suite(CpuBackend, __name__))
