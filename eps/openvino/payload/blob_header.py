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
_SECTIONS = struct.Struct("<6Q")
"""Offset and size, in bytes, of custom data, constants and model, from the text's end."""
MAX_REQUIREMENTS = 1 << 16


def read_requirements(payload: memoryview) -> str:
    """The requirement text; "" for a blob without the header.

    Raises:
        FormatError: A header that extends past the payload or is not text.
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


def has_constants(payload: memoryview) -> bool:
    """Whether a blob contains constants; also true if its header cannot be read."""
    try:
        return len(constants_of(payload)) > 0
    except FormatError:
        return True


def constants_of(payload: memoryview) -> memoryview:
    """The section of a CPU blob that contains its constants.

    Raises:
        FormatError: A blob that does not begin with OpenVINO 2026.4's header.
    """
    if bytes(payload[: len(MAGIC)]) != MAGIC:
        raise FormatError("blob header.magic", repr(bytes(payload[:8])), repr(MAGIC))
    read_requirements(payload)  # checks the length of the text
    start = _HEADER.size + _HEADER.unpack_from(payload)[2]
    if len(payload) < start + _SECTIONS.size:
        raise FormatError("blob header", f"{len(payload)} bytes", f"{start + _SECTIONS.size}")
    _, _, offset, size, *_ = _SECTIONS.unpack_from(payload, start)
    if start + offset + size > len(payload):
        raise FormatError("blob header.constants", f"[{offset}, +{size})", "inside the blob")
    return payload[start + offset : start + offset + size]
