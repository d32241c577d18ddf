"""Contexts of a producer that is not us, made by hand: what others write loads here."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from interop.foreign_context import (
    OPENVINO,
    PRODUCER,
    ForeignStyle,
    Stage,
    container,
    context_model,
    raw_blob,
    write,
)
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_models import model

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE = f"m_ctx_{OPENVINO}.bin"
FIRST, SECOND = f"m_ctx_{OPENVINO}_subgraph_1_0", f"m_ctx_{OPENVINO}_subgraph_1_1"
X = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}


def matmul(reads: str, makes: str, columns: int) -> onnx.ModelProto:
    """Relu(reads @ w), [2, 4] to [2, columns]."""
    weight = np.random.default_rng(columns).standard_normal((4, columns)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", [reads, "w"], ["p"], name="matmul"),
        helper.make_node("Relu", ["p"], [makes], name="relu"),
    ]
    return model(nodes, [(reads, [2, 4])], [(makes, [2, columns])], {"w": weight})


ONE = matmul("x", "y", 3)
TWO = (matmul("x", "h", 4), matmul("h", "y", 3))


def expected(*stages: onnx.ModelProto) -> np.ndarray:
    """The reference's numbers for a chain of models."""
    value = X["x"]
    for stage in stages:
        (value,) = ReferenceEvaluator(stage).run(None, {stage.graph.input[0].name: value})  # type: ignore[assignment] # a list
    return value


def one(folder: Path, style: ForeignStyle | None = None, **attributes: Any) -> Path:
    """One partition, its payload in a file."""
    given = {"embed_mode": 0, "ep_cache_context": FILE, **attributes}
    made = context_model([Stage(FIRST, "x", "y", given)], {"x": [2, 4], "y": [2, 3]})
    return write(folder, made, container({FIRST: raw_blob(ONE)}, style))


def two(folder: Path, first: dict[str, Any], second: dict[str, Any], payload: bytes) -> Path:
    """Two partitions, one after the other."""
    stages = [Stage(FIRST, "x", "h", first), Stage(SECOND, "h", "y", second)]
    made = context_model(stages, {"x": [2, 4], "h": [2, 4], "y": [2, 3]})
    return write(folder, made, None if first["embed_mode"] else payload)


def two_blobs() -> bytes:
    return container({FIRST: raw_blob(TWO[0]), SECOND: raw_blob(TWO[1])})


def assert_runs(path: Path, right: np.ndarray) -> None:
    """It loads from its payloads and gives these numbers."""
    with ort.InferenceSession(path, providers=[OPENVINO]) as session:
        assert {part.origin for part in session.explain().partitions} == {"context"}
        np.testing.assert_allclose(session.run(None, X)[0], right, rtol=1e-5, atol=1e-6)


def refusal(path: Path, text: str, **entries: str) -> ort.InvalidGraph:
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    with pytest.raises(ort.InvalidGraph, match=text) as found:
        ort.InferenceSession(path, options, providers=[OPENVINO])
    return found.value


def test_the_hand_made_container_is_of_the_described_form() -> None:
    data = container({"p": b"blob"}, ForeignStyle(leftover=True))
    assert struct.unpack_from("<8sQQQ", data) == (b"OVEP_BIN", 1, 40, 40)
    assert len(data) == 2 * 65536
    assert data[65536:65541] == b"blob\0"
    (size,) = struct.unpack_from("<Q", data, 32)
    assert data[40 + size : 65536].strip(b"\0"), "the longer index shows behind the final one"


def test_a_context_in_a_file_loads(tmp_path: Path) -> None:
    assert_runs(one(tmp_path), expected(ONE))


@pytest.mark.parametrize(
    "style",
    [
        ForeignStyle(leftover=True),
        ForeignStyle(version="1.0.0"),
        ForeignStyle(version="1.7.3"),
        ForeignStyle(wide=True),
        ForeignStyle(extra={"weights_metadata_map": {}}),
    ],
    ids=["leftover", "1.0.0", "newer minor", "int64", "weights map"],
)
def test_every_way_of_writing_the_index_is_read(tmp_path: Path, style: ForeignStyle) -> None:
    assert_runs(one(tmp_path, style), expected(ONE))


def test_an_embedded_context_loads(tmp_path: Path) -> None:
    data = container({FIRST: raw_blob(ONE)})
    given = {"embed_mode": 1, "ep_cache_context": data}
    made = context_model([Stage(FIRST, "x", "y", given)], {"x": [2, 4], "y": [2, 3]})
    assert_runs(write(tmp_path, made, None), expected(ONE))


def test_embed_mode_is_1_where_the_node_does_not_say(tmp_path: Path) -> None:
    """com.microsoft::EPContext, version 1: the schema's default."""
    data = container({FIRST: raw_blob(ONE)})
    made = context_model(
        [Stage(FIRST, "x", "y", {"ep_cache_context": data})], {"x": [2, 4], "y": [2, 3]}
    )
    assert_runs(write(tmp_path, made, None), expected(ONE))


def test_two_partitions_share_a_file(tmp_path: Path) -> None:
    given = {"embed_mode": 0, "ep_cache_context": FILE}
    assert_runs(two(tmp_path, given, given, two_blobs()), expected(*TWO))


@pytest.mark.parametrize("empty", [{}, {"ep_cache_context": b""}], ids=["absent", "empty"])
def test_an_embedded_secondary_node_finds_its_partition_in_the_first(
    tmp_path: Path, empty: dict[str, bytes]
) -> None:
    """The plug-in leaves the attribute out; its forerunner wrote an empty one."""
    data = two_blobs()
    first = {"embed_mode": 1, "ep_cache_context": data}
    second = {"embed_mode": 1, "main_context": 0, **empty}
    assert_runs(two(tmp_path, first, second, data), expected(*TWO))


def test_a_secondary_node_of_a_file_finds_it_too(tmp_path: Path) -> None:
    first = {"embed_mode": 0, "ep_cache_context": FILE}
    second = {"embed_mode": 0, "main_context": 0}
    assert_runs(two(tmp_path, first, second, two_blobs()), expected(*TWO))


def test_a_secondary_node_whose_partition_nobody_holds_is_refused(tmp_path: Path) -> None:
    first = {"embed_mode": 0, "ep_cache_context": FILE}
    second = {"embed_mode": 0, "main_context": 0, "partition_name": "gone"}
    error = refusal(two(tmp_path, first, second, two_blobs()), "holds its partition 'gone'")
    assert error.reason == "missing_payload"


def test_its_integrity_is_not_recorded(tmp_path: Path) -> None:
    (verdict,) = ort.check_compatibility(one(tmp_path))
    assert verdict.integrity == "not recorded"
    assert verdict.verdict == ort.CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL


def test_a_session_that_requires_digests_refuses_it(tmp_path: Path) -> None:
    path = one(tmp_path)
    error = refusal(
        path, f"no digest recorded by '{PRODUCER[:20]}", session__require_payload_digest="1"
    )
    assert error.reason == "integrity"


def test_a_context_of_an_older_openvino_is_refused(tmp_path: Path) -> None:
    path = one(tmp_path, ep_sdk_version="2025.4")
    error = refusal(path, "built with '2025.4', here '20")
    assert error.reason == "sdk_version"
    (verdict,) = ort.check_compatibility(path)
    assert verdict.reason == "sdk_version"


def test_a_node_that_tells_no_version_is_left_to_the_blob(tmp_path: Path) -> None:
    assert_runs(one(tmp_path, ep_sdk_version=None), expected(ONE))


def put(offset: int, data: bytes) -> Callable[[bytes], bytes]:
    return lambda whole: whole[:offset] + data + whole[offset + len(data) :]


def number(key: str, value: int) -> Callable[[bytes], bytes]:
    """The 32-bit number behind a key of the index."""

    def change(data: bytes) -> bytes:
        at = data.index(key.encode() + b"\0") + len(key) + 1
        return put(at, struct.pack("<i", value))(data)

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (number("data_offset", 65536 * 9), "format"),
        (number("data_offset", 40), "format"),
        (number("data_offset", -65536), "format"),
        (number("size", 1 << 30), "format"),
        (number("size", 0), "format"),
        (put(8, struct.pack("<Q", 2)), "format"),
        (put(32, struct.pack("<Q", 1 << 62)), "format"),
        (put(40, struct.pack("<i", 1 << 30)), "format"),
        (lambda data: data[:-1], "format"),
        (lambda data: data + bytes(65536), "format"),
        (lambda data: data[:65536], "format"),
        (put(65536, b"X"), "vendor_rejected"),
        (lambda data: data.replace(b"ov=20", b"ov=19", 1), "sdk_version"),
        (lambda data: data.replace(b"isa=Intel", b"isa=Other", 1), "hardware_architecture"),
    ],
    ids=[
        "offset beyond the file",
        "offset in the index",
        "negative offset",
        "size beyond the file",
        "no size",
        "version 2",
        "index size",
        "document size",
        "one byte less",
        "longer",
        "index alone",
        "blob magic",
        "other OpenVINO",
        "other chip",
    ],
)
def test_without_digests_what_can_be_checked_is_checked(
    tmp_path: Path, change: Callable[[bytes], bytes], reason: str
) -> None:
    path = one(tmp_path)
    payload = tmp_path / FILE
    damaged = change(payload.read_bytes())
    assert damaged != payload.read_bytes()
    payload.write_bytes(damaged)
    assert refusal(path, "reason: ").reason == reason
