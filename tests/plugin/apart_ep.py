"""The example EP, which lets modules be imported beside its payloads and notes the threads."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from example_ep import FACTORY as EXAMPLE
from example_ep.provider import ExampleExecutionProvider, ExamplePartition

from ort_lite.ep import Compatibility, CompiledModelCompatibility, EPFail, StartupHints

if TYPE_CHECKING:
    from ctx_formats.identity import HardwareIdentity
    from ort_lite.ep import CompiledPartition, Probe


class ApartExecutionProvider(ExampleExecutionProvider):
    """`fate` is what becomes of an import: "", "refused", "broken" or "suboptimal"."""

    name: ClassVar[str] = "ApartExecutionProvider"
    startup_hints = StartupHints(("apart_ep_next",))
    imported: ClassVar[list[tuple[set[str], ExamplePartition]]] = []
    """Names of the threads when a payload was found to fit, and what was imported of it."""

    def __init__(self, fate: str) -> None:
        super().__init__("float32")
        self._fate = fate
        self._threads: set[str] = set()

    def import_model(self, payload: memoryview, io: Any) -> CompiledPartition:
        if self._fate == "refused":
            raise EPFail("the vendor does not like it")
        if self._fate == "broken":
            raise ZeroDivisionError("a bug of the EP's")
        partition = super().import_model(payload, io)
        assert isinstance(partition, ExamplePartition)
        self.imported.append((self._threads, partition))
        return partition

    def check_compatibility(self, recorded: HardwareIdentity) -> Compatibility:
        self._threads = {thread.name for thread in threading.enumerate()}
        if self._fate != "suboptimal":
            return super().check_compatibility(recorded)
        verdict = CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION
        return Compatibility(verdict, message="it would be faster")


class _Factory:
    name = ApartExecutionProvider.name
    options = MappingProxyType({"fate": "what becomes of an import"})

    def probe(self) -> Probe:
        return EXAMPLE.probe()

    def create(self, options: Any) -> ApartExecutionProvider:
        return ApartExecutionProvider(options.get("fate", ""))


FACTORY = _Factory()
