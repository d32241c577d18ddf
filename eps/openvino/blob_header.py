"""The requirement text at the start of an OpenVINO blob, read before OpenVINO sees a byte.

From OpenVINO 2026.4 on a CPU or GPU blob starts with: 8 bytes "RR_UPCVO", u32 version 1, u64
length, then that many bytes such as `meta=1.0;ov=2026.4.1;isa=Intel AVX-512`. Older blobs and
NPU blobs have no such header.
"""

from __future__ import annotations

import struct

from ctx_formats.errors import FormatError

MAGIC = b"RR_UPCVO"
_HEADER = struct.Struct("<8sIQ")
MAX_REQUIREMENTS = 1 << 16


def read_requirements(payload: memoryview) -> str:
    """The requirement text; "" for a blob without the header.

    Raises:
        FormatError: A header that runs past the payload or is not text.
    """
    if bytes(payload[: len(MAGIC)]) != MAGIC:
        return ""
    if len(payload) < _HEADER.size:
        raise FormatError("blob header", f"{len(payload)} bytes", f"at least {_HEADER.size}")
    _, version, size = _HEADER.unpack_from(payload)
    if size > min(MAX_REQUIREMENTS, len(payload) - _HEADER.size):
        raise FormatError("blob header.size", str(size), f"at most {MAX_REQUIREMENTS}")
    if version != 1:
        raise FormatError("blob header.version", str(version), "1")
    try:
        return str(payload[_HEADER.size : _HEADER.size + size], "ascii")
    except UnicodeDecodeError as exc:
        raise FormatError("blob header.requirements", "not ASCII", "text") from exc


def parse_requirements(text: str) -> dict[str, str]:
    """`key=value;key=value` as a dict; a part without "=" keeps an empty value."""
    parts = (part.partition("=") for part in text.split(";") if part)
    return {key.strip(): value.strip() for key, _, value in parts}
