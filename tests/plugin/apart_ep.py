"""The example EP, which lets another thread import its payloads and notes which one did."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from example_ep import FACTORY as EXAMPLE
from example_ep.provider import ExampleExecutionProvider, ExamplePartition

from ort_lite.execution_provider import Compatibility, CompiledModelCompatibility
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from ctx_formats.identity import HardwareIdentity
    from ort_lite.execution_provider import CompiledPartition, Probe


class ApartExecutionProvider(ExampleExecutionProvider):
    """`fate` is what becomes of an import: "", "refused", "broken" or "suboptimal"."""

    name: ClassVar[str] = "ApartExecutionProvider"
    imports_without_lock = True
    imported: ClassVar[list[tuple[str, ExamplePartition]]] = []
    """The name of the thread, and what it imported."""

    def __init__(self, fate: str) -> None:
        super().__init__("float32")
        self._fate = fate

    def import_model(self, payload: memoryview, io: Any) -> CompiledPartition:
        if self._fate == "refused":
            raise EPFail("the vendor does not like it")
        if self._fate == "broken":
            raise ZeroDivisionError("a bug of the EP's")
        partition = super().import_model(payload, io)
        assert isinstance(partition, ExamplePartition)
        self.imported.append((threading.current_thread().name, partition))
        return partition

    def check_compatibility(self, recorded: HardwareIdentity) -> Compatibility:
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
