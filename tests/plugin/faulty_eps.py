"""The example EP with one fault in each copy; the conformance suite must find every one."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from example_ep import FACTORY
from example_ep.program import Program
from example_ep.provider import ExampleExecutionProvider, ExamplePartition

from ort_lite.ep import OPTIMAL, Capability, CompiledPartition, ExecutionProvider, Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Wrapped(ExamplePartition):
    """A partition whose `run` goes through `spoil`."""

    def __init__(self, program: Program, spoil: Callable[..., Any]) -> None:
        super().__init__(program)
        self._spoil = spoil

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        return self._spoil(super().run, inputs)


class SpoiltRun(ExampleExecutionProvider):
    """Compiles partitions that run through the class's `spoil`."""

    def compile(self, fused: Sequence[Any]) -> Sequence[CompiledPartition]:
        return [Wrapped(self._program(one.graph), self.spoiler()) for one in fused]

    def spoiler(self) -> Callable[..., Any]:
        return self.spoil

    def spoil(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        raise NotImplementedError


class WrongNumbers(SpoiltRun):
    def spoil(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        return [np.asarray(value * np.float32(1.001)) for value in run(inputs)]


class DoubleResults(SpoiltRun):
    def spoil(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        return [value.astype(np.float64) for value in run(inputs)]


class ReusedBuffers(SpoiltRun):
    def spoiler(self) -> Callable[..., Any]:
        kept: dict[int, Any] = {}

        def spoil(run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
            for i, value in enumerate(run(inputs)):
                kept.setdefault(i, np.empty_like(value))[...] = value
            return list(kept.values())

        return spoil


class AliasedInput(SpoiltRun):
    def spoil(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        results = run(inputs)
        same = [v for v in inputs if v.shape == results[0].shape]
        same[0][...] = results[0]
        return [same[0][...], *results[1:]]


class WritesInputs(SpoiltRun):
    def spoil(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        results = run(inputs)
        inputs[0][...] = 0
        return results


class SharedInputs(SpoiltRun):
    def spoiler(self) -> Callable[..., Any]:
        place = SimpleNamespace(inputs=None)

        def spoil(run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
            place.inputs = inputs
            time.sleep(0.002)
            return run(place.inputs)

        return spoil


class OneThread(SpoiltRun):
    def spoiler(self) -> Callable[..., Any]:
        busy = threading.Lock()

        def spoil(run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
            if not busy.acquire(blocking=False):
                raise RuntimeError("busy")
            try:
                time.sleep(0.002)
                return run(inputs)
            finally:
                busy.release()

        return spoil


class RawErrors(SpoiltRun):
    def spoil(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        np.broadcast_shapes(*(value.shape for value in inputs))
        return run(inputs)


class SilentRefusal(ExampleExecutionProvider):
    def get_capability(self, view: Any) -> Capability:
        return Capability(super().get_capability(view).supported)


class ClaimsEverything(ExampleExecutionProvider):
    def get_capability(self, view: Any) -> Capability:
        return Capability(view.candidates)


class ClaimsTakenNodes(ExampleExecutionProvider):
    def get_capability(self, view: Any) -> Capability:
        return super().get_capability(
            replace(view, candidates=frozenset(range(len(view.graph.nodes))))
        )


class Moody(ExampleExecutionProvider):
    asked = 0

    def get_capability(self, view: Any) -> Capability:
        self.asked += 1
        answer = super().get_capability(view)
        return (
            answer
            if self.asked % 2
            else Capability(frozenset(), dict.fromkeys(view.candidates, "no"))
        )


class SharedRelease(ExampleExecutionProvider):
    everybody: ClassVar[list[Any]] = []

    def compile(self, fused: Sequence[Any]) -> Sequence[CompiledPartition]:
        made = super().compile(fused)
        self.everybody.extend(made)
        return made

    def release(self) -> None:
        for partition in self.everybody:
            partition.release()


class Undead(ExampleExecutionProvider):
    def compile(self, fused: Sequence[Any]) -> Sequence[CompiledPartition]:
        made = super().compile(fused)
        for partition in made:
            partition.release = lambda: None
        return made


class LossyExport(ExampleExecutionProvider):
    def export_model(self, compiled: Any, out: Any) -> None:
        program = compiled.program
        rounded = {k: v.astype(np.float16).astype("f4") for k, v in program.constants.items()}
        out.write(replace(program, constants=rounded).to_bytes())


class OneExport(ExampleExecutionProvider):
    def export_model(self, compiled: Any, out: Any) -> None:
        super().export_model(compiled, out)
        compiled.program = replace(compiled.program, constants={}, steps=())


class AnyMachine(ExampleExecutionProvider):
    def check_compatibility(self, recorded: Any) -> Any:
        return OPTIMAL


class AnySignature(ExampleExecutionProvider):
    def import_model(self, payload: memoryview, io: Any) -> CompiledPartition:
        return ExamplePartition(Program.from_bytes(payload))


class HalfContext(ExecutionProvider):
    __init__ = ExampleExecutionProvider.__init__
    identity = ExampleExecutionProvider.identity
    get_capability = ExampleExecutionProvider.get_capability
    compile = ExampleExecutionProvider.compile
    _program = ExampleExecutionProvider._program
    export_model = ExampleExecutionProvider.export_model


FAULTS = {
    WrongNumbers: "test_a_partition_gives_the_numbers_of_the_reference[elementwise]",
    DoubleResults: "test_a_session_gives_the_numbers_of_the_reference[elementwise]",
    ReusedBuffers: "test_results_own_their_memory[elementwise]",
    AliasedInput: "test_results_own_their_memory[elementwise]",
    WritesInputs: "test_inputs_are_not_written_to[elementwise]",
    SharedInputs: "test_many_threads_run_one_partition_at_once",
    OneThread: "test_many_threads_run_one_partition_at_once",
    RawErrors: "test_a_run_that_fails_is_an_error_of_ours_and_the_next_one_works",
    SilentRefusal: "test_every_candidate_is_supported_or_refused_with_a_reason[conv]",
    ClaimsEverything: "test_an_operator_that_it_cannot_know_is_refused[Relu-com.example]",
    ClaimsTakenNodes: "test_only_candidates_are_answered[elementwise]",
    Moody: "test_the_answer_is_the_same_every_time[elementwise]",
    SharedRelease: "test_two_instances_live_side_by_side",
    Undead: "test_a_released_partition_is_refused_cleanly",
    LossyExport: "test_a_round_trip_gives_the_same_numbers_bit_for_bit",
    OneExport: "test_a_partition_is_exported_twice",
    AnyMachine: "test_a_foreign_identity_is_refused_with_its_reason[sdk_version]",
    AnySignature: "test_a_payload_for_another_signature_is_refused[dimension]",
    HalfContext: "test_an_ep_keeps_contexts_wholly_or_not_at_all",
}
"""The fault to the test that is there to find it."""


class FaultyFactory:
    """Makes one of the faulty EPs."""

    def __init__(self, kind: type[Any]) -> None:
        self.name = kind.name = f"{kind.__name__}ExecutionProvider"
        self.options = FACTORY.options
        self._kind = kind

    def probe(self) -> Probe:
        return FACTORY.probe()

    def create(self, options: Any) -> ExecutionProvider:
        return self._kind(options.get("sum_in", "float32"))


for fault in FAULTS:
    setattr(sys.modules[__name__], f"{fault.__name__.upper()}_FACTORY", FaultyFactory(fault))
