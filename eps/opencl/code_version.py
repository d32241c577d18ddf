"""The version of generated code and payloads."""

from __future__ import annotations

CODE_VERSION = "ort_lite-opencl-9"
"""A change makes older payloads unsupported."""
