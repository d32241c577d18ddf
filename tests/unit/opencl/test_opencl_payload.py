"""Payloads of the OpenCL EP that are damaged, forged, or another machine's."""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blake3 import blake3
from small_models import feed, mlp

from ctx_formats.errors import Reason
from eps.opencl import FACTORY
from eps.opencl.payload.format import ALIGNMENT, HEAD, MAGIC, VERSION
from ort_lite.ep.interface import (
    CompiledModelCompatibility,
    FusedNode,
    PartitionIo,
    SupportsPayloadIdentity,
)
from ort_lite.model import loader
from ort_lite.options import SessionOptions
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import ModelProto

    from ort_lite.model.graph import Graph

    Header = dict[str, Any]


def graph_of(proto: ModelProto) -> Graph:
    loaded = loader.load(proto.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "mlp")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(mlp())


@pytest.fixture(scope="module")
def payload(graph: Graph) -> bytes:
    return exported(graph)


def exported(graph: Graph) -> bytes:
    ep = FACTORY.create({})
    (compiled,) = ep.compile([FusedNode(name="mlp", graph=graph)])
    out = io.BytesIO()
    ep.export_model(compiled, out)  # type: ignore[attr-defined]
    compiled.release()
    return out.getvalue()


def imported(graph: Graph, data: bytes, options: dict[str, str] | None = None) -> Any:
    ep = FACTORY.create(options or {})
    declared = PartitionIo(inputs=graph.inputs, outputs=graph.outputs)
    return ep.import_model(memoryview(data), declared)  # type: ignore[attr-defined]


def refusal(graph: Graph, data: bytes, options: dict[str, str] | None = None) -> InvalidGraph:
    with pytest.raises(InvalidGraph) as found:
        imported(graph, data, options)
    return found.value


def header_of(data: bytes) -> Header:
    _, _, size, _, _ = HEAD.unpack_from(data)
    header: Header = json.loads(data[HEAD.size : HEAD.size + size])
    return header


def forged(data: bytes, header: Header, extra: bytes = b"") -> bytes:
    """`data` with another header, digested as a forger would."""
    _, _, size, _, _ = HEAD.unpack_from(data)
    body = data[-(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT :] + extra
    raw = json.dumps(header).encode()
    base = -(-(HEAD.size + len(raw)) // ALIGNMENT) * ALIGNMENT
    head = HEAD.pack(MAGIC, VERSION, len(raw), base + len(body), blake3(raw).digest())
    return head + raw + bytes(base - HEAD.size - len(raw)) + body


def with_section(data: bytes, name: str, content: bytes) -> bytes:
    """`data` with one section replaced, its digest right."""
    header = header_of(data)
    _, _, size, whole, _ = HEAD.unpack_from(data)
    offset = whole - -(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT
    row = {"offset": offset, "size": len(content), "blake3": blake3(content).hexdigest()}
    header["variants"][0][name] = row
    return forged(data, header, content + bytes(-len(content) % ALIGNMENT))


def test_what_is_forged_without_a_change_is_taken(graph: Graph, payload: bytes) -> None:
    """So the refusals below are about the changes."""
    values = feed(mlp())
    restored = imported(graph, forged(payload, header_of(payload)))
    (found,) = restored.run([values["x"]])
    assert found.shape == (2, 3)
    restored.release()


def test_a_bit_flipped_in_anything_the_driver_parses_is_found(graph: Graph, payload: bytes) -> None:
    header = header_of(payload)
    _, _, size, _, _ = HEAD.unpack_from(payload)
    base = -(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT
    places = [0, 9, 13, 17, 30, HEAD.size, HEAD.size + size - 1]
    for name in ("binary", "source"):
        section = header["variants"][0][name]
        places += [base + section["offset"], base + section["offset"] + section["size"] // 2]
    for place in places:
        damaged = bytearray(payload)
        damaged[place] ^= 4
        assert refusal(graph, bytes(damaged)).reason in (Reason.FORMAT, Reason.INTEGRITY), place


def table(header: Header) -> Header:
    found: Header = header["variants"][0]["table"]
    return found


FORGERIES: dict[str, Callable[[Header], object]] = {
    "no variants": lambda h: h.update(variants=[]),
    "two variants": lambda h: h.update(variants=h["variants"] * 2),
    "variants of no kind": lambda h: h.update(variants=7),
    "a variant that is not an object": lambda h: h.update(variants=[[]]),
    "no identity": lambda h: h.pop("identity"),
    "an identity of numbers": lambda h: h.update(identity={"device": 5}),
    "no arena": lambda h: table(h).update(arena=0),
    "an arena of text": lambda h: table(h).update(arena="9"),
    "an entry of text": lambda h: table(h).update(entry="yes"),
    "no word of an entry": lambda h: table(h).pop("entry"),
    "an endless arena": lambda h: table(h).update(arena=1 << 60),
    "weights of no kind": lambda h: h.update(weights="all"),
    "a weight of no place": lambda h: h["weights"][0].__setitem__(0, 2),
    "a weight in a file that is not there": lambda h: h["weights"][0].__setitem__(0, 1),
    "a weight outside": lambda h: h["weights"][0].__setitem__(1, 1 << 40),
    "a weight too long": lambda h: h["weights"][0].__setitem__(2, 1 << 40),
    "a weight without a digest": lambda h: h["weights"][0].__setitem__(3, None),
    "one digest for two weights": lambda h: h["weights"].append(h["weights"][0]),
    "weights of a variant that are not there": lambda h: h["variants"][0]["weights"].append(99),
    "a weight of a call that is not there": lambda h: table(h)["calls"][0][3].__setitem__(0, 99),
    "calls of no kind": lambda h: table(h).update(calls={}),
    "a short call": lambda h: table(h)["calls"][0].pop(),
    "a kernel of any name": lambda h: table(h)["calls"][0].__setitem__(0, "main"),
    "no work-items": lambda h: table(h)["calls"][0].__setitem__(1, 0),
    "work-items of no kind": lambda h: table(h)["calls"][0].__setitem__(1, "many"),
    "groups that do not come out even": lambda h: table(h)["calls"][0].__setitem__(2, 1 << 15),
    "a group of nothing": lambda h: table(h)["calls"][0].__setitem__(2, 0),
    "an endless group": lambda h: table(h)["calls"][0].__setitem__(2, 1 << 30),
    "a flag of no kind": lambda h: table(h)["calls"][0].__setitem__(4, 1),
    "a place before the arena": lambda h: table(h)["calls"][0][3][0].__setitem__(0, -128),
    "a place after the arena": lambda h: table(h)["calls"][0][3][0].__setitem__(0, 1 << 40),
    "a place between": lambda h: table(h)["calls"][0][3][0].__setitem__(0, 1),
    "a place too long": lambda h: table(h)["calls"][0][3][0].__setitem__(1, 1 << 40),
    "an empty place": lambda h: table(h)["calls"][0][3][0].__setitem__(1, 0),
    "an input of another type": lambda h: table(h)["inputs"][0].__setitem__(1, "object"),
    "an input of a huge shape": lambda h: table(h)["inputs"][0].__setitem__(2, [1 << 40, 1 << 40]),
    "an input of a huge rank": lambda h: table(h)["inputs"][0].__setitem__(2, [1] * 99),
    "an output outside": lambda h: table(h)["outputs"][0].__setitem__(3, 1 << 40),
    "uses of no kind": lambda h: table(h).update(uses=7),
    "uses of fewer inputs": lambda h: table(h)["uses"][0].pop(),
    "a use of a call that is not there": lambda h: table(h)["uses"][1].__setitem__(0, [[99, 0]]),
    "a use of an argument that is not there": lambda h: table(h)["uses"][1].__setitem__(
        0, [[0, 99]]
    ),
    "a use that is a weight": lambda h: table(h)["uses"][1].__setitem__(0, [[0, 0]]),
    "a use of two ports": lambda h: table(h)["uses"][1].__setitem__(0, table(h)["uses"][0][0]),
    "an output in the place of no input": lambda h: table(h)["uses"][2].append([9, 0]),
    "a section outside": lambda h: h["variants"][0]["binary"].update(offset=1 << 40),
    "a section too long": lambda h: h["pool"].update(size=1 << 40),
    "a section between": lambda h: h["pool"].update(offset=1),
    "a model of no kind": lambda h: h.update(model=[1]),
    "a binary without a digest": lambda h: h["variants"][0]["binary"].update(blake3=""),
    "a source of no kind": lambda h: h["variants"][0].update(source=None),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_header_is_refused(graph: Graph, payload: bytes, name: str) -> None:
    """Digests are right, numbers are not: no driver is asked."""
    header = header_of(payload)
    FORGERIES[name](header)
    assert refusal(graph, forged(payload, header)).reason in (Reason.FORMAT, Reason.INTEGRITY)


@pytest.mark.parametrize("told", [None, "yes", 1])
def test_a_model_must_say_whether_it_is_whole(told: object) -> None:
    graph = graph_of(mlp("rows"))
    data = exported(graph)
    header = header_of(data)
    assert header["model"]["whole"] is True
    header["model"]["whole"] = told
    error = refusal(graph, forged(data, header))
    assert error.reason == Reason.FORMAT
    assert "model.whole" in error.message


def test_a_source_that_swells_is_refused(graph: Graph, payload: bytes) -> None:
    bomb = zlib.compress(bytes(1 << 28), 9)
    assert refusal(graph, with_section(payload, "source", bomb)).reason == Reason.FORMAT


def test_a_binary_that_the_driver_refuses_is_said_so(graph: Graph, payload: bytes) -> None:
    error = refusal(graph, with_section(payload, "binary", b"no program" * 100))
    assert error.reason == Reason.VENDOR_REJECTED


def of_another_driver(payload: bytes) -> bytes:
    """A binary that no driver could load, recorded as another driver's."""
    data = with_section(payload, "binary", b"another driver's binary")
    header = header_of(data)
    header["identity"]["driver_version"] = "0.0"
    return forged(data, header)


def test_a_binary_of_another_driver_is_not_given_to_this_one(graph: Graph, payload: bytes) -> None:
    error = refusal(graph, of_another_driver(payload))
    assert error.reason == Reason.DRIVER_VERSION
    assert "0.0" in error.message
    assert "rebuild" in error.message


def test_its_source_is_built_where_the_user_says_so(graph: Graph, payload: bytes) -> None:
    x = feed(mlp())["x"]
    first = imported(graph, payload)
    again = imported(graph, of_another_driver(payload), {"rebuild": "true"})
    for mine, right in zip(again.run([x]), first.run([x]), strict=True):
        np.testing.assert_array_equal(mine, right)
    first.release()
    again.release()


def test_a_payload_of_another_device_is_refused_with_rebuild_too(
    graph: Graph, payload: bytes
) -> None:
    header = header_of(payload)
    header["identity"]["architecture"] = "another"
    error = refusal(graph, forged(payload, header), {"rebuild": "true"})
    assert error.reason == Reason.HARDWARE_ARCHITECTURE


def test_the_verdict_on_another_driver_is_what_loading_does(payload: bytes) -> None:
    """Compiling again is better; without `rebuild` a session refuses it and says so."""
    of_another = replace(FACTORY.create({}).identity, driver_version="0.0")
    plain, rebuilding = FACTORY.create({}), FACTORY.create({"rebuild": "true"})
    better = CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION
    found = plain.check_compatibility(of_another)  # type: ignore[attr-defined]
    assert (found.verdict, found.reason) == (better, Reason.DRIVER_VERSION)
    assert "rebuild=true" in found.hint
    found = rebuilding.check_compatibility(of_another)  # type: ignore[attr-defined]
    assert (found.verdict, found.reason, found.hint) == (better, None, "")
    elsewhere = replace(of_another, device="GPU: another")
    for ep in (plain, rebuilding):
        found = ep.check_compatibility(elsewhere)  # type: ignore[attr-defined]
        assert found.verdict == CompiledModelCompatibility.EP_UNSUPPORTED


def test_a_payload_and_a_models_metadata_say_what_they_were_made_for(payload: bytes) -> None:
    ep = FACTORY.create({})
    assert isinstance(ep, SupportsPayloadIdentity)
    assert ep.identity_of_payload(memoryview(payload)) == ep.identity
    info = ep.compatibility_info()  # type: ignore[attr-defined]
    assert ep.identity_of_info(info) == ep.identity
    for foreign in ("", "no JSON", "[1]", '{"device": 5}', "{" * 100_000):
        assert ep.identity_of_info(foreign) is None
    damaged = bytearray(payload)
    damaged[HEAD.size] ^= 1
    with pytest.raises(InvalidGraph):
        ep.identity_of_payload(memoryview(damaged))
