"""OpenVINO's NPU compiler: the real one where it is installed, and a stand-in elsewhere.

OpenVINO's package for Windows brings the compiler, the one for Linux does not.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.harness.engine_programs import FLOAT32
from eps.openvino.sdk.binding import ov

REAL_CORE = ov.Core
OPENVINO = "OpenVINOExecutionProvider"
PLATFORMS = ("3720", "4000", "5010", "5020")


def npu_providers(platform: str = "4000", **options: str) -> list[tuple[str, dict[str, str]]]:
    """OpenVINO's provider, compiling for an NPU."""
    return [(OPENVINO, {"device_type": "NPU", "npu_platform": platform, **options})]


def require_compiler() -> None:
    """Skip the test where the compiler is not installed."""
    try:
        REAL_CORE().get_property("NPU", "NPU_COMPILER_VERSION")
    except RuntimeError:
        pytest.skip("this OpenVINO has no NPU compiler library")


class CoreWithCompiler:
    """OpenVINO as it answers where Intel's NPU compiler is installed, with the CPU's compiler.

    Everything else is the real one.
    """

    asked: list[dict[str, Any]]

    def __init__(self) -> None:
        self._core = REAL_CORE()
        type(self).asked = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def get_property(self, device: str, key: str) -> Any:
        known = device == "NPU" and key == "NPU_COMPILER_VERSION"
        return 458755 if known else self._core.get_property(device, key)

    def compile_model(self, model: object, device: str, config: dict[str, Any]) -> Any:
        assert device == "NPU"
        self.asked.append(config)
        return self._core.compile_model(model, "CPU", FLOAT32)
