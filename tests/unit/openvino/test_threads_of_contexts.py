"""A context runs on as many threads as the session that wrote it, unless somebody chooses."""

from __future__ import annotations

import io
import os
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
import pytest
from small_models import layers, recurrence

import ort_lite as ort
from ctx_formats.container_reader import read_container
from eps.openvino.payload.blob_header import split_trailer, write_trailer

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

OPENVINO = "OpenVINOExecutionProvider"
NOTE = "on one thread: more would wait for each other"
several_cpus = pytest.mark.skipif(
    os.cpu_count() == 1, reason="with one CPU everything runs in the caller's thread"
)


def write_context(folder: Path, proto: onnx.ModelProto) -> Path:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(folder / "model_ctx.onnx"))
    with ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO]):
        return folder / "model_ctx.onnx"


def read_payload(folder: Path) -> bytes:
    (file,) = folder.glob("*.bin")
    container = read_container(memoryview(file.read_bytes()))
    (name,) = container.entries
    return bytes(container.read_payload(name))


def count_streams(path: Path, shape: tuple[int, ...], **options: str) -> tuple[int, bool]:
    """Streams of the imported model, 0 for the caller's thread, and whether a note says so."""
    x = np.ones(shape, np.float32)
    with ort.InferenceSession(path, providers=[(OPENVINO, options)]) as session:
        assert np.isfinite(session.run(None, {"x": x})[0]).all()
        (part,) = session._present().prepared.partitions
        compiled: Any = part.compiled
        (report,) = session.explain().partitions
        return int(compiled.model.property("NUM_STREAMS")), NOTE in report.notes


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_steps_of_recurrences_stay_in_the_callers_thread(tmp_path: Path, op: str) -> None:
    path = write_context(tmp_path, recurrence(op, 16, sizes=("time", "batch")))
    assert count_streams(path, (5, 2, 16)) == (0, True)


@several_cpus
def test_much_work_stays_on_all_threads(tmp_path: Path) -> None:
    path = write_context(tmp_path, layers(1024))
    streams, noted = count_streams(path, (1, 1024))
    assert streams > 0
    assert not noted


@several_cpus
@pytest.mark.parametrize(
    "options",
    [
        {"num_of_threads": "2"},
        {"num_streams": "1"},
        {"load_config": '{"CPU": {"INFERENCE_NUM_THREADS": "2"}}'},
    ],
    ids=["threads", "streams", "load_config"],
)
def test_a_number_of_the_loading_session_is_kept(tmp_path: Path, options: dict[str, str]) -> None:
    path = write_context(tmp_path, recurrence("GRU", 16, sizes=("time", 1)))
    streams, noted = count_streams(path, (5, 1, 16), **options)
    assert streams > 0
    assert not noted


def test_weights_in_a_shared_file_change_nothing(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    (tmp_path / "model.onnx").write_bytes(layers(96).SerializeToString())
    with ort.SharedContexts() as group:
        group.join(options)
        ort.InferenceSession(tmp_path / "model.onnx", options, providers=[OPENVINO]).close()
    assert len(read_payload(tmp_path)) < 96 * 96 * 4, "weights are not in the payload"
    assert count_streams(tmp_path / "model_ctx.onnx", (1, 96)) == (0, True)


def test_a_payload_says_so_behind_a_blob_that_openvino_accepts(tmp_path: Path) -> None:
    write_context(tmp_path, recurrence("LSTM", 16, sizes=("time", 1)))
    payload = read_payload(tmp_path)
    blob, settings = split_trailer(memoryview(payload))
    assert settings == {"threads": "1"}
    assert payload == bytes(blob) + b"ort_lite;threads=1"
    for data in (payload, bytes(blob)):
        tensor = openvino.Tensor(np.frombuffer(data, np.uint8).copy())
        float32 = {"INFERENCE_PRECISION_HINT": "f32"}
        compiled = openvino.Core().import_model(tensor, "CPU", float32)
        answer = compiled({"x": np.ones((3, 1, 16), np.float32)})[0]
        assert answer.shape == (3, 1, 1, 16)


def make_blob(model_bytes: int = 4) -> bytes:
    """The form of a blob of OpenVINO 2026.4: text, sections, 4 bytes for each of them."""
    text = b"ov=1"
    sections = struct.pack("<6Q", 48, 4, 52, 4, 56, model_bytes)
    return struct.pack("<8sIQ", b"RR_UPCVO", 1, len(text)) + text + sections + bytes(12)


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"<cnndata>", b"RR_UPCVO", make_blob()[:60], make_blob()[:-1], make_blob(1 << 63)),
        *(make_blob(), make_blob() + b"\0", make_blob() + b"ort_lite", make_blob() + b"X" * 99),
    ],
    ids=str,
)
def test_a_payload_without_a_trailer_is_all_blob(payload: bytes) -> None:
    blob, settings = split_trailer(memoryview(payload))
    assert bytes(blob) == payload
    assert settings == {}


def test_what_is_written_behind_a_blob_is_read_again() -> None:
    out = io.BytesIO()
    out.write(make_blob())
    write_trailer(out, {})
    assert out.getvalue() == make_blob()
    write_trailer(out, {"threads": "1", "later": "x"})
    blob, settings = split_trailer(memoryview(out.getvalue()))
    assert bytes(blob) == make_blob()
    assert settings == {"threads": "1", "later": "x"}
