"""Bytes that no other process changes: copies of files, and maps of files that nobody writes to."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from system_limits import WINDOWS, needs_change_time, needs_posix, needs_removal_while_open

from ctx_formats import stamped_file
from ctx_formats.copied_file import ATTEMPTS, CopiedFile, open_file
from ctx_formats.errors import FormatError, Reason
from ctx_formats.mapped_file import MappedFile
from ctx_formats.stamped_file import StampedFile

if TYPE_CHECKING:
    from collections.abc import Callable

OLD, NEW = b"old " * 5000, b"new " * 5000
KERNEL_FILE = Path("/sys/kernel/uevent_seqnum")


def written(folder: Path, *, seconds_old: int = 0) -> Path:
    path = folder / "f"
    path.write_bytes(OLD)
    if seconds_old:
        then = time.time() - seconds_old
        os.utime(path, (then, then))
    return path


def overwrite(path: Path, content: bytes = NEW) -> None:
    with path.open("r+b") as file:
        file.write(content)


def replace(path: Path) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(NEW)
    beside.replace(path)


def open_descriptors() -> int:
    """How many, where the system tells."""
    folder = Path("/proc/self/fd")
    told = folder.exists() and not WINDOWS  # under Wine it lists the server's, too
    return len(list(folder.iterdir())) if told else 0


def happens_while_copying(
    monkeypatch: pytest.MonkeyPatch, what: Callable[[], object], *, times: int = 1
) -> list[None]:
    """Let `what` happen after the bytes of each of the first `times` attempts were copied."""
    read_into = StampedFile.read_into
    happened: list[None] = []

    def slowly(file: StampedFile, target: memoryview, offset: int) -> None:
        read_into(file, target, offset)
        if len(happened) < times:
            happened.append(None)
            what()

    monkeypatch.setattr(StampedFile, "read_into", slowly)
    return happened


def test_a_copy_keeps_its_bytes_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    with CopiedFile(path) as copied:
        overwrite(path)
        assert bytes(copied.view) == OLD
        os.truncate(path, 0)
        assert bytes(copied.view) == OLD
        path.unlink()
        assert bytes(copied.view) == OLD


def test_what_is_written_to_a_copy_stays_there(tmp_path: Path) -> None:
    path = written(tmp_path)
    with CopiedFile(path) as copied:
        copied.view[0] = ord("b")
        assert bytes(copied.view[:3]) == b"bld"
        part = copied.view[1:3]
    assert path.read_bytes() == OLD
    assert bytes(part) == b"ld", "a view keeps the memory"


def test_pages_of_a_copy_are_never_dropped(tmp_path: Path) -> None:
    with CopiedFile(written(tmp_path)) as copied:
        copied.drop_pages(0, len(OLD))
        assert bytes(copied.view) == OLD


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memory files on this system")
def test_the_path_of_a_copy_holds_the_same_bytes_and_cannot_be_written_to(tmp_path: Path) -> None:
    path = written(tmp_path)
    with CopiedFile(path) as copied:
        overwrite(path)
        same = copied.reopen_path
        assert Path(same).read_bytes() == OLD
        descriptor = os.open(same, os.O_RDWR)
        try:
            with pytest.raises(PermissionError):
                os.pwrite(descriptor, b"1", 0)
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, 1)
        finally:
            os.close(descriptor)


def test_an_empty_file_is_an_empty_view(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with CopiedFile(tmp_path / "f") as copied:
        assert len(copied.view) == 0


def test_a_file_that_changes_while_it_is_copied_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, seconds_old=9)
    happens_while_copying(monkeypatch, lambda: overwrite(path))
    with CopiedFile(path) as copied:
        assert bytes(copied.view) == NEW


def test_a_file_that_grows_while_it_is_copied_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    happens_while_copying(monkeypatch, lambda: overwrite(path, NEW + NEW))
    with CopiedFile(path) as copied:
        assert bytes(copied.view) == NEW + NEW
        assert copied.stamp.size == 2 * len(NEW)


def test_a_file_that_shrinks_before_it_is_copied_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    read_into = StampedFile.read_into

    def late(file: StampedFile, target: memoryview, offset: int) -> None:
        if len(target) > 40:
            os.truncate(path, 40)
        read_into(file, target, offset)

    monkeypatch.setattr(StampedFile, "read_into", late)
    with CopiedFile(path) as copied:
        assert bytes(copied.view) == OLD[:40]


def test_a_file_that_keeps_changing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    happened = happens_while_copying(
        monkeypatch, lambda: overwrite(path, os.urandom(9)), times=10 * ATTEMPTS
    )
    with pytest.raises(FormatError, match="changed while it was read") as found:
        CopiedFile(path)
    assert found.value.reason is Reason.INTEGRITY
    assert len(happened) == ATTEMPTS


@needs_change_time
def test_a_change_whose_mtime_is_set_back_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, seconds_old=9)
    before = path.stat()

    def secretly() -> None:
        overwrite(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    happens_while_copying(monkeypatch, secretly)
    with CopiedFile(path) as copied:
        assert bytes(copied.view) == NEW


@needs_removal_while_open
def test_a_file_that_is_replaced_by_rename_meanwhile_is_copied_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    happened = happens_while_copying(monkeypatch, lambda: replace(path), times=99)
    with CopiedFile(path) as copied:
        assert bytes(copied.view) == OLD
    assert len(happened) == 1, "the old file is complete: nothing is read twice"


@pytest.mark.skipif(not KERNEL_FILE.exists(), reason=f"no {KERNEL_FILE} on this system")
def test_a_file_that_has_fewer_bytes_than_it_says_is_refused() -> None:
    with pytest.raises(FormatError, match="changed while it was read"):
        CopiedFile(KERNEL_FILE)


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = written(tmp_path)
    before = open_descriptors()
    monkeypatch.setattr(stamped_file, "_read_at", failing)
    with pytest.raises(FormatError, match=r"cannot be read: .*, expected a readable file"):
        CopiedFile(path)
    assert open_descriptors() == before


@needs_posix
def test_a_copy_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = open_descriptors()
    with CopiedFile(written(tmp_path)) as copied:
        assert open_descriptors() == before
        assert Path(copied.reopen_path).read_bytes() == OLD
    assert open_descriptors() == before


def test_small_files_are_copied_and_large_ones_mapped(tmp_path: Path) -> None:
    path = written(tmp_path)
    for limit, kind in ((len(OLD), CopiedFile), (len(OLD) - 1, MappedFile), (0, MappedFile)):
        with open_file(path, copy_limit=limit) as opened:
            assert type(opened) is kind
            assert bytes(opened.view) == OLD
    with pytest.raises(FormatError, match="no such file"):
        open_file(tmp_path / "gone", copy_limit=0)
    with pytest.raises(FormatError, match="no NUL"):
        open_file("a\0b")


@needs_removal_while_open
@pytest.mark.parametrize("change", ["overwrite", "truncate", "grow", "touch"])
def test_a_mapped_file_tells_that_it_was_changed(tmp_path: Path, change: str) -> None:
    path = written(tmp_path, seconds_old=9)
    with MappedFile(path, keep_open=True) as mapped:
        mapped.require_unchanged()
        if change == "overwrite":
            overwrite(path)
        elif change == "touch":
            os.utime(path)
        else:
            os.truncate(path, 40 if change == "truncate" else 2 * len(OLD))
        with pytest.raises(FormatError, match=r"changed while it was in use.*rename") as found:
            mapped.require_unchanged()
        assert found.value.reason is Reason.INTEGRITY


@needs_removal_while_open
def test_a_mapped_file_that_is_replaced_or_removed_is_unchanged(tmp_path: Path) -> None:
    path = written(tmp_path, seconds_old=9)
    with MappedFile(path, keep_open=True) as mapped:
        replace(path)
        mapped.require_unchanged()
        path.unlink()
        mapped.require_unchanged()
        assert bytes(mapped.view) == OLD


def test_a_copied_file_may_change(tmp_path: Path) -> None:
    path = written(tmp_path)
    with CopiedFile(path) as copied:
        overwrite(path)
        copied.require_unchanged()
