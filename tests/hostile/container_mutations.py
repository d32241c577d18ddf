"""Damaged payload containers: bytes changed region by region, or the index itself rewritten."""

from __future__ import annotations

import zlib
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hostile.byte_mutations import INTERESTING, mutated

from ctx_formats.bson import decode_document, encode_document
from ctx_formats.container import (
    ALIGNMENT,
    CRC_KEY,
    HEAD_KEY,
    HEADER,
    MAGIC,
    VERSION,
    WEIGHTS_KEY,
    padding,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from ctx_formats.container import Container


def damaged(
    data: bytes, parsed: Container, names: Collection[str], random: Random
) -> tuple[bytes, bool]:
    """A container in which something is not as it was written.

    Args:
        data: Of a valid one.
        parsed: The same.
        names: Payloads that the model at hand loads; others, and their weights, it need not read.
        random: Decides.

    Returns:
        Its bytes, and whether its checksum was made to fit: then it is a forgery that a reader
        of the container alone cannot tell from another container.
    """
    if random.random() < 0.5:
        return mutated(data, regions(data, parsed, names), random), False
    forged = random.random() < 0.5
    return rewrite_container(data, parsed, random, forged=forged), forged


def touches(data: bytes, changed: bytes, parsed: Container, names: Collection[str]) -> bool:
    """Whether a reader of `names` alone must notice: a change may spill over a part's end."""
    if len(data) != len(changed):
        return True
    return any(data[a:b] != changed[a:b] for a, b in regions(data, parsed, names))


def regions(data: bytes, parsed: Container, names: Collection[str]) -> list[tuple[int, int]]:
    """Header, index, filling, the payloads and weights in use with what is behind every part.

    Payload bytes are left alone where nobody recorded a digest: there a change is no damage
    that a reader of the container could find.
    """
    parts = (*parsed.entries.values(), *parsed.weights.values())
    used = {run for name in names for run in parsed.entries[name].weights}
    size = HEADER.unpack_from(data)[4]
    end = HEADER.size + size
    first = min(part.offset for part in parts)
    fill = (end, first) if parsed.has_digests else (0, HEADER.size)
    found = [(0, HEADER.size), (HEADER.size, end), fill, (len(data) - 16, len(data))]
    for part in parts:
        stop = part.offset + part.size
        found.append((stop, stop + padding(stop)))
        in_use = part.name in (used if parsed.weights.get(part.name) is part else names)
        if parsed.has_digests and in_use:
            found.append((part.offset, stop))
    return [(start, stop) for start, stop in found if start < stop]


def rewrite_container(data: bytes, parsed: Container, random: Random, *, forged: bool) -> bytes:
    """The index changed as a value and written again, its checksum right if `forged`."""
    size = HEADER.unpack_from(data)[4]
    index = deepcopy(decode_document(memoryview(data)[HEADER.size : HEADER.size + size]))
    for _ in range(random.choice((1, 1, 2))):
        random.choice(_EDITS)(index, random)
    head = _head(index, forged=forged)
    parts = (*parsed.entries.values(), *parsed.weights.values())
    first = min(part.offset for part in parts)
    return head + bytes(max(first - len(head), padding(len(head)))) + data[first:]


def _head(index: dict[str, Any], *, forged: bool) -> bytes:
    if forged and CRC_KEY in index:
        index = {key: value for key, value in index.items() if key != CRC_KEY} | {CRC_KEY: 0}
        header = _header(index)
        index[CRC_KEY] = zlib.crc32(header + encode_document(index))
    return _header(index) + encode_document(index)


def _header(index: dict[str, Any]) -> bytes:
    return HEADER.pack(MAGIC, VERSION, HEADER.size, HEADER.size, len(encode_document(index)))


def _entries(index: dict[str, Any], random: Random) -> dict[str, Any]:
    """Payloads; of a container that models share, runs of weights as well."""
    maps = [index[key] for key in ("blob_metadata_map", WEIGHTS_KEY) if key in index]
    found = random.choice(maps) if maps else None
    return found if isinstance(found, dict) else {}


def _entry(index: dict[str, Any], random: Random) -> dict[str, Any]:
    found = _entries(index, random)
    entries = [entry for entry in found.values() if isinstance(entry, dict)]
    return random.choice(entries) if entries else {}


def _place(index: dict[str, Any], random: Random) -> None:
    value = random.choice((*INTERESTING[:-2], 131_072, 196_608, random.randrange(1 << 20)))
    change = random.choice((min(value, (1 << 63) - 1), -1, -ALIGNMENT))
    _entry(index, random)[random.choice(("data_offset", "size", "crc"))] = change


def _shift(index: dict[str, Any], random: Random) -> None:
    entry, key = _entry(index, random), random.choice(("data_offset", "size"))
    if isinstance(entry.get(key), int):
        entry[key] += random.choice((-ALIGNMENT, -1, 1, ALIGNMENT))


def _digest(index: dict[str, Any], random: Random) -> None:
    text = random.choice(("", "0" * 64, "z" * 64, random.randbytes(32).hex(), "0" * 63))
    _entry(index, random)["blake3"] = text


def _lose(index: dict[str, Any], random: Random) -> None:
    place = random.choice((index, _entries(index, random), _entry(index, random)))
    if place:
        place.pop(random.choice(list(place)))


def _rename(index: dict[str, Any], random: Random) -> None:
    entries = _entries(index, random)
    if entries:
        old = random.choice(list(entries))
        entries[random.choice(("", "x", old + "_", old.upper()))] = entries.pop(old)


def _swap(index: dict[str, Any], random: Random) -> None:
    entries = _entries(index, random)
    if len(entries) > 1:
        one, other = random.sample(list(entries), 2)
        entries[one], entries[other] = entries[other], entries[one]


def _add(index: dict[str, Any], random: Random) -> None:
    extra = dict(_entry(index, random))
    _entries(index, random)[f"extra{random.randrange(9)}"] = extra


def _kind(index: dict[str, Any], random: Random) -> None:
    place = random.choice((index, _entries(index, random), _entry(index, random)))
    if place:
        value = random.choice((True, 1.5, "text", 7, -7, {}, {"a": {}}))
        place[random.choice(list(place))] = value


def _weights(index: dict[str, Any], random: Random) -> None:
    """What a payload needs besides, and where the first part begins, where models share."""
    if WEIGHTS_KEY not in index or random.random() < 0.3:
        index[HEAD_KEY] = random.choice((0, 40, ALIGNMENT, 65_537, 1 << 18, 1 << 40, -1, "x"))
        return
    runs = list(index[WEIGHTS_KEY]) if isinstance(index[WEIGHTS_KEY], dict) else []
    _entry(index, random)["weights"] = random.choice(("", "0", "9", ",", "0,0", ",".join(runs)))


def _version(index: dict[str, Any], random: Random) -> None:
    index["version"] = random.choice(("0.9.0", "2.0.0", "1", "", "1.9.9", "x.1.0", "11.0.0"))


_EDITS = (_place, _shift, _digest, _lose, _rename, _swap, _add, _kind, _version, _weights)
