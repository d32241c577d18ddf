"""Execution providers of the tests that are not here, have no device, or fail when they run."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ort_lite.ep import CompiledPartition, EPFail, NotInstalled, Probe

sys.path.append(str(Path(__file__).parents[1] / "examples" / "example_ep"))
from example_ep.provider import ExampleExecutionProvider, ExamplePartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.ep import ExecutionProvider

ABSENT_NAME = "AbsentExecutionProvider"
DEAD_NAME = "DeadExecutionProvider"
LOST_NAME = "LostExecutionProvider"
NO_SDK = "the absent package is not installed"
NO_DEVICE = "no device 'XPU' on this machine"
LOST = "the device is gone"


class LostPartition(ExamplePartition):
    """Fails whenever it runs."""

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        raise EPFail(LOST)


class LostExecutionProvider(ExampleExecutionProvider):
    """Compiles what the example EP does."""

    name: ClassVar[str] = LOST_NAME

    def compile(self, fused: Sequence[Any]) -> Sequence[CompiledPartition]:
        return [LostPartition(self._program(one.graph)) for one in fused]

    def import_model(self, payload: memoryview, io: Any) -> CompiledPartition:
        super().import_model(payload, io).release()
        return _Lost()


class _Lost(CompiledPartition):
    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        raise EPFail(LOST)

    def release(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class _Factory:
    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> str:
        return NO_SDK if self.name == ABSENT_NAME else ""

    def probe(self) -> Probe:
        return Probe(reason=self.missing())

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        if self.name == ABSENT_NAME:
            raise NotInstalled(NO_SDK)
        if self.name == DEAD_NAME:
            raise EPFail(NO_DEVICE)
        return LostExecutionProvider("float32")


ABSENT = _Factory(ABSENT_NAME)
DEAD = _Factory(DEAD_NAME)
LOST_FACTORY = _Factory(LOST_NAME)
