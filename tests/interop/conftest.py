"""ONNX Runtime as a peer, with its OpenVINO plug-in where that has a device."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.peer import Peer


@pytest.fixture
def peer(tmp_path_factory: pytest.TempPathFactory) -> Peer:
    """onnxruntime, without the plug-in unless a call asks for it."""
    return Peer(tmp_path_factory.mktemp("peer"))


@pytest.fixture(scope="session")
def _plugin_devices(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return Peer(tmp_path_factory.mktemp("devices")).device_names()


@pytest.fixture
def plugin(peer: Peer, _plugin_devices: list[str]) -> Peer:
    """onnxruntime whose plug-in has a device; other processors than Intel's skip."""
    if not _plugin_devices:
        pytest.skip(
            "onnxruntime-ep-openvino lists no OpenVINO device: it takes Intel's processors "
            f"alone, and this one is {_processor()}"
        )
    return peer


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")
