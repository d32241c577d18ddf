"""A check without a session says what a session does, in every environment of a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx
import pytest
from context_models import OPENVINO, ContextModel, compile_context, foreign_container, set_attribute
from small_models import feed, mlp

import ort_lite as ort
from ctx_formats.ep_context import EpContextNode
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.notes import read_notes

if TYPE_CHECKING:
    from pathlib import Path

Change = Callable[[ContextModel], None]
V = ort.CompiledModelCompatibility


def nothing(made: ContextModel) -> None:
    """As it was written."""


def attribute(name: str, value: str | int | None) -> Change:
    return lambda made: made.edit(set_attribute(name, value))


def recorded(**fields: str) -> Change:
    """A context of another machine: identity, attributes and seal fit each other."""

    def change(made: ContextModel) -> None:
        model = read_model(memoryview(made.path.read_bytes()))
        (node,) = (EpContextNode.from_node(n) for n in model.graph.nodes)
        notes = read_notes(node)
        assert notes is not None
        identity = replace(notes.identity, **fields)
        node = replace(
            node, ep_sdk_version=identity.sdk_version, hardware_architecture=identity.architecture
        )
        sealed = replace(notes, identity=identity).seal_into(node)
        graph = replace(model.graph, nodes=(sealed.to_node(),))
        made.path.write_bytes(model_bytes(replace(model, graph=graph)))

    return change


def blob(pattern: bytes, put: bytes) -> Change:
    """A foreign context whose payload itself says something else."""
    return lambda made: foreign_container(made, lambda data: re.sub(pattern, put, data, count=1))


def both(*changes: Change) -> Change:
    def change(made: ContextModel) -> None:
        for one in changes:
            one(made)

    return change


def without_digest(made: ContextModel) -> None:
    foreign_container(made, lambda data: data)


def lose(made: ContextModel) -> None:
    assert made.payload is not None
    made.payload.unlink()


def flip(made: ContextModel) -> None:
    made.damage(lambda data: data[:66_000] + bytes([data[66_000] ^ 4]) + data[66_001:])


ENVIRONMENTS: dict[str, tuple[Change, str, str]] = {
    "where it was made": (nothing, "CPU", ""),
    "another OpenVINO": (recorded(sdk_version="2025.4.1", sdk_build=""), "CPU", "sdk_version"),
    "another build": (recorded(sdk_build="2026.4.1-1-0"), "CPU", "sdk_version"),
    "another instruction set": (
        recorded(requirements="meta=1.0;ov=2026.4.1;isa=SSE", device="CPU: another"),
        "CPU",
        "hardware_architecture",
    ),
    "another requirement of another OpenVINO": (
        recorded(requirements="meta=1.0;ov=2026.9.0;isa=SSE", device="CPU: another"),
        "CPU",
        "sdk_version",
    ),
    "another name of the CPU": (recorded(device="CPU: another"), "CPU", ""),
    "a driver that CPUs do not have": (recorded(driver_version="31.0.101"), "CPU", ""),
    "another architecture": (
        recorded(architecture="NPU4000"),
        "CPU",
        "hardware_architecture",
    ),
    "made for a GPU": (recorded(device="GPU.0: Iris"), "CPU", "hardware_architecture"),
    "a device that is not here": (nothing, "NPU", "device_missing"),
    "edited version": (attribute("ep_sdk_version", "2024.1"), "CPU", "sdk_version"),
    "edited model name": (attribute("onnx_model_filename", "x"), "CPU", "integrity"),
    "foreign": (without_digest, "CPU", ""),
    "foreign, short version": (
        both(without_digest, attribute("ep_sdk_version", "2026.4")),
        "CPU",
        "",
    ),
    "foreign, another short version": (
        both(without_digest, attribute("ep_sdk_version", "2026.3")),
        "CPU",
        "sdk_version",
    ),
    "foreign, payload of another OpenVINO": (blob(rb"ov=20\d\d", b"ov=1999"), "CPU", "sdk_version"),
    "foreign, payload for another instruction set": (
        blob(rb"isa=[^\0<\n]{3}", b"isa=XYZ"),
        "CPU",
        "hardware_architecture",
    ),
    "foreign, damaged requirement text": (
        blob(rb"RR_UPCVO.", b"RR_UPCVO\x07"),
        "CPU",
        "format",
    ),
    "nobody's": (attribute("source", "QNN"), "CPU", "source_unknown"),
    "payload lost": (lose, "CPU", "missing_payload"),
    "payload damaged": (flip, "CPU", "integrity"),
    "payload elsewhere": (attribute("ep_cache_context", "../p.bin"), "CPU", "unsafe_path"),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_check_and_a_session_agree(tmp_path: Path, name: str) -> None:
    change, device, reason = ENVIRONMENTS[name]
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    change(made)
    providers = [(OPENVINO, {"device_type": device})]
    (verdict,) = ort.check_compatibility(made.path, providers=providers)
    assert (verdict.reason or "") == reason, verdict.message
    assert verdict.verdict is (V.EP_UNSUPPORTED if reason else V.EP_SUPPORTED_OPTIMAL)
    assert session_says(made, providers) == reason
    if reason:
        assert verdict.message
        assert verdict.hint


def test_a_context_for_a_device_that_is_not_here_is_an_error_with_fallback_too(
    tmp_path: Path,
) -> None:
    """The session goes on with the CPU EP, which runs no EPContext node."""
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    with (
        pytest.warns(UserWarning, match=r"OpenVINOExecutionProvider cannot be opened.*no device"),
        pytest.raises(ort.NotImplemented, match="not compatible with any execution provider"),
    ):
        ort.InferenceSession(made.path, providers=[(OPENVINO, {"device_type": "NPU"})])


def session_says(made: ContextModel, providers: list[tuple[str, dict[str, str]]]) -> str:
    """The reason that a session gives; "" if it loads and computes right."""
    try:
        with ort.InferenceSession(made.path, providers=providers, enable_fallback=0) as session:
            (found,) = session.run(None, made.feed)
    except ort.OrtLiteError as exc:
        return reason_of(exc)
    assert (found == made.expected[0]).all()
    return ""


def reason_of(error: ort.OrtLiteError) -> str:
    """A provider that cannot be opened, or is not there, is no fault of the payload's."""
    if isinstance(error, ort.InvalidGraph):
        return str(error.reason)
    if isinstance(error, ort.NotImplemented):
        return "source_unknown" if "not compatible with any execution" in error.message else ""
    return "device_missing" if "no device" in error.message else error.message


@pytest.mark.parametrize(("chosen", "reason"), [(OPENVINO, ""), ("", "device_missing")])
def test_a_check_heeds_the_devices_that_a_delegate_selects(
    tmp_path: Path, chosen: str, reason: str
) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    options = ort.SessionOptions()
    options.set_provider_selection_policy_delegate(
        lambda devices, *_: [d for d in devices if (d.ep_name == OPENVINO) == bool(chosen)][:1]
    )
    (verdict,) = ort.check_compatibility(made.path, options)
    assert (verdict.reason or "") == reason, verdict.message
    assert not options.has_providers(), "the caller's options are the caller's"
    if not reason:
        ort.InferenceSession(made.path, options).close()
        return
    with pytest.raises(ort.NotImplemented, match="not compatible with any execution provider"):
        ort.InferenceSession(made.path, options)


def test_identities_are_shown_on_both_sides(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    recorded(sdk_version="2025.4.1", sdk_build="")(made)
    (verdict,) = ort.check_compatibility(made.path)
    assert verdict.recorded is not None
    assert verdict.recorded.sdk_version == "2025.4.1"
    assert verdict.present is not None
    assert verdict.present.sdk_version.startswith("2026.4")
    assert "ort-lite compile" in verdict.hint


def info_of(made: ContextModel) -> str:
    found = ort.get_compatibility_info_from_model(made.path, OPENVINO)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda info: info, V.EP_SUPPORTED_OPTIMAL),
        (lambda info: info.replace("ort_lite-0.1.0", "1.8.1+abc"), V.EP_SUPPORTED_OPTIMAL),
        (lambda info: info.replace("ov=20", "ov=19"), V.EP_UNSUPPORTED),
        (lambda info: info.replace("isa=", "isa=Another "), V.EP_UNSUPPORTED),
        (lambda info: info.replace('"1.0"', '"2.0"'), V.EP_UNSUPPORTED),
        (lambda _: "", V.EP_UNSUPPORTED),
        (lambda _: "[" * 100_000, V.EP_UNSUPPORTED),
        (lambda _: '{"ovep_compat_ver":"1.0","ov_compat_string":7}', V.EP_UNSUPPORTED),
    ],
    ids=[
        "as made",
        "of onnxruntime",
        "older OpenVINO",
        "other instructions",
        "other form",
        "empty",
        "bomb",
        "no text",
    ],
)
def test_a_compatibility_text_is_judged(
    tmp_path: Path, change: Callable[[str], str], expected: V
) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    devices = [d for d in ort.get_ep_devices() if d.ep_name == OPENVINO]
    assert ort.get_model_compatibility_for_ep_devices(devices, change(info_of(made))) is expected


def test_each_node_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    """The second of two nodes was made by somebody else."""
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    proto = onnx.load(made.path)
    other = onnx.helper.make_node("EPContext", ["y"], ["z"], domain="com.microsoft")
    set_attribute("source", "QNNExecutionProvider")(other)
    set_attribute("ep_cache_context", "qnn.bin")(other)
    set_attribute("embed_mode", 0)(other)
    proto.graph.node.append(other)
    made.path.write_bytes(proto.SerializeToString())
    mine, theirs = ort.check_compatibility(made.path)
    assert mine.verdict is V.EP_SUPPORTED_OPTIMAL
    assert (theirs.verdict, theirs.source) == (V.EP_UNSUPPORTED, "QNNExecutionProvider")
