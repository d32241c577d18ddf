"""The example EP, with a loader that does what its option says: as vendors' loaders do."""

from __future__ import annotations

import os
import signal
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from example_ep import FACTORY as EXAMPLE
from example_ep.provider import ExampleExecutionProvider

if TYPE_CHECKING:
    from ort_lite.ep import CompiledPartition, Probe


class CrashingExecutionProvider(ExampleExecutionProvider):
    name: ClassVar[str] = "CrashingExecutionProvider"

    def __init__(self, on_compile: str, on_import: str, on_run: str) -> None:
        super().__init__("float32")
        self._on_compile = on_compile
        self._on_import = on_import
        self._on_run = on_run

    def compile(self, fused: Any) -> Any:
        meet(self._on_compile)
        return super().compile(fused)

    def import_model(self, payload: memoryview, io: Any) -> CompiledPartition:
        meet(self._on_import)
        partition = super().import_model(payload, io)
        run = partition.run

        def unlucky(inputs: Any) -> Any:
            meet(self._on_run)
            return run(inputs)

        partition.run = unlucky
        return partition


def meet(fate: str) -> None:
    """End as a vendor's code does that reads past its end."""
    if fate == "abort":
        os.abort()
    if fate == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does
    if fate == "exit":
        os.write(2, b"vendor: fatal \x1b[31m\n")
        os._exit(3)
    while fate == "hang":
        time.sleep(3600)


class _Factory:
    name = CrashingExecutionProvider.name
    fates = ("on_compile", "on_import", "on_run")
    options = MappingProxyType({**dict.fromkeys(fates, "its fate"), "threads": "of one run"})
    threads_option = "threads"

    def probe(self) -> Probe:
        return EXAMPLE.probe()

    def create(self, options: Any) -> CrashingExecutionProvider:
        return CrashingExecutionProvider(*(options.get(key, "") for key in self.fates))


FACTORY = _Factory()
