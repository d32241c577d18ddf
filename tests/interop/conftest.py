"""ONNX Runtime as a peer, with its OpenVINO plug-in where that has a device."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.any_processor import TableError, link_package
from interop.peer import Peer


@pytest.fixture
def peer(tmp_path_factory: pytest.TempPathFactory) -> Peer:
    """onnxruntime, without the plug-in unless a call asks for it."""
    return Peer(tmp_path_factory.mktemp("peer"))


@pytest.fixture(scope="session")
def plugin_packages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the onnxruntime lies whose plug-in has a device: "" for the installed one."""
    folder = tmp_path_factory.mktemp("devices")
    if Peer(folder).device_names():
        return ""
    try:
        packages = str(link_package(tmp_path_factory.mktemp("packages")))
    except TableError as exc:
        return pytest.skip(f"onnxruntime-ep-openvino knows Intel's processors alone, and {exc}")
    if not Peer(folder, packages).device_names():
        pytest.skip(f"onnxruntime-ep-openvino lists no OpenVINO device on this {_processor()}")
    return packages


@pytest.fixture
def plugin(tmp_path_factory: pytest.TempPathFactory, plugin_packages: str) -> Peer:
    """onnxruntime whose plug-in has a device: on AMD's processors see any_processor.py."""
    return Peer(tmp_path_factory.mktemp("peer"), plugin_packages)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown processor")
