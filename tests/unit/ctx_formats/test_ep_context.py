"""EPContext nodes and their notes as values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError, Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.notes import ContextNotes, read_notes
from ctx_formats.onnx_model import (
    Attribute,
    AttributeType,
    GraphDef,
    Model,
    TensorType,
    ValueInfo,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NODE = EpContextNode(
    name="n",
    inputs=("x",),
    outputs=("y", "z"),
    source="SomeEP",
    embed_mode=False,
    ep_cache_context=b"p.bin",
    ep_sdk_version="1.2.3",
    hardware_architecture="arch",
    onnx_model_filename="m.onnx",
    partition_name="SomeEP_1_0",
    max_size=5,
)
NOTES = ContextNotes(
    producer="tests 1",
    identity=HardwareIdentity(architecture="arch", sdk_version="1.2.3", device="CPU: x"),
    payload_blake3="ab" * 32,
    payload_size=77,
    source_blake3="cd" * 32,
    options={"device_type": "CPU"},
)


def test_a_node_survives() -> None:
    assert EpContextNode.from_node(NODE.to_node()) == NODE


def test_schema_defaults_stand_for_missing_attributes() -> None:
    node = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft")
    node.attribute.append(helper.make_attribute("ep_cache_context", "data"))
    proto = helper.make_model(helper.make_graph([node], "g", [], []))
    (read,) = read_model(memoryview(proto.SerializeToString())).graph.nodes
    found = EpContextNode.from_node(read)
    assert found.main_context
    assert found.embed_mode
    assert found.max_size == 0
    assert found.source == ""


def test_a_secondary_node_needs_no_context() -> None:
    secondary = replace(NODE, main_context=False, ep_cache_context=b"")
    assert "ep_cache_context" not in secondary.to_node().attributes
    assert EpContextNode.from_node(secondary.to_node()) == secondary


def test_unknown_attributes_are_kept() -> None:
    node = replace(NODE, extra={"DeviceClass": Attribute("DeviceClass", AttributeType.INT, 3)})
    assert EpContextNode.from_node(node.to_node()) == node


def test_a_large_embedded_context_stays_a_view() -> None:
    payload = bytes(range(256)) * 1000
    node = helper.make_node("EPContext", [], ["y"], domain="com.microsoft")
    node.attribute.append(helper.make_attribute("ep_cache_context", payload))
    data = helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString()
    (read,) = read_model(memoryview(data)).graph.nodes
    context = EpContextNode.from_node(read).ep_cache_context
    assert isinstance(context, memoryview)
    assert context.obj is data
    assert context == payload


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"outputs": ()}, "outputs: none"),
        ({"max_size": -1}, "max_size: -1"),
        ({"max_size": 1 << 63}, "max_size: 9223372036854775808"),
        (
            {"extra": {"source": Attribute("source", AttributeType.STRING, b"x")}},
            "extra: source, expected attributes not in the schema",
        ),
        ({"ep_cache_context": b""}, r"a context or a path \(main_context is 1\)"),
    ],
)
def test_a_node_that_cannot_be_is_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(FormatError, match=text):
        replace(NODE, **changes)


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (Attribute("embed_mode", AttributeType.INT, 7), "embed_mode: 7, expected 0 or 1"),
        (Attribute("main_context", AttributeType.STRING, b"1"), "STRING, expected INT"),
        (Attribute("source", AttributeType.INT, 1), "INT, expected STRING"),
        (Attribute("source", AttributeType.STRING, b"\xff"), "not UTF-8, expected text"),
        (Attribute("ep_cache_context", AttributeType.FLOAT, 1.0), "FLOAT, expected STRING"),
    ],
)
def test_an_attribute_that_cannot_be_is_refused(attribute: Attribute, text: str) -> None:
    node = NODE.to_node()
    wrong = replace(node, attributes={**node.attributes, attribute.name: attribute})
    with pytest.raises(FormatError, match=text):
        EpContextNode.from_node(wrong)


def test_a_path_must_be_text() -> None:
    with pytest.raises(FormatError, match="not UTF-8, expected a path"):
        _ = replace(NODE, ep_cache_context=b"\xff\xfe").payload_path


@pytest.mark.parametrize("embed", [True, False])
def test_onnx_accepts_what_we_write_and_reads_the_ten_attributes(*, embed: bool) -> None:
    payload = b"payload" * 1000 if embed else b"p.bin"
    node = replace(NODE, embed_mode=embed, ep_cache_context=payload, notes="a note").to_node()
    types = {name: TensorType(1, (1, 2)) for name in ("x", "y", "z")}
    graph = GraphDef(
        name="g",
        nodes=(node,),
        inputs=(ValueInfo("x", types["x"]),),
        outputs=(ValueInfo("y", types["y"]), ValueInfo("z", types["z"])),
    )
    model = Model(graph=graph, ir_version=8, opset_imports={"": 17, "com.microsoft": 1})
    data = model_bytes(model)
    onnx.checker.check_model(data, full_check=True)
    (proto,) = onnx.load_model_from_string(data).graph.node
    assert {a.name: helper.get_attribute_value(a) for a in proto.attribute} == {
        "embed_mode": int(embed),
        "ep_cache_context": payload,
        "ep_sdk_version": b"1.2.3",
        "hardware_architecture": b"arch",
        "main_context": 1,
        "max_size": 5,
        "notes": b"a note",
        "onnx_model_filename": b"m.onnx",
        "partition_name": b"SomeEP_1_0",
        "source": b"SomeEP",
    }


@pytest.mark.parametrize(
    ("op_type", "domain"), [("Relu", ""), ("EPContext", ""), ("EPContext", "com.example")]
)
def test_another_operator_is_no_context(op_type: str, domain: str) -> None:
    node = replace(NODE.to_node(), op_type=op_type, domain=domain)
    with pytest.raises(
        FormatError, match=f"{domain}::{op_type}, expected com.microsoft::EPContext"
    ):
        EpContextNode.from_node(node)


def test_notes_survive() -> None:
    assert read_notes(NOTES.seal_into(NODE)) == NOTES


def test_notes_are_the_same_text_every_time() -> None:
    assert NOTES.seal_into(NODE) == NOTES.seal_into(NODE)


@pytest.mark.parametrize("notes", ["", "anything", '{"other": 1}', "{"])
def test_foreign_notes_are_left_alone(notes: str) -> None:
    assert read_notes(replace(NODE, notes=notes)) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("source", "Other"),
        ("ep_sdk_version", "9"),
        ("hardware_architecture", ""),
        ("onnx_model_filename", "x"),
        ("partition_name", "x"),
        ("max_size", 6),
        ("inputs", ("x", "y")),
        ("outputs", ("y",)),
    ],
)
def test_a_changed_attribute_breaks_the_seal(field: str, value: object) -> None:
    changed = replace(NOTES.seal_into(NODE), **{field: value})
    with pytest.raises(FormatError, match="differ from the ones that were written") as found:
        read_notes(changed)
    assert found.value.reason is Reason.INTEGRITY


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "glued_n"),
        ("inputs", ("glued_x",)),
        ("embed_mode", True),
        ("ep_cache_context", b"moved/p.bin"),
        ("main_context", False),
    ],
)
def test_gluing_and_moving_keep_the_seal(field: str, value: object) -> None:
    assert read_notes(replace(NOTES.seal_into(NODE), **{field: value})) == NOTES


def test_no_damaged_byte_of_notes_is_accepted_or_taken_for_foreign() -> None:
    sealed = NOTES.seal_into(NODE)
    for at in range(len(sealed.notes)):
        for bit in range(7):
            text = bytearray(sealed.notes.encode())
            text[at] ^= 1 << bit
            with pytest.raises(FormatError):
                read_notes(replace(sealed, notes=text.decode()))


@given(at=st.integers(0, 600), put=st.text(max_size=6), cut=st.integers(0, 6))
def test_overwritten_notes_give_a_format_error_or_the_notes(at: int, put: str, cut: int) -> None:
    sealed = NOTES.seal_into(NODE)
    notes = sealed.notes[:at] + put + sealed.notes[at + cut :]
    try:
        found = read_notes(replace(sealed, notes=notes))
    except FormatError:
        return
    assert found == NOTES


def resealed(change: Callable[[dict[str, Any]], object]) -> EpContextNode:
    """Notes with another content and a seal that fits it."""
    content = json.loads(NOTES.seal_into(NODE).notes)
    del content["seal"]
    change(content)
    sealed = [
        json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
        *(NODE.source, NODE.ep_sdk_version, NODE.hardware_architecture),
        *(NODE.onnx_model_filename, NODE.partition_name),
        *(str(NODE.max_size), str(len(NODE.inputs)), str(len(NODE.outputs))),
    ]
    content["seal"] = blake3("\0".join(sealed).encode()).hexdigest()[:32]
    return replace(NODE, notes=json.dumps(content))


def test_notes_may_be_spelled_otherwise_and_hold_more() -> None:
    assert read_notes(resealed(lambda content: content.update(newer={"a": [1]}))) == NOTES


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("payload", [], "notes.payload: list, expected an object"),
        ("payload", {}, r"notes.payload: \{\}, expected \{blake3, size\}"),
        ("payload", {"blake3": "x", "size": "7"}, r"notes.payload: .* expected \{blake3, size\}"),
        ("payload", {"blake3": "x", "size": True}, r"notes.payload: .* expected \{blake3, size\}"),
        ("payload", {"blake3": "x", "size": -1}, r"notes.payload: .* expected \{blake3, size\}"),
        ("payload", {"blake3": 1, "size": 1}, r"notes.payload: .* expected \{blake3, size\}"),
        ("source_model", {"blake3": None}, "notes.source_model"),
        ("identity", {"device": 1}, "notes.identity: a value that is not text"),
        ("options", {"device_type": None}, "notes.options: a value that is not text"),
        ("options", "CPU", "notes.options: str, expected an object"),
        ("ort_lite", True, "notes.ort_lite: True, expected 1"),
        ("ort_lite", 1.0, "notes.ort_lite: 1.0, expected 1"),
    ],
)
def test_a_sealed_field_of_another_type_is_named(key: str, value: object, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        read_notes(resealed(lambda content: content.update({key: value})))


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        ('{"ort_lite": 1}', "fields missing"),
        ('["ort_lite"]', "fields missing"),
        ('{"ort_lite": 1', "no JSON"),
        ('{"ort_lite": 1, "ort_lite": 1}', "no JSON: a name appears twice"),
        ('{"ort_lite": NaN}', "no JSON: NaN"),
        ('{"ort_lite": ' + "1" * 5000 + "}", "no JSON: Exceeds the limit"),
        (NOTES.seal_into(NODE).notes.replace("tests 1", "\\ud800"), "no JSON: .* surrogates"),
        ('{"ort_lite"' + "[" * 2000, "no JSON"),
        ('"ort_lite"' + " " * (1 << 20), "characters"),
        (
            '{"ort_lite": 2, "identity": {}, "options": {}, "payload": {}, "seal": "",'
            ' "source_model": {}}',
            "ort_lite: 2, expected 1",
        ),
    ],
)
def test_notes_of_ours_that_are_wrong_are_named(notes: str, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        read_notes(replace(NODE, notes=notes))


def test_identities_differ_field_by_field() -> None:
    a = HardwareIdentity(architecture="x", sdk_version="1", driver_version="7")
    b = HardwareIdentity(architecture="y", sdk_version="1", device="d")
    assert [(d.field, d.recorded, d.present) for d in a.differences(b)] == [
        ("architecture", "x", "y")
    ]


def test_an_identity_survives_and_ignores_newer_fields() -> None:
    identity = HardwareIdentity(architecture="x", requirements="a=b")
    mapping = {**identity.to_mapping(), "newer": "1"}
    assert HardwareIdentity.from_mapping(mapping) == identity
    with pytest.raises(ValueError, match="is text"):
        HardwareIdentity.from_mapping({"architecture": 1})
