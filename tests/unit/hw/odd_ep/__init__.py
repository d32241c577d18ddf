"""An EP of four operators whose machine, version and misbehaviour are options."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from example_ep.provider import ExampleExecutionProvider, ExamplePartition

from ctx_formats.identity import HardwareIdentity
from ort_lite.ep.factory import DeviceInfo, Probe
from ort_lite.ep.interface import compare_identities

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTIONS = {
    "chip": "the architecture it says it has",
    "sdk": "the version it says it has",
    "do": "hang, hang-once:FILE, crash or lie when it compiles or loads",
}


class Lying(ExamplePartition):
    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        return [np.asarray(value * np.float32(1.01)) for value in super().run(inputs)]


class OddExecutionProvider(ExampleExecutionProvider):
    name: ClassVar[str] = "OddExecutionProvider"

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__("float32")
        self._options = options

    @property
    def identity(self) -> HardwareIdentity:
        return HardwareIdentity(
            device="CPU: odd",
            architecture=self._options.get("chip", "a"),
            sdk_version=self._options.get("sdk", "1.0"),
        )

    def compile(self, fused: Sequence[Any]) -> Any:
        self._misbehave()
        compiled = super().compile(fused)
        lies = self._options.get("do") == "lie"
        return [Lying(one.program) for one in compiled] if lies else compiled  # type: ignore[attr-defined] # the example's own

    def import_model(self, payload: Any, io: Any) -> Any:
        self._misbehave()
        loaded = super().import_model(payload, io)
        return Lying(loaded.program) if self._options.get("do") == "lie" else loaded  # type: ignore[attr-defined] # the example's own

    def check_compatibility(self, recorded: HardwareIdentity) -> Any:
        return compare_identities(recorded, self.identity, tolerated=("sdk_version",))

    def _misbehave(self) -> None:
        do, _, marker = self._options.get("do", "").partition(":")
        if do == "hang-once" and not Path(marker).exists():
            Path(marker).touch()
            do = "hang"
        if do == "hang":
            time.sleep(600)
        if self._options.get("do") == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)


@dataclass(frozen=True)
class Factory:
    name: str = "OddExecutionProvider"
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(OPTIONS))

    def probe(self) -> Probe:
        identity = HardwareIdentity(device="CPU: odd")
        return Probe((DeviceInfo(name="CPU", kind="CPU", description="odd", identity=identity),))

    def create(self, options: Mapping[str, str]) -> OddExecutionProvider:
        return OddExecutionProvider(options)


FACTORY = Factory()
