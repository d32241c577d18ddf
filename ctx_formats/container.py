"""The OVEP_BIN payload container, version 1, as a value.

    0      8 bytes  "OVEP_BIN"
    8      u64      version, 1
    16     u64      header size, 40
    24     u64      offset of the index, 40
    32     u64      size of the index
    40     BSON     index: {version, producer, blob_metadata_map: {partition: {data_offset,
                    size, blake3, crc}}, index_crc}
    ...    zeros    to the next multiple of 65,536
    ...    payload, zeros to the next multiple of 65,536, payload, ...

A container that several models share has more: `head_size` in the index says where, instead of
at the next multiple, the first of the rest begins; `weights_map` lists runs of weights as
`blob_metadata_map` lists payloads, which include those; a payload that needs runs names
them in `weights`, separated by commas.

Integers are little-endian, offsets count from the start of the file, sizes leave padding
out. `blake3` (hex), `crc` and `index_crc` (CRC-32) are ours; ONNX Runtime's OpenVINO EP, whose
format this is, writes and reads the rest. It writes the index twice, the second time shorter,
and leaves the end of the first behind it. Normative text: docs/formats/container.md.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAGIC = b"OVEP_BIN"
HEADER = struct.Struct("<8sQQQQ")
VERSION = 1
ALIGNMENT = 1 << 16
DIGESTED_ALONE = 1 << 20
"""Bytes up to which one thread digests: half a millisecond."""
MAX_INDEX_BYTES = 16 << 20
INDEX_VERSION = "1.1.0"
CRC_KEY = "index_crc"
HEAD_KEY = "head_size"
WEIGHTS_KEY = "weights_map"
_SHOWN, _SHOWN_CHARACTERS = 8, 120
"""Names in a message, and characters of each: every node may ask in vain, and an index may have
megabytes of names."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One payload.

    Attributes:
        offset: Bytes from the start of the container.
        size: Bytes without padding.
        blake3: Digest in hex, or "" where the producer records none.
        crc: CRC-32, or None if the producer records none.
        weights: Names of the runs of weights that a payload needs besides.
    """

    name: str
    offset: int
    size: int
    blake3: str = ""
    crc: int | None = None
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Container:
    """A container whose index was found to cover it exactly.

    Attributes:
        entries: Payloads by partition name.
        weights: Runs of weights that payloads have in common, by name.
    """

    data: memoryview
    producer: str
    entries: Mapping[str, Entry]
    weights: Mapping[str, Entry] = field(default_factory=dict)
    _digests: dict[tuple[int, int], str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def has_digests(self) -> bool:
        """Whether every payload has one."""
        return all(entry.blake3 for entry in self.entries.values())

    @property
    def head_size(self) -> int:
        """Bytes of header and index with what fills them up.

        Where `has_digests`, they say of every other byte which it is, and where.
        """
        return min(entry.offset for entry in (*self.entries.values(), *self.weights.values()))

    def payload(self, name: str) -> memoryview:
        """The bytes of one payload, not yet compared with its digest.

        Raises:
            FormatError: Reason missing_payload; the index does not list it.
        """
        entry = self.entries.get(name)
        if entry is None:
            known = ", ".join(key[:_SHOWN_CHARACTERS] for key in islice(self.entries, _SHOWN))
            known += ", ..." if len(self.entries) > _SHOWN else ""
            raise FormatError(
                "index",
                f"no payload called '{name[:_SHOWN_CHARACTERS]}'",
                known,
                reason=Reason.MISSING_PAYLOAD,
            )
        return self.data[entry.offset : entry.offset + entry.size]

    def read_payload(self, name: str) -> memoryview:
        """The bytes of one payload, compared with the recorded digest where there is one.

        Raises:
            FormatError: Reason integrity; they are not what was written.
        """
        payload = self.payload(name)
        self._compare_digest(f"payload '{name}'", self.entries[name])
        return payload

    def payload_digest(self, name: str) -> str:
        """BLAKE3 of one payload's bytes, in hex.

        Raises:
            FormatError: Reason missing_payload; there is no payload of that name.
        """
        self.payload(name)
        return self._digest(self.entries[name])

    def verify_weights(self, run: str) -> None:
        """Compare a run of weights with its digest.

        Raises:
            FormatError: Reason integrity; they are not what was written.
        """
        self._compare_digest(f"weights '{run}'", self.weights[run])

    def weights_digest(self, name: str) -> str:
        """One digest, in hex, over those of all runs that a payload needs; "" for none."""
        runs = self.entries[name].weights
        return combined_digest([self.weights[run] for run in runs]) if runs else ""

    def _compare_digest(self, what: str, entry: Entry) -> None:
        if not entry.blake3:
            return
        digest = self._digest(entry)
        if digest != entry.blake3:
            raise FormatError(
                what,
                f"digest {digest[:16]}...",
                f"{entry.blake3[:16]}...",
                reason=Reason.INTEGRITY,
            )

    def _digest(self, entry: Entry) -> str:
        """The digest of an entry's region, computed once however many entries name the region."""
        region = (entry.offset, entry.size)
        digest = self._digests.get(region)
        if digest is None:
            data = self.data[entry.offset : entry.offset + entry.size]
            digest = self._digests[region] = payload_digest(data)
        return digest


def combined_digest(entries: Sequence[Entry]) -> str:
    """One digest, in hex, over those of several payloads or runs of weights."""
    return payload_digest("".join(entry.blake3 for entry in entries).encode())


def payload_digest(payload: memoryview | bytes) -> str:
    """BLAKE3 in hex, at about memory speed; two threads where there is enough to do."""
    return new_digest(len(payload)).update(payload).hexdigest()


def new_digest(size: int = DIGESTED_ALONE) -> blake3:
    """A BLAKE3 hasher for `size` bytes; on all cores, unless they are few."""
    return blake3(max_threads=1 if size < DIGESTED_ALONE else _digest_threads())


@cache
def _digest_threads() -> int:
    """All cores, or 1 where blake3 cannot start its threads: then and later it panics."""
    try:
        blake3(bytes(1 << 16), max_threads=blake3.AUTO)
    except BaseException as exc:
        if type(exc).__name__ != "PanicException":  # of pyo3; no module has it
            raise
        return 1
    return int(blake3.AUTO)


def padding(size: int) -> int:
    """Zero bytes after `size` bytes up to the next boundary."""
    return -size % ALIGNMENT
