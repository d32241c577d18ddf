"""Texts at the two ends of an OpenVINO blob, read before OpenVINO sees a byte.

From OpenVINO 2026.4 on a CPU or GPU blob starts with: 8 bytes "RR_UPCVO", u32 version 1, u64
length, then that many bytes such as `meta=1.0;ov=2026.4.1;isa=Intel AVX-512`. Older blobs and
NPU blobs have no such header.

A blob says nothing of the threads that it was compiled for, nor which inputs may be empty. ort_lite
therefore writes a text such as `ort_lite;threads=1` behind a CPU blob with the header, which says
where the blob ends. OpenVINO itself accepts such a blob, and so do programs that know nothing of
the text.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

MAGIC = b"RR_UPCVO"
_HEADER = struct.Struct("<8sIQ")
_SECTIONS = struct.Struct("<6Q")
"""Offset and size, in bytes, of custom data, constants and model, from the text's end."""
MAX_REQUIREMENTS = 1 << 16
TRAILER_MARK = b"ort_lite;"
MAX_TRAILER = 1 << 12
THREADS = "threads"
"""Key of the trailer: "1" for a blob that runs in the caller's thread."""
EMPTY = "empty"
"""Key of the trailer: positions of the inputs that may have no elements, as in "2-49"."""


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
    start, (_, _, offset, size, *_) = _read_sections(payload)
    if start + offset + size > len(payload):
        raise FormatError("blob header.constants", f"[{offset}, +{size})", "inside the blob")
    return payload[start + offset : start + offset + size]


def size_of_blob(payload: memoryview) -> int:
    """Bytes of a CPU blob, at whose end `payload` may go on with something else.

    Raises:
        FormatError: As `constants_of`, or a section that extends past the payload.
    """
    start, sections = _read_sections(payload)
    size = start + max(map(sum, zip(sections[::2], sections[1::2], strict=True)))
    if size > len(payload):
        raise FormatError("blob header.sections", f"{size} bytes", f"at most {len(payload)}")
    return size


def _read_sections(payload: memoryview) -> tuple[int, tuple[int, ...]]:
    """Where offsets count from; offset and size of custom data, constants and model."""
    if bytes(payload[: len(MAGIC)]) != MAGIC:
        raise FormatError("blob header.magic", repr(bytes(payload[:8])), repr(MAGIC))
    read_requirements(payload)  # checks the length of the text
    start = _HEADER.size + _HEADER.unpack_from(payload)[2]
    if len(payload) < start + _SECTIONS.size:
        raise FormatError("blob header", f"{len(payload)} bytes", f"{start + _SECTIONS.size}")
    return start, _SECTIONS.unpack_from(payload, start)


def write_trailer(out: BinaryIO, settings: Mapping[str, str]) -> None:
    """Write `settings` behind a blob that `out` has got; nothing where there are none."""
    if settings:
        text = ";".join(f"{key}={value}" for key, value in settings.items())
        out.write(TRAILER_MARK + text.encode("ascii"))


def split_trailer(payload: memoryview) -> tuple[memoryview, Mapping[str, str]]:
    """The blob, and the settings behind it; all of `payload` and {} where there are none.

    Never raises: `payload` may be damaged, and OpenVINO is the judge of blobs.
    """
    try:
        end = size_of_blob(payload)
    except FormatError:
        return payload, {}
    trailer = bytes(payload[end : end + MAX_TRAILER])
    if not trailer.startswith(TRAILER_MARK):
        return payload, {}
    text = trailer.removeprefix(TRAILER_MARK).decode("ascii", errors="replace")
    return payload[:end], parse_requirements(text)


def write_positions(positions: Iterable[int]) -> str:
    """Positions as a list of ranges for the trailer, such as "2-5,8"."""
    ranges: list[list[int]] = []
    for position in sorted(positions):
        if ranges and position == ranges[-1][1] + 1:
            ranges[-1][1] = position
        else:
            ranges.append([position, position])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def read_positions(text: str, count: int) -> frozenset[int]:
    """What `write_positions` wrote, of `count` inputs; nothing of a text that is none.

    Never raises: `text` may be anybody's.
    """
    positions: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        ends = (first, last or first)
        if not all(end.isascii() and end.isdigit() and len(end) < 10 for end in ends):
            return frozenset()
        positions.update(range(int(ends[0]), min(int(ends[1]), count - 1) + 1))
    return frozenset(positions)
