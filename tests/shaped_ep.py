"""An execution provider of the tests that compiles for each set of shapes, when a gate is open."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ort_lite.ep.factory import Probe

sys.path.append(str(Path(__file__).parents[1] / "examples" / "example_ep"))
from example_ep.provider import ExampleExecutionProvider, ExamplePartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from example_ep.program import Program

    from ort_lite.ep.interface import CompiledPartition, FusedNode, Shapes, Value

NAME = "ShapedExecutionProvider"
PATIENCE = 20
"""Seconds after which a test that hangs fails; none that passes waits for them."""


@dataclass
class Gate:
    """Between a test and the compiles that it watches.

    Attributes:
        entered: Set when a compile for shapes has begun.
        opened: What it waits for.
        error: Raised by it, where it is set.
        tried: Shapes that it was begun for, in order.
        ran: Shapes that runs came with.
        released: Set when a partition was released.
    """

    entered: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    tried: list[Shapes] = field(default_factory=list)
    ran: list[Shapes] = field(default_factory=list)


class ShapedPartition(ExamplePartition):
    """The example EP's, which has to be made ready for shapes first."""

    def __init__(self, program: Program, gate: Gate) -> None:
        super().__init__(program)
        self._gate = gate
        self._ready: set[Shapes] = set()

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        shapes = tuple(tuple(value.shape) for value in inputs)
        if not self.is_ready(shapes):
            self.get_ready(shapes)
        self._gate.ran.append(shapes)
        return super().run(inputs)

    def is_ready(self, shapes: Shapes) -> bool:
        return shapes in self._ready

    def get_ready(self, shapes: Shapes) -> None:
        self._gate.tried.append(shapes)
        self._gate.entered.set()
        if not self._gate.opened.wait(PATIENCE):
            raise AssertionError("nobody opened the gate")
        if self._gate.error is not None:
            raise self._gate.error
        self._ready.add(shapes)

    def release(self) -> None:
        super().release()
        self._gate.released.set()


class ShapedExecutionProvider(ExampleExecutionProvider):
    """The example EP under another name."""

    name = NAME

    def __init__(self, gate: Gate) -> None:
        super().__init__("float32")
        self._gate = gate

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        return [ShapedPartition(self._program(one.graph), self._gate) for one in fused]


@dataclass
class _Factory:
    name: str = NAME
    options: Mapping[str, str] = field(default_factory=dict)
    gate: Gate = field(default_factory=Gate)

    def probe(self) -> Probe:
        return Probe(reason="for tests alone")

    def create(self, options: Mapping[str, str]) -> ShapedExecutionProvider:
        return ShapedExecutionProvider(self.gate)


FACTORY = _Factory()
