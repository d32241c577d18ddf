"""A file that is not a model is called what it looks like."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import numpy as np
import pytest
from small_models import mlp

import ort_lite as ort
from ctx_formats.file_kind import kind_of


def npy() -> bytes:
    out = io.BytesIO()
    np.save(out, np.zeros(3))
    return out.getvalue()


def npz() -> bytes:
    out = io.BytesIO()
    np.savez(out, a=np.zeros(3))
    return out.getvalue()


def zipped(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, b"content")
    return out.getvalue()


def safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4)


FILES = {
    "an empty file": b"",
    "zeros": bytes(100),
    "the compiled payload of a context model": b"OVEP_BIN" + bytes(20),
    "a PNG image": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "a JPEG image": b"\xff\xd8\xff\xe0" + bytes(20),
    "a NumPy array (.npy)": npy(),
    "NumPy arrays (.npz)": npz(),
    "a PyTorch file (ZIP)": zipped("archive/data.pkl"),
    "a ZIP archive; unpack it first": zipped("model.onnx"),
    "gzip data; unpack it first": gzip.compress(b"model"),
    "a Python pickle": b"\x80\x04K\x01.",
    "a TensorFlow Lite model": b"\x1c\0\0\0TFL3" + bytes(20),
    "a model in the ORT format": b"\x1c\0\0\0ORTM" + bytes(20),
    "weights in safetensors": safetensors(),
    "a pointer of Git LFS; run git lfs pull": b"version https://git-lfs.github.com/spec/v1\n",
    "a web page (HTML); was the download refused?": b"\n<!DOCTYPE html><html>",
    "an OpenVINO model (XML)": b'<?xml version="1.0"?>\n<net name="m" version="11">',
    "JSON": b'{"a": 1}',
    "text": "größer".encode(),
    "": bytes(range(1, 200)),
}


@pytest.mark.parametrize(("kind", "data"), FILES.items(), ids=[k or "unknown" for k in FILES])
def test_a_file_is_called_what_it_looks_like(kind: str, data: bytes) -> None:
    assert kind_of(memoryview(data)) == kind


def test_text_cut_within_a_character_is_text() -> None:
    assert kind_of(memoryview(("ä" * 4000).encode()[:4097])) == "text"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + bytes(20), b""], ids=["png", "empty"])
def test_the_error_says_so(tmp_path, data: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(ort.InvalidArgument if not data else ort.InvalidProtobuf) as refused:
        ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert f"{path} looks like {kind_of(memoryview(data))}" in str(refused.value)


def test_a_model_looks_like_nothing_else() -> None:
    assert kind_of(memoryview(mlp().SerializeToString())) == ""
