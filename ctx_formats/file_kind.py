"""Guesses the kind of a file that is not an ONNX model, for error messages."""

from __future__ import annotations

from ctx_formats.container import MAGIC

_STARTS = (
    (MAGIC, "the compiled payload of a context model"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"%PDF-", "a PDF document"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"\x1f\x8b", "gzip data; unpack it first"),
    (b"BZh", "bzip2 data; unpack it first"),
    (b"\xfd7zXZ\x00", "xz data; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd data; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, such as Keras writes"),
    (b"GGUF", "a GGUF model of llama.cpp"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"MZ", "a program or library of Windows"),
    (b"\x80\x02", "a Python pickle, such as PyTorch wrote"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"version https://git-lfs", "a pointer of Git LFS; run git lfs pull"),
)
_AT_FOUR = {
    b"TFL3": "a TensorFlow Lite model",
    b"ORTM": "a model in the ORT format",
    b"ftyp": "a video or HEIF image",
}
"""FlatBuffers and MP4 have their mark after the first four bytes."""
_MARKS_IN_ZIP = (
    (b"data.pkl", "a PyTorch file (ZIP)"),
    (b".npy", "NumPy arrays (.npz)"),
    (b"keras_metadata", "a Keras model (ZIP)"),
)
_LOOKED_AT = 4096


def kind_of(data: memoryview) -> str:
    """Kind of a file by its first bytes, such as "a PNG image"; "" if unknown.

    Args:
        data: The whole file; only its beginning is read.
    """
    head = bytes(data[:_LOOKED_AT])
    if not head:
        return "an empty file"
    if not any(head):
        return "zeros"
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if head[4:8] in _AT_FOUR:
        return _AT_FOUR[head[4:8]]
    if head.startswith(b"RIFF") and head[8:12] in (b"WEBP", b"WAVE"):
        return "a WebP image" if head[8:12] == b"WEBP" else "a WAV sound"
    if head.startswith(b"PK\x03\x04"):
        kinds = (kind for mark, kind in _MARKS_IN_ZIP if mark in head)
        return next(kinds, "a ZIP archive; unpack it first")
    if head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < max(len(data), 1):
        return "weights in safetensors"
    return _text_kind(head)


def _text_kind(head: bytes) -> str:
    """Kind of a text by its content; "" if it is not text."""
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as exc:
        if exc.start < len(head) - 3:  # else a character is cut off at the end
            return ""
        text = head[: exc.start].decode("utf-8")
    if not all(c.isprintable() or c in "\r\n\t\ufeff" for c in text):
        return ""
    start = text.lstrip("\ufeff \r\n\t")[:200].lower()
    if start.startswith(("<!doctype html", "<html", "<head")):
        return "a web page (HTML); was the download refused?"
    if start.startswith(("<?xml", "<net ")):
        return "an OpenVINO model (XML)" if "<net " in text else "XML"
    if start.startswith(("{", "[")):
        return "JSON"
    return "a script" if start.startswith("#!") else "text"
