"""Changes to bytes of which nothing is known but where interesting places are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

INTERESTING = (0, 1, 2, 7, 8, 39, 40, 41, 127, 128, 255, 256, 65_535, 65_536, 65_537,
               1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip


def mutated(data: bytes, spans: Sequence[tuple[int, int]], random: Random) -> bytes:
    """One to three changes, each in one of `spans` ([start, end) of `data`)."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        start, end = random.choice(spans)
        end = min(end, len(changed))
        if start < end:
            random.choice(_CHANGES)(changed, random.randrange(start, end), random)
    return bytes(changed)


def _flip(data: bytearray, at: int, random: Random) -> None:
    data[at] ^= 1 << random.randrange(8)


def _byte(data: bytearray, at: int, random: Random) -> None:
    data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))


def _number(data: bytearray, at: int, random: Random) -> None:
    width = random.choice((1, 2, 4, 8))
    value = random.choice(INTERESTING) & ((1 << 8 * width) - 1)
    data[at : at + width] = value.to_bytes(width, "little")


def _cut(data: bytearray, at: int, random: Random) -> None:
    del data[at:]


def _remove(data: bytearray, at: int, random: Random) -> None:
    del data[at : at + random.choice((1, 2, 4, 8, 40, 65_536))]


def _insert(data: bytearray, at: int, random: Random) -> None:
    data[at:at] = random.randbytes(random.choice((1, 2, 4, 8, 65_536)))


def _repeat(data: bytearray, at: int, random: Random) -> None:
    data[at:at] = data[at : at + random.choice((1, 4, 8, 64, 65_536))]


def _move(data: bytearray, at: int, random: Random) -> None:
    size = random.choice((1, 8, 64, 4096))
    part = bytes(data[at : at + size])
    del data[at : at + size]
    to = random.randrange(len(data) + 1)
    data[to:to] = part


def _overwrite(data: bytearray, at: int, random: Random) -> None:
    size = random.choice((8, 64, 4096))
    part = data[random.randrange(len(data)) :][:size]
    data[at : at + len(part)] = part


_CHANGES = (_flip, _flip, _byte, _number, _cut, _remove, _insert, _repeat, _move, _overwrite)
