"""The example EP with a compile that waits until a test lets it go on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from example_ep import FACTORY as EXAMPLE_FACTORY
from example_ep.provider import ExampleExecutionProvider

from ort_lite.ep import Capability, CompiledPartition, Probe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GATED = "GatedExecutionProvider"
OWN_DOMAIN = "gated.test"
PATIENCE = 20
"""Seconds after which a test that hangs fails; none that passes waits for them."""


@dataclass
class Gate:
    """Between a test and the compiles that it watches.

    Attributes:
        entered: Set when a compile has begun.
        opened: What a compile waits for.
        error: Raised by a compile, where it is set.
        count: Of compiles that came through.
        released: Set when an EP was released.
    """

    entered: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    count: int = 0

    def pass_through(self) -> None:
        self.entered.set()
        if not self.opened.wait(PATIENCE):
            raise AssertionError("nobody opened the gate")
        if self.error is not None:
            raise self.error
        self.count += 1


class GateUntilExit(Gate):
    """Lets a compile go on when the interpreter waits for nothing but it."""

    def pass_through(self) -> None:
        self.entered.set()
        threading.main_thread().join()
        self.count += 1


class GatedExecutionProvider(ExampleExecutionProvider):
    """Runs operators of a domain of its own besides, which no other EP has."""

    name: ClassVar[str] = GATED

    def __init__(self, gate: Gate) -> None:
        super().__init__("float32")
        self._gate = gate

    def get_capability(self, view: Any) -> Capability:
        found = super().get_capability(view)
        own = {i for i in view.candidates if view.graph.nodes[i].domain == OWN_DOMAIN}
        refused = {i: why for i, why in found.refused.items() if i not in own}
        return Capability(found.supported | own, refused)

    def compile(self, fused: Sequence[Any]) -> Sequence[CompiledPartition]:
        self._gate.pass_through()
        return super().compile(fused)

    def release(self) -> None:
        self._gate.released.set()


class _Factory:
    name = GATED
    options: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.gate = Gate()

    def probe(self) -> Probe:
        return EXAMPLE_FACTORY.probe()

    def create(self, options: Mapping[str, str]) -> GatedExecutionProvider:
        return GatedExecutionProvider(self.gate)


FACTORY = _Factory()
