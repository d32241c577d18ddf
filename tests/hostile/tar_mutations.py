"""Damaged tar files: fields of headers with their checksums made to fit, members, bytes."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from hostile.byte_mutations import mutated

if TYPE_CHECKING:
    from random import Random

BLOCK = tarfile.BLOCKSIZE
_FIELDS = ((0, 100), (100, 8), (124, 12), (136, 12), (148, 8), (156, 1), (157, 100), (257, 8),
           (345, 155), (386, 96), (482, 13))  # fmt: skip
"""Offset and size: name, mode, size, time, checksum, type, link, magic, prefix, and where GNU's
sparse files have their maps."""
_CHECKSUM = (148, 8)


def damaged_tar(data: bytes, random: Random) -> bytes:
    """An archive that differs from `data`."""
    if random.random() < 0.2:
        return mutated(data, [(0, len(data)), (0, 4 * BLOCK)], random)
    members = _members(data)
    for _ in range(random.choice((1, 1, 2))):
        random.choice(_CHANGES)(members, random.randrange(len(members)), random)
    return b"".join(members) + bytes(random.choice((0, BLOCK, 2 * BLOCK, 20 * BLOCK)))


def _members(data: bytes) -> list[bytes]:
    """Header and content of each."""
    found = []
    at = 0
    while at + BLOCK <= len(data) and any(data[at : at + BLOCK]):
        size = int(data[at + 124 : at + 135].rstrip(b" \0"), 8)
        end = at + BLOCK + -(-size // BLOCK) * BLOCK
        found.append(data[at:end])
        at = end
    return found


def _summed(member: bytes) -> bytes:
    """`member` with the checksum of its header."""
    at, size = _CHECKSUM
    total = sum(member[:at]) + 32 * size + sum(member[at + size : BLOCK])
    return member[:at] + b"%06o\0 " % total + member[at + size :]


def _field(members: list[bytes], at: int, random: Random) -> None:
    start, size = random.choice(_FIELDS)
    value = random.choice(
        (
            *(b"\0" * size, b"7" * size, b"0" * (size - 1) + b"\0", random.randbytes(size)),
            *(b"\x80" + b"\0" * (size - 2) + b"\xff", b"\xff" * size, b"9" * size, b"../" * size),
        )
    )[:size]
    if size == 1:
        value = random.choice((b"0", b"1", b"2", b"5", b"7", b"L", b"K", b"S", b"x", b"g", b"\0"))
    member = members[at]
    members[at] = _summed(member[:start] + value.ljust(size, b"\0") + member[start + size :])


def _lose(members: list[bytes], at: int, random: Random) -> None:
    del members[at]
    members.append(bytes(BLOCK))


def _again(members: list[bytes], at: int, random: Random) -> None:
    place = random.randrange(len(members))
    members[place:place] = [members[at]] * random.choice((1, 2, 30))


def _swap(members: list[bytes], at: int, random: Random) -> None:
    other = random.randrange(len(members))
    members[at], members[other] = members[other], members[at]


def _content(members: list[bytes], at: int, random: Random) -> None:
    member = members[at]
    if len(member) > BLOCK:
        members[at] = member[:BLOCK] + mutated(member[BLOCK:], [(0, 2000)], random)


def _headers(members: list[bytes], at: int, random: Random) -> None:
    """Headers that say something of the next member: once, or thousands of them."""
    kind = random.choice((b"x", b"g", b"L", b"K"))
    content = random.choice(
        (
            b"11 size=99\n", b"30 GNU.sparse.major=1\n" + b"22 GNU.sparse.minor=0\n",
            b"25 GNU.sparse.map=0,1,2,\n", b"99999999999 path=x\n", b"0 x=\n", b"-3 a=b\n",
            b"12 path=\xff\xfe\n", b"a" * 5000, b"19 size=9999999999\n", b"9" * 6000 + b" a=b\n",
        )
    )  # fmt: skip
    header = bytearray(members[at][:BLOCK])
    header[124:136] = b"%011o\0" % len(content)
    header[156:157] = kind
    one = _summed(bytes(header)) + content + bytes(-len(content) % BLOCK)
    members[at:at] = [one] * random.choice((1, 1, 3, 1500))


_CHANGES = (_field, _field, _field, _lose, _again, _swap, _content, _headers)
