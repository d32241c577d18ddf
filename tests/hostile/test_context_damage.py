"""Everything that can be wrong with a payload: always InvalidGraph, with a reason."""

from __future__ import annotations

import os
import random
import re
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from context_models import (
    OPENVINO,
    ContextModel,
    compile_context,
    foreign_container,
    set_attribute,
)
from small_models import feed, mlp
from system_limits import WINDOWS, needs_special_files, needs_symlinks

import ort_lite as ort
from ort_lite.context.quote_argument import quote_argument

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(params=[False, True], ids=["external", "embedded"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> ContextModel:
    """A context model that loads."""
    return compile_context(tmp_path, mlp(), feed(mlp()), embed=request.param)


@pytest.fixture
def external(tmp_path: Path) -> ContextModel:
    """One with its payload in a file."""
    return compile_context(tmp_path, mlp(), feed(mlp()), embed=False)


def refusal(made: ContextModel, reason: str, text: str | None = None) -> ort.InvalidGraph:
    """The error that a session and a check without a session agree on."""
    with pytest.raises(ort.InvalidGraph, match=text) as found:
        made.load()
    assert found.value.reason == reason, str(found.value)
    assert str(found.value).startswith("[ONNXRuntimeError] : 10 : INVALID_GRAPH : ")
    assert found.value.hint
    (verdict,) = ort.check_compatibility(made.path)
    assert verdict.reason == reason
    return found.value


def test_a_foreign_payload_is_tried_in_a_child_process(
    external: ContextModel, tmp_path: Path
) -> None:
    """Once; OpenVINO's refusal there is its refusal here."""
    foreign_container(external, lambda blob: blob)
    entries = {
        "session__ep_context_probe": "auto",
        "session__ep_context_cache_dir": str(tmp_path / "cache"),
    }
    for _ in range(2):
        with external.load(**entries) as session:
            np.testing.assert_array_equal(session.run(None, external.feed)[0], external.expected[0])
    assert len(list((tmp_path / "cache" / "probes").iterdir())) == 1


def refusal_at_import(made: ContextModel, reason: str, text: str) -> None:
    """What only the vendor's import can find, which a check does not do."""
    with pytest.raises(ort.InvalidGraph, match=text) as found:
        made.load()
    assert found.value.reason == reason
    (verdict,) = ort.check_compatibility(made.path)
    assert verdict.reason is None
    assert verdict.integrity == "not recorded"


def flip(at: int, mask: int = 1) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[at] ^= mask
        return bytes(changed)

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: b"x", "format"),
        (lambda data: data[: len(data) // 2], "format"),
        (lambda data: data[:-1], "format"),
        (lambda data: data + b"\0", "format"),
        (lambda data: data + bytes(65536), "format"),
        (lambda data: bytes(len(data)), "format"),
        (lambda _: b"<?xml version='1.0'?><net name='m'/>", "format"),
        (flip(0), "format"),
        (flip(45), "integrity"),
        (flip(60_000), "format"),
        (flip(65_536 + 100), "integrity"),
        (flip(65_536 + 3000, 128), "integrity"),
        (flip(-1), "format"),
    ],
    ids=[
        "short",
        "half",
        "less1",
        "more1",
        "more",
        "zeros",
        "xml",
        "magic",
        "index",
        "padding",
        "payload",
        "payload2",
        "tail",
    ],
)
def test_a_damaged_payload_is_refused(
    made: ContextModel, change: Callable[[bytes], bytes], reason: str
) -> None:
    made.damage(change)
    refusal(made, reason)


def test_an_empty_payload_file_is_refused(external: ContextModel) -> None:
    external.damage(lambda _: b"")
    refusal(external, "format")


def test_no_flipped_bit_of_a_payload_is_accepted(made: ContextModel) -> None:
    """A sample over all regions; ctx_formats has the exhaustive one."""
    pick = random.Random(5)
    original = (made.payload or made.path).read_bytes()
    holder: list[bytes] = []
    made.damage(lambda data: holder.append(data) or data)
    size = len(holder[0])
    for at in [*range(0, 400, 13), *(pick.randrange(size) for _ in range(20))]:
        made.damage(flip(at, 1 << pick.randrange(8)))
        with pytest.raises(ort.InvalidGraph):
            made.load()
        (made.payload or made.path).write_bytes(original)
    made.load().close()


def test_swapped_payloads_of_equal_names_are_refused(tmp_path: Path) -> None:
    """Same graph, other weights: partition names agree, contents do not."""
    other = mlp()
    other.graph.initializer[0].raw_data = other.graph.initializer[0].raw_data[::-1]
    folders = [tmp_path / "a", tmp_path / "b"]
    models = []
    for folder, proto in zip(folders, (mlp(), other), strict=True):
        folder.mkdir()
        models.append(compile_context(folder, proto, feed(proto), embed=False))
    a, b = models
    assert a.payload is not None
    assert b.payload is not None
    a.payload.write_bytes(b.payload.read_bytes())
    refusal(a, "integrity")


@pytest.mark.parametrize(
    ("attribute", "value", "reason", "text"),
    [
        ("ep_sdk_version", "2024.1.0", "sdk_version", "built with '2024.1.0', here '20"),
        ("ep_sdk_version", "2024.1", "sdk_version", "built with '2024.1'"),
        ("hardware_architecture", "NPU4000", "hardware_architecture", "built with 'NPU4000'"),
        ("partition_name", "other", "missing_payload", "no payload called .other."),
        ("onnx_model_filename", "other.onnx", "integrity", "differ from the ones"),
        ("max_size", 7, "integrity", "differ from the ones"),
        ("max_size", -1, "format", "0 or more"),
        ("main_context", 0, "missing_payload", "main_context 1 holds its partition"),
        ("main_context", 2, "format", "expected 0 or 1"),
        ("embed_mode", 2, "format", "expected 0 or 1"),
        ("embed_mode", "1", "format", "expected INT"),
        ("ep_cache_context", None, "format", "a context or a path"),
        ("notes", '{"ort_lite": 99}', "format", "99, expected 1"),
        ("notes", '{"ort_lite"', "format", "no JSON"),
    ],
)
def test_an_edited_attribute_is_found(
    made: ContextModel, attribute: str, value: str | int | None, reason: str, text: str
) -> None:
    made.edit(set_attribute(attribute, value))
    refusal(made, reason, text)


def test_the_error_names_both_sides_and_the_way_out(made: ContextModel) -> None:
    made.edit(set_attribute("ep_sdk_version", "2024.1.0"))
    error = refusal(made, "sdk_version")
    assert error.recorded is not None
    assert error.recorded.sdk_version == "2024.1.0"
    assert error.present is not None
    assert error.present.sdk_version.startswith("20")
    assert "ort-lite compile" in str(error)


UNNAMED = "(this file does not record its name; see ort-lite compile --help)"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("m.onnx", "ort-lite compile MODEL --force AGAIN"),
        ("my model.onnx", 'ort-lite compile "my model.onnx" -o CONTEXT --force AGAIN'),
        ("", UNNAMED),
        ("-o", UNNAMED),
        ("m\x1b[31m.onnx", UNNAMED),
        ("m" * 300, UNNAMED),
    ],
    ids=["recorded", "quoted", "none", "option", "control", "long"],
)
def test_the_way_out_names_the_original_model(made: ContextModel, name: str, told: str) -> None:
    made.edit(set_attribute("notes", None))  # as somebody else's: no seal over the name
    made.edit(set_attribute("onnx_model_filename", name))
    made.edit(set_attribute("ep_sdk_version", "2024.1.0"))
    error = refusal(made, "sdk_version")
    for word, path in (("CONTEXT", made.path), ("MODEL", made.path.with_name("m.onnx"))):
        told = told.replace(word, quote_argument(str(path)))
    again = "-e openvino" if made.payload is not None else "--embed -e openvino"
    told = told.replace("AGAIN", again)
    assert error.hint.endswith(told)
    assert str(error).endswith(told), "nothing follows a command, so that it can be pasted"
    assert "\x1b" not in str(error)
    (verdict,) = ort.check_compatibility(made.path)
    assert verdict.hint == error.hint


def test_a_payload_for_another_cpu_is_refused_before_openvino_sees_it(
    external: ContextModel,
) -> None:
    """The requirement text inside the blob, in a container whose digests fit it."""
    change = re.compile(rb"isa=[^\0<\n]{3}")
    foreign_container(external, lambda blob: change.sub(b"isa=XYZ", blob, count=1))
    refusal(external, "hardware_architecture", "isa=XYZ")


def test_a_payload_of_another_openvino_is_refused_before_openvino_sees_it(
    external: ContextModel,
) -> None:
    foreign_container(external, lambda blob: re.sub(rb"ov=20\d\d", b"ov=1999", blob, count=1))
    refusal(external, "sdk_version", "ov=1999")


def test_a_payload_that_openvino_refuses_is_vendor_rejected(external: ContextModel) -> None:
    foreign_container(external, lambda blob: blob[:300] + bytes(len(blob) - 300))
    refusal_at_import(external, "vendor_rejected", "OpenVINO .* refuses the payload")


def test_a_foreign_payload_loads_and_its_integrity_is_not_recorded(
    external: ContextModel,
) -> None:
    foreign_container(external, lambda blob: blob)
    with external.load() as session:
        np.testing.assert_array_equal(session.run(None, external.feed)[0], external.expected[0])
    (verdict,) = ort.check_compatibility(external.path)
    assert verdict.integrity == "not recorded"
    with pytest.raises(ort.InvalidGraph, match="no digest recorded by 'somebody'") as found:
        external.load(session__require_payload_digest="1")
    assert found.value.reason == "integrity"


def test_a_foreign_payload_for_another_graph_is_refused_by_its_shapes(
    external: ContextModel,
) -> None:
    foreign_container(external, lambda blob: blob)
    proto = onnx.load(external.path)
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 9
    external.path.write_bytes(proto.SerializeToString())
    refusal_at_import(external, "shape", "'x' has size 4 in dimension 1, not 9")


@pytest.mark.parametrize(
    ("name", "reason", "text"),
    [
        ("../secret.bin", "unsafe_path", "escapes the model's folder"),
        ("sub/../../secret.bin", "unsafe_path", "escapes the model's folder"),
        ("/etc/passwd", "unsafe_path", "Absolute path not allowed"),
        ("C:\\secret.bin", "unsafe_path", "Absolute path not allowed"),
        ("\\\\host\\share\\secret.bin", "unsafe_path", "Absolute path not allowed"),
        ("..\\secret.bin", "unsafe_path", "escapes the model's folder"),
        ("a\0b", "unsafe_path", "NUL in a path"),
        ("NUL", "unsafe_path", "device name"),
        ("com1.bin", "unsafe_path", "device name"),
        ("x.bin ", "unsafe_path", "ends in a space or dot"),
        (".", "unsafe_path", "escapes the model's folder"),
        ("folder", "unsafe_path", "not a regular file"),
        pytest.param("fifo", "unsafe_path", "not a regular file", marks=needs_special_files),
        pytest.param("outside", "unsafe_path", "escapes the model's folder", marks=needs_symlinks),
        ("gone.bin", "missing_payload", "does not exist"),
    ],
)
def test_a_payload_name_that_leads_elsewhere_is_refused(
    tmp_path: Path, name: str, reason: str, text: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    made = compile_context(folder, mlp(), feed(mlp()), embed=False)
    assert made.payload is not None
    made.payload.rename(tmp_path / "secret.bin")
    (folder / "folder").mkdir()
    if not WINDOWS:
        (folder / "outside").symlink_to(tmp_path / "secret.bin")
        os.mkfifo(folder / "fifo")
    made.edit(set_attribute("ep_cache_context", name))
    refusal(made, reason, re.escape(text))


@pytest.mark.parametrize(
    "name", ["sub/p.bin", "sub/../p.bin", pytest.param("inside", marks=needs_symlinks)]
)
def test_a_payload_name_that_stays_inside_is_followed(external: ContextModel, name: str) -> None:
    folder = external.path.parent
    (folder / "sub").mkdir()
    assert external.payload is not None
    for place in ("sub/p.bin", "p.bin"):
        (folder / place).write_bytes(external.payload.read_bytes())
    if name == "inside":
        (folder / "inside").symlink_to(folder / "p.bin")
    external.payload.unlink()
    external.edit(set_attribute("ep_cache_context", name))
    with external.load() as session:
        np.testing.assert_array_equal(session.run(None, external.feed)[0], external.expected[0])


@needs_symlinks
def test_a_symlinked_model_finds_its_payload_beside_the_real_one(
    external: ContextModel, tmp_path: Path
) -> None:
    links = tmp_path / "snapshots"
    links.mkdir()
    (links / "m_ctx.onnx").symlink_to(external.path)
    with ort.InferenceSession(links / "m_ctx.onnx", providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, external.feed)[0], external.expected[0])


@pytest.mark.parametrize("source", ["QNN", "", "openvinoexecutionprovider"])
def test_an_unknown_source_is_named(made: ContextModel, source: str) -> None:
    made.edit(set_attribute("source", source))
    with pytest.raises(
        ort.NotImplemented, match=f"EPContext node generated by '{source or '.unknown.'}'"
    ):
        made.load()
    (verdict,) = ort.check_compatibility(made.path)
    assert verdict.reason in ("source_unknown", "integrity")


def test_a_truncated_context_model_is_refused_at_every_length(made: ContextModel) -> None:
    data = made.path.read_bytes()
    for size in [*range(0, min(len(data), 1500), 29), len(data) - 1]:
        made.path.write_bytes(data[:size])
        with pytest.raises(ort.OrtLiteError):
            made.load()


def test_a_payload_rewritten_under_a_session_does_not_reach_it(external: ContextModel) -> None:
    """As ort_lite publishes: another file takes the name, the mapped one lives on."""
    assert external.payload is not None
    with external.load() as session:
        other = external.payload.with_suffix(".new")
        other.write_bytes(bytes(10))
        other.replace(external.payload)
        np.testing.assert_array_equal(session.run(None, external.feed)[0], external.expected[0])


def test_a_value_of_another_shape_than_declared_is_refused_when_it_is_run(
    external: ContextModel,
) -> None:
    """One row where the payload was compiled for two: numpy would have repeated it."""
    proto = onnx.load(external.path)
    proto.graph.node[0].input[0] = "row"
    for name, value in (("start", 0), ("end", 1)):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([value]), name))
    proto.graph.node.insert(0, onnx.helper.make_node("Slice", ["x", "start", "end"], ["row"]))
    row = onnx.helper.make_tensor_value_info("row", onnx.TensorProto.FLOAT, [2, 4])
    proto.graph.value_info.append(row)
    external.path.write_bytes(proto.SerializeToString())
    with (
        external.load() as session,
        pytest.raises(ort.EPFail, match=r"shape \[1, 4\], and was compiled as \[2, 4\]"),
    ):
        session.run(None, external.feed)
