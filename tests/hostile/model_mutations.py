"""Damaged context models: protobuf fields taken away, repeated, moved, changed; or plain bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostile.byte_mutations import INTERESTING, mutated

from ctx_formats.wire import write_varint

if TYPE_CHECKING:
    from random import Random

Field = tuple[int, int, bytes]
"""Number, wire type, and content: a varint as its bytes, a message or text as its content."""

MESSAGES = {(7,), (7, 1), (7, 1, 5), (7, 11), (7, 12), (7, 11, 2), (7, 12, 2), (8,), (14,)}
"""Paths of field numbers that lead to messages worth looking into: graph, node, attribute,
inputs and outputs with their types, operator sets, metadata."""
LONG = 1 << 12


def damaged(data: bytes, random: Random) -> bytes:
    """A model that differs from `data` in a field, or in some bytes."""
    if random.random() < 0.3:
        return mutated(data, [(0, len(data)), (0, min(len(data), 3000))], random)
    changed = _mutate(data, (), random)
    return _mutate(changed, (), random) if random.random() < 0.25 else changed


def _mutate(data: bytes, path: tuple[int, ...], random: Random) -> bytes:
    """One change somewhere in a message: in it, or in a message inside it."""
    fields = parse(data)
    if not fields:
        return data
    inner = [i for i, (number, _, _) in enumerate(fields) if (*path, number) in MESSAGES]
    if inner and random.random() < 0.75:
        at = random.choice(inner)
        number, kind, content = fields[at]
        fields[at] = (number, kind, _mutate(content, (*path, number), random))
    else:
        random.choice(_CHANGES)(fields, random.randrange(len(fields)), random)
    return join(fields)


def parse(data: bytes) -> list[Field]:
    """The fields of a message; what follows the last whole one is left out."""
    fields: list[Field] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        start = at
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 2:
            size, start = _varint(data, at)
            at = start + size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            break
        if at > len(data):
            break
        fields.append((tag >> 3, kind, data[start:at]))
    return fields


def join(fields: list[Field]) -> bytes:
    """The message that `parse` took apart."""
    parts = []
    for number, kind, content in fields:
        size = write_varint(len(content)) if kind == 2 else b""
        parts.append(write_varint(number << 3 | kind) + size + content)
    return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            break
    return value, at


def _lose(fields: list[Field], at: int, random: Random) -> None:
    del fields[at]


def _repeat(fields: list[Field], at: int, random: Random) -> None:
    fields.insert(random.randrange(len(fields) + 1), fields[at])


def _swap(fields: list[Field], at: int, random: Random) -> None:
    other = random.randrange(len(fields))
    fields[at], fields[other] = fields[other], fields[at]


def _renumber(fields: list[Field], at: int, random: Random) -> None:
    _, kind, content = fields[at]
    fields[at] = (random.choice((1, 2, 3, 4, 5, 6, 7, 8, 20, 99)), kind, content)


def _exchange(fields: list[Field], at: int, random: Random) -> None:
    """The content of one field under the number of another."""
    number, _, _ = fields[at]
    _, kind, content = random.choice(fields)
    fields[at] = (number, kind, content)


def _value(fields: list[Field], at: int, random: Random) -> None:
    number, kind, content = fields[at]
    if kind == 0:
        fields[at] = (number, kind, write_varint(random.choice(INTERESTING)))
    elif kind == 2 and len(content) > LONG:
        fields[at] = (number, kind, mutated(content, [(0, 400), (0, len(content))], random))
    elif kind == 2:
        changed = mutated(content, [(0, len(content))], random) if content else b"x"
        fields[at] = (number, kind, random.choice((changed, b"", content * 2, random.randbytes(5))))


def _unknown(fields: list[Field], at: int, random: Random) -> None:
    fields.insert(at, (random.choice((15, 77, 1 << 20)), 2, random.randbytes(random.randrange(9))))


_CHANGES = (_lose, _repeat, _swap, _renumber, _exchange, _value, _value, _value, _unknown)
