"""A compiled partition as bytes, and back without trusting one of them.

    0      8 bytes   "OLOPENCL"
    8      u32       version, 1
    12     u32       size of the header
    16     u64       size of the whole payload
    24     32 bytes  BLAKE3 of the header
    56     JSON      {identity, variants: [{table, binary, source, weights}], model}
    ...    zeros to a multiple of 4,096, section, zeros, section, ...

A section is {offset, size, blake3}; `blake3` is "" for weights and model, which no driver parses
and which the container's digest covers. `source` is deflated. `model` is the partition as an
ONNX model where its inputs have free dimensions, else null. Integers are little-endian.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import FormatError, Reason
from ctx_formats.identity import HardwareIdentity
from eps.opencl.payload_table import array, blueprint_of, number, table_of, text

if TYPE_CHECKING:
    from typing import BinaryIO

    from eps.opencl.blueprint import Blueprint

MAGIC = b"OLOPENCL"
VERSION = 1
HEAD = struct.Struct("<8sIIQ32s")
ALIGNMENT = 4096
MAX_HEADER = 1 << 26
MAX_SOURCE = 1 << 26


@dataclass(frozen=True, slots=True)
class Variant:
    """One program: what was compiled, and the driver's binary of it."""

    blueprint: Blueprint
    binary: memoryview


@dataclass(frozen=True, slots=True)
class Payload:
    """Everything in a payload.

    Attributes:
        identity: Of the device and driver that made the binaries.
        model: The partition as an ONNX model; None where its shapes are fixed.
    """

    identity: HardwareIdentity
    variants: tuple[Variant, ...]
    model: memoryview | None = None


def write_payload(payload: Payload, out: BinaryIO) -> None:
    """Write it."""
    sections: list[bytes | memoryview] = []
    at = [0]

    def add(data: bytes | memoryview, *, digest: bool) -> dict[str, object]:
        size = len(data)
        found = {
            "offset": at[0],
            "size": size,
            "blake3": blake3(data).hexdigest() if digest else "",
        }
        sections.append(data)
        at[0] += -(-size // ALIGNMENT) * ALIGNMENT
        return found

    rows = [
        {
            "table": table_of(variant.blueprint),
            "binary": add(variant.binary, digest=True),
            "source": add(zlib.compress(variant.blueprint.source.encode(), 6), digest=True),
            "weights": add(variant.blueprint.weights, digest=False),
        }
        for variant in payload.variants
    ]
    model = None if payload.model is None else add(payload.model, digest=False)
    content = {"identity": payload.identity.to_mapping(), "variants": rows, "model": model}
    header = json.dumps(content, separators=(",", ":")).encode()
    base = -(-(HEAD.size + len(header)) // ALIGNMENT) * ALIGNMENT
    out.write(HEAD.pack(MAGIC, VERSION, len(header), base + at[0], blake3(header).digest()))
    out.write(header)
    out.write(bytes(base - HEAD.size - len(header)))
    for data in sections:
        out.write(data)
        out.write(bytes(-len(data) % ALIGNMENT))


def read_payload(data: memoryview, alignment: int) -> Payload:
    """Check and read a payload; binary, weights and model are views of `data`.

    Args:
        data: All of it.
        alignment: In bytes, that the device needs of a part of a buffer.

    Raises:
        FormatError: It is no whole, undamaged payload of this version.
    """
    header, base = _header(data)
    identity = header.get("identity")
    if not isinstance(identity, dict):
        raise FormatError("identity", str(identity)[:40], "an object")
    try:
        recorded = HardwareIdentity.from_mapping(identity)
    except ValueError as exc:
        raise FormatError("identity", str(exc)) from exc
    body = data[base:]
    variants = []
    for row in array(header.get("variants"), "variants"):
        if not isinstance(row, dict) or not isinstance(row.get("table"), dict):
            raise FormatError("variant", str(row)[:40], "an object with a table")
        source = _inflated(_section(body, row.get("source"), "source"))
        weights = _section(body, row.get("weights"), "weights")
        blueprint = blueprint_of(row["table"], source, weights, alignment)
        variants.append(Variant(blueprint, _section(body, row.get("binary"), "binary")))
    model = header.get("model")
    section = None if model is None else _section(body, model, "model")
    if section is None and len(variants) != 1:
        raise FormatError("variants", f"{len(variants)}", "1 where shapes are fixed")
    return Payload(recorded, tuple(variants), section)


def _header(data: memoryview) -> tuple[dict[str, object], int]:
    """The header, and where sections start."""
    if len(data) < HEAD.size:
        raise FormatError("payload", f"{len(data)} bytes", f"at least {HEAD.size}")
    magic, version, size, whole, digest = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise FormatError("payload.magic", repr(magic), repr(MAGIC))
    if version != VERSION:
        raise FormatError("payload.version", str(version), str(VERSION))
    if whole != len(data) or size > MAX_HEADER or HEAD.size + size > len(data):
        raise FormatError("payload.size", f"{len(data)} bytes, header {size}", f"{whole} bytes")
    raw = bytes(data[HEAD.size : HEAD.size + size])
    if blake3(raw).digest() != digest:
        raise FormatError("payload.header", "another digest than recorded", reason=Reason.INTEGRITY)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise FormatError("payload.header", str(exc)[:80], "JSON") from exc
    if not isinstance(header, dict):
        raise FormatError("payload.header", type(header).__name__, "an object")
    return header, -(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT


def _section(body: memoryview, place: object, name: str) -> memoryview:
    if not isinstance(place, dict):
        raise FormatError(name, str(place)[:40], "a section")
    offset = number(place.get("offset"), f"{name}.offset", 0, len(body))
    size = number(place.get("size"), f"{name}.size", 0, len(body) - offset)
    if offset % ALIGNMENT:
        raise FormatError(f"{name}.offset", str(offset), f"a multiple of {ALIGNMENT}")
    found = body[offset : offset + size]
    wanted = text(place.get("blake3"), f"{name}.blake3")
    if (wanted or name in ("binary", "source")) and blake3(found).hexdigest() != wanted:
        raise FormatError(name, "another digest than recorded", reason=Reason.INTEGRITY)
    return found


def _inflated(data: memoryview) -> str:
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(data, MAX_SOURCE)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise FormatError("source", "cut, or too long", f"at most {MAX_SOURCE} characters")
        return raw.decode()
    except (zlib.error, UnicodeDecodeError) as exc:
        raise FormatError("source", str(exc)[:80], "deflated text") from exc
