"""A compiled partition as bytes.

    0      8 bytes   "OLOPENCL"
    8      u32       version, 6 or 7
    12     u32       size of the header
    16     u64       size of the whole payload
    24     32 bytes  BLAKE3 of the header
    56     JSON      {identity, variants: [{table, binary, source, weights, tuned}], model, weights,
                     pool}; in version 7 a variant may have parts: [{binary, functions}, ...]
                     in place of a binary
    ...    zeros to a multiple of 4,096, section, zeros, section, ...

A section is {offset, size, blake3}; `blake3` is "" for the pool and the model, which no driver
parses and which the container's digest covers. `source` is deflated. `model` is null, or
{graph, weights, whole} where the partition's inputs have free dimensions: an ONNX model, whose
large initializers have the place of one of its weights as the location of external data. Where it
is not whole they are left out, and only the programs that are there can run.

`weights` of the header lists [where, offset, size, blake3], each content once: where 0 it lies
in the section `pool`, at a multiple of 512; where 1 in the file that models of a session group
share. `uses` of a table, which may be missing, lists for each input and output the [call, argument]
pairs that are its memory, then the [input, output] pairs that may be one. `chains` of a table,
which may be missing, lists [first call, call after the last] of calls that one launch of the
program's entry runs; each can be launched alone, too. `weights` of a variant and of the model are
indices into it. `tuned`, which may be missing, has the tilings that were measured: programs for
other shapes take them over. Integers are little-endian.

A part is a program of some functions, as indices into the different kernels of the table's calls in
their order; each function is in one part, and those of a chain are in the same. The source is that
of one program with all of them.

Sections may be named by several variants, and are digested and inflated once; all sources together
are at most 64 MiB. Weights share no bytes.
"""

from __future__ import annotations

import json
import struct
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import FormatError, Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import dataclass, replace
from eps.opencl.payload.table import array, decode_spec, number, text, truth
from eps.opencl.program_spec import ProgramPart, Weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.compile.tilings import Problem, Tiling
    from eps.opencl.program_spec import ProgramSpec


MAGIC = b"OLOPENCL"
VERSION = 7
WITHOUT_PARTS = 6
"""Version of payloads that earlier releases read, too."""
MAX_PARTS = 256
HEAD = struct.Struct("<8sIIQ32s")
ALIGNMENT = 4096
IN_POOL, IN_SHARED_FILE = 0, 1


@dataclass(frozen=True, slots=True)
class ProgramVariant:
    """One program: what was compiled, and the driver's binary of it, or of each of its parts."""

    spec: ProgramSpec
    binaries: tuple[memoryview, ...]


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A partition with free dimensions: an ONNX model whose large initializers are `weights`.

    Attributes:
        whole: Whether they are there, to compile it for other shapes.
    """

    proto: memoryview
    weights: tuple[Weight, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class ProgramPayload:
    """Everything in a payload.

    Attributes:
        identity: Of the device and driver that made the binaries.
        model: The partition; None if its shapes are fixed.
    """

    identity: HardwareIdentity
    variants: tuple[ProgramVariant, ...]
    model: StoredGraph | None = None


MAX_HEADER = 1 << 26
MAX_SOURCE = 1 << 26


def read_payload(
    data: memoryview, alignment: int, shared: memoryview | None = None
) -> ProgramPayload:
    """Check and read a payload; binary, weights and model are views of `data` and `shared`.

    Args:
        data: All of it.
        alignment: In bytes, that the device needs of a part of a buffer.
        shared: The file that large weights went to.

    Raises:
        FormatError: It is not a whole, undamaged payload of this version.
    """
    header, body = read_header(data)
    sections = _Sections(body)
    weights = _read_weights(header, sections, shared)
    variants = []
    for row in array(header.get("variants"), "variants"):
        if not isinstance(row, dict) or not isinstance(row.get("table"), dict):
            raise FormatError("variant", str(row)[:40], "an object with a table")
        source = sections.text(row.get("source"), "source")
        mine = _pick_weights(row.get("weights"), weights)
        tuned = _read_tuned(array(row.get("tuned", []), "tuned"))
        spec = replace(decode_spec(row["table"], source, mine, alignment), tuned=tuned)
        variants.append(_read_binaries(row, spec, sections))
    model = _read_model(header.get("model"), sections, weights)
    if model is None and len(variants) != 1:
        raise FormatError("variants", f"{len(variants)}", "1 where shapes are fixed")
    return ProgramPayload(identity_of(header), tuple(variants), model)


def identity_of(header: dict[str, object]) -> HardwareIdentity:
    """The target of a payload.

    Raises:
        FormatError: It does not say so.
    """
    identity = header.get("identity")
    if not isinstance(identity, dict):
        raise FormatError("identity", str(identity)[:40], "an object")
    try:
        return HardwareIdentity.from_mapping(identity)
    except ValueError as exc:
        raise FormatError("identity", str(exc)) from exc


def read_header(data: memoryview) -> tuple[dict[str, object], memoryview]:
    """The header, and the bytes after it that contain the sections.

    Raises:
        FormatError: It is not a header, or damaged.
    """
    if len(data) < HEAD.size:
        raise FormatError("payload", f"{len(data)} bytes", f"at least {HEAD.size}")
    magic, version, size, whole, digest = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise FormatError("payload.magic", repr(magic), repr(MAGIC))
    if version not in (WITHOUT_PARTS, VERSION):
        raise FormatError("payload.version", str(version), f"{WITHOUT_PARTS} or {VERSION}")
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
    return header, data[-(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT :]


def _read_binaries(
    row: Mapping[str, object], spec: ProgramSpec, sections: _Sections
) -> ProgramVariant:
    """The spec with its parts, and their binaries.

    Raises:
        FormatError: A function is in no part, or in two.
    """
    if "parts" not in row:
        return ProgramVariant(spec, (sections.part(row.get("binary"), "binary"),))
    parts, binaries = [], []
    last = len(spec.functions) - 1
    for place in array(row["parts"], "parts")[: MAX_PARTS + 1]:
        if not isinstance(place, dict):
            raise FormatError("part", str(place)[:40], "an object")
        numbers = array(place.get("functions"), "part.functions")
        parts.append(ProgramPart(tuple(number(n, "part.function", 0, last) for n in numbers)))
        binaries.append(sections.part(place.get("binary"), "binary"))
    if not 0 < len(parts) <= MAX_PARTS:
        raise FormatError("parts", f"{len(parts)} or more", f"1 to {MAX_PARTS}")
    if sorted(n for part in parts for n in part.functions) != list(range(last + 1)):
        raise FormatError("parts", "a function in no part, or in two", "each in one")
    spec = replace(spec, parts=tuple(parts))
    if spec.chains and None in spec.parts_of_chains:
        raise FormatError("parts", "a chain of functions in two parts", "each chain in one part")
    return ProgramVariant(spec, tuple(binaries))


def _read_weights(
    header: dict[str, object], sections: _Sections, shared: memoryview | None
) -> list[Weight]:
    pool = sections.part(header.get("pool"), "pool")
    weights = []
    places: list[tuple[int, int, int]] = []
    for row in array(header.get("weights"), "weights"):
        where, offset, size, digest = array(row, "weight", 4)
        place = (pool, shared)[number(where, "weight.where", IN_POOL, IN_SHARED_FILE)]
        if place is None:
            raise FormatError("weight", "in a shared file", "in the payload")
        start = number(offset, "weight.offset", 0, len(place))
        length = number(size, "weight.size", 0, len(place) - start)
        name = text(digest, "weight.blake3")
        weights.append(Weight(name, place[start : start + length]))
        places.append((number(where, "weight.where", 0, IN_SHARED_FILE), start, start + length))
    _require_apart(places)
    if len({weight.digest for weight in weights}) != len(weights):
        raise FormatError("weights", "one digest twice", "each content once")
    return weights


def _require_apart(places: list[tuple[int, int, int]]) -> None:
    """Refuse weights that share bytes: a device would hold each of thousands in full.

    Args:
        places: Which file, first byte, and the byte behind the last.
    """
    used = sorted(place for place in places if place[1] < place[2])
    for (file, _, end), (next_file, start, _) in pairwise(used):
        if file == next_file and start < end:
            raise FormatError("weight", f"from byte {start}", f"behind the one before it, at {end}")


def _pick_weights(indices: object, weights: Sequence[Weight]) -> tuple[Weight, ...]:
    last = len(weights) - 1
    return tuple(weights[number(i, "weight", 0, last)] for i in array(indices, "weights"))


def _read_tuned(rows: Sequence[object]) -> Mapping[Problem, Tiling]:
    if not rows:
        return {}
    from eps.opencl.tuning.rows import read_tuned_rows  # noqa: PLC0415 - lazy: rare

    return read_tuned_rows(rows)


def _read_model(row: object, sections: _Sections, weights: Sequence[Weight]) -> StoredGraph | None:
    if row is None:
        return None
    if not isinstance(row, dict):
        raise FormatError("model", str(row)[:40], "an object")
    graph, whole = sections.part(row.get("graph"), "model.graph"), row.get("whole")
    own = _pick_weights(row.get("weights"), weights)
    return StoredGraph(graph, own, whole=truth(whole, "model.whole"))


class _Sections:
    """Parts of a payload; each is digested and inflated once, however many variants name it."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._digests: dict[tuple[int, int], str] = {}
        self._texts: dict[tuple[int, int], str] = {}
        self._left = MAX_SOURCE

    def part(self, place: object, name: str) -> memoryview:
        """The bytes of a section, which are those that the header has a digest of."""
        if not isinstance(place, dict):
            raise FormatError(name, str(place)[:40], "a section")
        offset = number(place.get("offset"), f"{name}.offset", 0, len(self._body))
        size = number(place.get("size"), f"{name}.size", 0, len(self._body) - offset)
        if offset % ALIGNMENT:
            raise FormatError(f"{name}.offset", str(offset), f"a multiple of {ALIGNMENT}")
        content = self._body[offset : offset + size]
        digest = text(place.get("blake3"), f"{name}.blake3")
        if digest or name in ("binary", "source"):
            self._compare_digest((offset, size), content, digest, name)
        return content

    def text(self, place: object, name: str) -> str:
        """The inflated text of a section; all texts of a payload together are bounded."""
        data = self.part(place, name)
        assert isinstance(place, dict), "`part` has looked at it"
        key = (place["offset"], place["size"])
        if key not in self._texts:
            self._texts[key] = _inflate(data, self._left)
            self._left -= len(self._texts[key])
        return self._texts[key]

    def _compare_digest(
        self, key: tuple[int, int], content: memoryview, digest: str, name: str
    ) -> None:
        if key not in self._digests:
            self._digests[key] = blake3(content).hexdigest()
        if self._digests[key] != digest:
            raise FormatError(name, "another digest than recorded", reason=Reason.INTEGRITY)


def _inflate(data: memoryview, most: int) -> str:
    unpacker = zlib.decompressobj()
    try:
        # 0 would mean "as much as there is".
        raw = unpacker.decompress(data, max(most, 1))
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise FormatError(
                "source", "cut, or too long", f"at most {MAX_SOURCE} characters in a payload"
            )
        return raw.decode()
    except (zlib.error, UnicodeDecodeError) as exc:
        raise FormatError("source", str(exc)[:80], "deflated text") from exc
