"""Promises of an EP that keeps contexts: the round trip, and whose payloads it takes."""

from __future__ import annotations

import gc
import io
import mmap
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ctx_formats.errors import Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.onnx_model import TensorType, ValueInfo
from ort_lite.ep.interface import (
    CompiledModelCompatibility,
    CompiledPartition,
    ExecutionProvider,
    PartitionIo,
    SupportsEpContext,
)
from ort_lite.status import InvalidGraph
from ort_lite.testing.subject import EpUnderTest, arguments, compile_one

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.model.graph import Graph
    from ort_lite.testing.oracle_cases import OracleCase

FOREIGN = "0.0.foreign"
CHECKED_FIELDS = {
    "sdk_version": Reason.SDK_VERSION,
    "driver_version": Reason.DRIVER_VERSION,
    "architecture": Reason.HARDWARE_ARCHITECTURE,
}
"""Fields of an identity, and why a payload with another value in one is refused."""


def map_file(path: Path) -> memoryview:
    """A copy-on-write map of a file, as the core hands payloads to an EP."""
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))


class ContextPromises(EpUnderTest):
    """Promises that writing and reloading context models relies on."""

    def test_a_round_trip_gives_the_same_numbers_bit_for_bit(
        self, ep: ExecutionProvider, context_ep: SupportsEpContext, taken: OracleCase
    ) -> None:
        """An exported and imported partition returns the same bits."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        restored = context_ep.import_model(
            memoryview(export_model(context_ep, compiled)), io_of(graph)
        )
        assert_same(graph, taken, compiled, restored)
        compiled.release()
        restored.release()

    def test_a_partition_is_exported_twice(
        self, ep: ExecutionProvider, context_ep: SupportsEpContext, taken: OracleCase
    ) -> None:
        """After a run too, and both exports are good."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        first = export_model(context_ep, compiled)
        compiled.run(arguments(graph, taken.feeds[0]))
        for payload in (first, export_model(context_ep, compiled)):
            restored = context_ep.import_model(memoryview(payload), io_of(graph))
            assert_same(graph, taken, compiled, restored)
            restored.release()
        compiled.release()

    def test_another_instance_imports_what_one_exported(
        self, context_ep: SupportsEpContext, taken: OracleCase
    ) -> None:
        """As a later process does; the exporter is gone by then."""
        graph, feed = taken.graph(), taken.feeds[0]
        first = self.open()
        assert isinstance(first, SupportsEpContext)
        compiled = compile_one(first, graph)
        payload = export_model(first, compiled)
        compiled.release()
        first.release()
        restored = context_ep.import_model(memoryview(payload), io_of(graph))
        self.assert_close(
            restored.run(arguments(graph, feed)), taken.expected_partition_outputs(graph, feed)
        )
        restored.release()

    def test_an_imported_partition_keeps_its_bytes_alive(
        self,
        ep: ExecutionProvider,
        context_ep: SupportsEpContext,
        taken: OracleCase,
        tmp_path: Path,
    ) -> None:
        """The core hands out a copy-on-write map and lets go of its own reference."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        path = tmp_path / "payload"
        path.write_bytes(export_model(context_ep, compiled))
        restored = context_ep.import_model(map_file(path), io_of(graph))
        if os.name == "posix":  # Windows removes no file that is mapped
            path.unlink()
        gc.collect()
        assert_same(graph, taken, compiled, restored)
        restored.release()
        compiled.release()

    def test_importing_does_not_change_the_file(
        self,
        ep: ExecutionProvider,
        context_ep: SupportsEpContext,
        taken: OracleCase,
        tmp_path: Path,
    ) -> None:
        """Other processes map it too."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        path = tmp_path / "payload"
        path.write_bytes(export_model(context_ep, compiled))
        before = path.read_bytes()
        restored = context_ep.import_model(map_file(path), io_of(graph))
        restored.run(arguments(graph, taken.feeds[0]))
        restored.release()
        compiled.release()
        assert path.read_bytes() == before

    def test_new_names_around_a_payload_are_taken_by_position(
        self, ep: ExecutionProvider, context_ep: SupportsEpContext, taken: OracleCase
    ) -> None:
        """Models that are glued together are renamed first; their payloads are not."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        renamed = PartitionIo(
            inputs=tuple(replace(info, name=f"left_{info.name}") for info in graph.inputs),
            outputs=tuple(replace(info, name=f"left_{info.name}") for info in graph.outputs),
        )
        restored = context_ep.import_model(memoryview(export_model(context_ep, compiled)), renamed)
        assert_same(graph, taken, compiled, restored)
        restored.release()
        compiled.release()

    @pytest.mark.parametrize("change", ["dimension", "type", "one_less"])
    def test_a_payload_for_another_signature_is_refused(
        self, ep: ExecutionProvider, context_ep: SupportsEpContext, taken: OracleCase, change: str
    ) -> None:
        """The node declares inputs that the payload was not compiled for."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        payload = memoryview(export_model(context_ep, compiled))
        compiled.release()
        with pytest.raises(InvalidGraph) as refusal:
            context_ep.import_model(payload, other_io(graph, change))
        assert refusal.value.reason in (Reason.SHAPE, Reason.VENDOR_REJECTED)

    @pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"payload" * 512], ids=["", "0", "text"])
    def test_bytes_that_are_no_payload_are_refused(
        self, context_ep: SupportsEpContext, taken: OracleCase, data: bytes
    ) -> None:
        """A producer without digests may have written anything."""
        with pytest.raises(InvalidGraph) as refusal:
            context_ep.import_model(memoryview(data), io_of(taken.graph()))
        assert refusal.value.reason in (Reason.FORMAT, Reason.VENDOR_REJECTED)

    @pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9])
    def test_a_cut_payload_is_refused(
        self, ep: ExecutionProvider, context_ep: SupportsEpContext, taken: OracleCase, part: float
    ) -> None:
        """At EP level, where no digest has looked at it."""
        graph = taken.graph()
        compiled = compile_one(ep, graph)
        payload = export_model(context_ep, compiled)
        compiled.release()
        with pytest.raises(InvalidGraph) as refusal:
            context_ep.import_model(memoryview(payload)[: int(len(payload) * part)], io_of(graph))
        assert refusal.value.reason in (Reason.FORMAT, Reason.VENDOR_REJECTED)

    def test_its_own_identity_is_compatible(
        self, ep: ExecutionProvider, context_ep: SupportsEpContext
    ) -> None:
        """And distinguishes another machine: by the SDK's version or the architecture."""
        assert ep.identity.sdk_version or ep.identity.architecture
        verdict = context_ep.check_compatibility(ep.identity)
        assert verdict.verdict == CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
        assert verdict.reason is None

    @pytest.mark.parametrize("field", CHECKED_FIELDS)
    def test_a_foreign_identity_is_refused_with_its_reason(
        self, ep: ExecutionProvider, context_ep: SupportsEpContext, field: str
    ) -> None:
        """The message has both sides."""
        present = getattr(ep.identity, field)
        if not present:
            pytest.skip(f"{ep.name} reports no {field} on this device")
        verdict = context_ep.check_compatibility(replace(ep.identity, **{field: FOREIGN}))
        assert verdict.verdict != CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
        assert verdict.reason == CHECKED_FIELDS[field]
        assert FOREIGN in verdict.message
        assert present in verdict.message

    def test_an_identity_that_says_nothing_is_not_refused(
        self, context_ep: SupportsEpContext
    ) -> None:
        """A foreign producer records less; what is not recorded is not compared."""
        verdict = context_ep.check_compatibility(HardwareIdentity())
        assert verdict.verdict != CompiledModelCompatibility.EP_UNSUPPORTED

    def test_the_compatibility_text_is_one_line(self, context_ep: SupportsEpContext) -> None:
        """It goes into the model's metadata."""
        assert "\n" not in context_ep.compatibility_info()


def export_model(ep: SupportsEpContext, compiled: CompiledPartition) -> bytes:
    """The compiled form as bytes."""
    out = io.BytesIO()
    ep.export_model(compiled, out)
    return out.getvalue()


def io_of(graph: Graph) -> PartitionIo:
    """Inputs and outputs of a partition as its EPContext node declares them."""
    return PartitionIo(inputs=graph.inputs, outputs=graph.outputs)


def other_io(graph: Graph, change: str) -> PartitionIo:
    """The same with the first input shaped or typed otherwise, or missing."""
    first = graph.inputs[0]
    assert isinstance(first.type, TensorType)
    assert first.type.shape
    other_type = TensorType(first.type.elem_type, (77, *first.type.shape[1:]))
    changed = {
        "dimension": (ValueInfo(first.name, other_type),),
        "type": (ValueInfo(first.name, replace(first.type, elem_type=7)),),
        "one_less": (),
    }[change]
    return PartitionIo(inputs=(*changed, *graph.inputs[1:]), outputs=graph.outputs)


def assert_same(
    graph: Graph, case: OracleCase, compiled: CompiledPartition, restored: CompiledPartition
) -> None:
    """Two partitions give equal bits for every feed."""
    for feed in case.feeds:
        inputs = arguments(graph, feed)
        for mine, right in zip(restored.run(inputs), compiled.run(inputs), strict=True):
            assert mine.dtype == right.dtype
            np.testing.assert_array_equal(mine, right)
