"""What a benchmark ran on: the first line of its output."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import numpy as np

from ort_lite.hw.facts import read_facts

PEERS = ("onnxruntime", "onnxruntime-ep-openvino", "openvino", "pyopencl")


def conditions() -> str:
    """The processor, the peers with their versions, and the precision that all are asked for."""
    facts = read_facts()
    peers = ", ".join(f"{name} {version}" for name in PEERS if (version := _version(name)))
    return (
        f"{facts.cpu}, {facts.cores} cores; numpy {np.__version__}, {peers}; "
        "all engines are asked for float32.\n\n"
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
