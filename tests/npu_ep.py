"""An execution provider of the tests that says it runs on an NPU and a GPU.

What it is given it computes as the example EP does: only where it is chosen matters here.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.identity import HardwareIdentity
from ort_lite.ep.factory import DeviceInfo, Probe

sys.path.append(str(Path(__file__).parents[1] / "examples" / "example_ep"))
from example_ep.provider import ExampleExecutionProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep.interface import ExecutionProvider

NAME = "ChipExecutionProvider"


class ChipExecutionProvider(ExampleExecutionProvider):
    """The example EP under another name."""

    name = NAME


def _device(kind: str) -> DeviceInfo:
    identity = HardwareIdentity(
        vendor="Chip", device=kind, architecture="chip", sdk_version="1.0.0"
    )
    return DeviceInfo(
        name=kind, kind=kind, description=f"a {kind}", identity=identity, options={"device": kind}
    )


@dataclass(frozen=True)
class _Factory:
    name: str = NAME
    options: Mapping[str, str] = field(default_factory=lambda: {"device": "NPU or GPU"})

    def probe(self) -> Probe:
        return Probe(devices=(_device("GPU"), _device("NPU")))

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        return ChipExecutionProvider("float32")


FACTORY = _Factory()
