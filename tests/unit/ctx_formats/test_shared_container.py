"""Containers that several models write together."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pytest
from system_limits import needs_reading_what_is_mapped

from ctx_formats.container import ALIGNMENT
from ctx_formats.container_reader import read_container
from ctx_formats.errors import FormatError
from ctx_formats.shared_container import HEAD_SIZE, NoRoomError, SharedContainerWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BIG = random.Random(1).randbytes(100_000)
OTHER = random.Random(2).randbytes(70_000)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[BinaryIO]:
    with (tmp_path / "shared.bin").open("w+b") as opened:
        yield opened


def writes(data: bytes) -> Callable[[BinaryIO], bool]:
    return lambda out: bool(out.write(data))


def with_weights(
    writer: SharedContainerWriter, offsets: list[int], *parts: bytes
) -> Callable[[BinaryIO], bool]:
    def produce(out: BinaryIO) -> bool:
        offsets.extend(writer.add_weights(memoryview(part)) for part in parts)
        return bool(out.write(b"refers to weights"))

    return produce


def content(file: BinaryIO) -> memoryview:
    file.seek(0)
    return memoryview(file.read())


def two_models(file: BinaryIO) -> list[int]:
    """The first brings BIG; the second has BIG too, and brings OTHER."""
    writer = SharedContainerWriter(file, Path(file.name))
    offsets: list[int] = []
    assert writer.add_payload("a", with_weights(writer, offsets, BIG))
    assert writer.add_payload("b", with_weights(writer, offsets, BIG, OTHER))
    assert writer.add_payload("plain", writes(b"p"))
    writer.finish("tests")
    return offsets


def test_equal_weights_are_stored_once_and_found_by_their_offsets(file: BinaryIO) -> None:
    first, again, other = two_models(file)
    data = content(file)
    assert first == again
    assert (data[first : first + len(BIG)], data[other : other + len(OTHER)]) == (BIG, OTHER)
    found = read_container(data)
    assert {name: entry.weights for name, entry in found.entries.items()} == {
        "a": ("0",),
        "b": ("0", "1"),
        "plain": (),
    }
    assert found.read_payload("b") == b"refers to weights"
    for run in found.weights:
        found.verify_weights(run)
    assert found.weights_digest("a") != found.weights_digest("b")
    assert found.weights_digest("plain") == ""
    assert len(data) < HEAD_SIZE + len(BIG) + len(OTHER) + 6 * ALIGNMENT


def test_a_full_index_is_told_when_the_payload_is_added(file: BinaryIO) -> None:
    """Not at the end, when everything has been compiled; what was added before stays good."""
    writer = SharedContainerWriter(file, Path(file.name))
    names = [f"{i:04}_{'n' * 4000}" for i in range(100)]
    start = writer.mark()
    writer.add_payload(names[0], writes(b"p"))
    writer.rewind(start)
    with pytest.raises(NoRoomError, match=f"no room for '{names[63][:80]}'"):  # noqa: PT012 - the first that fails
        for name in names:
            writer.add_payload(name, writes(b"p"))
    assert len(writer.names) == 63
    writer.finish("tests")
    assert list(read_container(content(file)).entries) == names[:63]


@needs_reading_what_is_mapped
def test_what_is_added_can_be_seen_before_the_container_is_finished(file: BinaryIO) -> None:
    writer = SharedContainerWriter(file, Path(file.name))
    at = writer.add_weights(memoryview(BIG))
    assert writer.view()[at : at + len(BIG)] == BIG
    assert Path(writer.path).read_bytes()[at : at + len(BIG)] == BIG


def test_a_payload_that_is_not_to_be_takes_its_weights_along(file: BinaryIO) -> None:
    writer = SharedContainerWriter(file, Path(file.name))
    offsets: list[int] = []
    writer.add_payload("a", with_weights(writer, offsets, BIG))
    before = writer.mark()

    def declines(out: BinaryIO) -> bool:
        writer.add_weights(memoryview(OTHER))
        out.write(b"no")
        return False

    assert writer.add_payload("b", declines) is None
    assert writer.mark() == before
    writer.add_payload("b", with_weights(writer, offsets, OTHER))
    writer.finish("tests")
    found = read_container(content(file))
    assert offsets[1] == before.end
    for run in found.weights:
        found.verify_weights(run)


def test_a_model_that_failed_leaves_nothing(file: BinaryIO) -> None:
    writer = SharedContainerWriter(file, Path(file.name))
    writer.add_payload("a", writes(b"1"))
    before = writer.mark()
    writer.add_payload("b", with_weights(writer, [], OTHER))
    writer.rewind(before)
    writer.finish("tests")
    found = read_container(content(file))
    assert (list(found.entries), dict(found.weights)) == (["a"], {})


def test_a_name_is_given_once(file: BinaryIO) -> None:
    writer = SharedContainerWriter(file, Path(file.name))
    writer.add_payload("a", writes(b"1"))
    with pytest.raises(ValueError, match="two payloads have one name: a"):
        writer.add_payload("a", writes(b"2"))


def test_an_empty_one_is_not_written(file: BinaryIO) -> None:
    with pytest.raises(ValueError, match="at least one payload"):
        SharedContainerWriter(file, Path(file.name)).finish("tests")


def test_damaged_weights_are_found(file: BinaryIO) -> None:
    first, *_ = two_models(file)
    data = bytearray(content(file))
    data[first + 5] ^= 1
    found = read_container(memoryview(data))
    with pytest.raises(FormatError, match="weights '0'") as refused:
        found.verify_weights("0")
    assert refused.value.reason == "integrity"


def test_every_damaged_byte_outside_payloads_and_weights_is_found(file: BinaryIO) -> None:
    """All of the index, and samples of the padding."""
    two_models(file)
    data = bytearray(content(file))
    whole = read_container(memoryview(bytes(data)))
    inside = [*whole.entries.values(), *whole.weights.values()]
    chosen = [*range(1200), *random.Random(3).sample(range(len(data)), 400)]
    for at in chosen:
        if any(e.offset <= at < e.offset + e.size for e in inside):
            continue
        data[at] ^= 0xFF
        with pytest.raises(FormatError):
            read_container(memoryview(data))
        data[at] ^= 0xFF


@pytest.mark.parametrize("cut", [1, ALIGNMENT, 5 * ALIGNMENT])
def test_a_truncated_one_is_refused(file: BinaryIO, cut: int) -> None:
    two_models(file)
    with pytest.raises(FormatError):
        read_container(content(file)[:-cut])
