"""Maps that are copied when another process is about to write to their file (Linux leases)."""

from __future__ import annotations

import gc
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctx_formats.copied_file import CopiedFile, open_file
from ctx_formats.mapped_file import MappedFile

if TYPE_CHECKING:
    from collections.abc import Callable

NO_LEASES = "leases are Linux's, and Windows has no fcntl"
fcntl = pytest.importorskip("fcntl", reason=NO_LEASES)
from ctx_formats.write_lease import WriteLease  # noqa: E402 - it imports fcntl

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason=NO_LEASES)
DESCRIPTORS = Path("/proc/self/fd")
DATA = bytes(range(251)) * 40_000
WRITER = """
import sys
with open(sys.argv[1], "r+b") as file:
    file.write(b"other")
    file.truncate(7)
"""


def write_elsewhere(path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITER, str(path)], check=True, timeout=40)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "payload.bin"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def leased(path: Path) -> MappedFile:
    file = open_file(path, copy_limit=1)
    assert isinstance(file, MappedFile)
    if file._lease is None:
        pytest.skip("this file system has no leases")
    return file


def test_a_writer_gets_its_way_and_the_map_keeps_its_bytes(path: Path, leased: MappedFile) -> None:
    part = leased.view[100:200]
    assert not leased.is_detached
    write_elsewhere(path)
    assert path.read_bytes() == b"other" + DATA[5:7]
    assert leased.is_detached
    assert leased.view == DATA
    leased.require_unchanged()
    leased.drop_pages(0, len(DATA))  # would bring back zeros
    assert leased.view == DATA
    leased.close()
    assert part == DATA[100:200]


def test_bytes_outlive_the_file_that_was_closed(path: Path, leased: MappedFile) -> None:
    view = leased.view
    leased.close()
    write_elsewhere(path)
    assert view == DATA


def test_a_map_that_has_ended_holds_nobody_up(path: Path, leased: MappedFile) -> None:
    before = len(list(DESCRIPTORS.iterdir()))
    for _ in range(20):
        with open_file(path, copy_limit=1) as file:
            assert file.view[:3] == DATA[:3]
        del file
    assert len(list(DESCRIPTORS.iterdir())) == before
    leased.close()
    # O_NONBLOCK: an error where a lease is held.
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def test_a_file_that_is_open_for_writing_is_copied(path: Path) -> None:
    with path.open("r+b"):
        assert isinstance(open_file(path, copy_limit=1), CopiedFile)


def test_a_path_that_was_handed_out_is_compared_all_the_same(
    path: Path, leased: MappedFile
) -> None:
    """Whoever maps the file by `reopened_as` sees what is written to it."""
    assert leased.reopen_path
    write_elsewhere(path)
    assert not leased.is_detached


class Owner:
    """As an SDK's model, which ends with its map of a file."""

    def __init__(self, path: str) -> None:
        with Path(path).open("rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def test_a_map_that_an_sdk_makes_is_copied_too(path: Path, leased: MappedFile) -> None:
    owners = []
    for _ in range(2):
        with leased.lend_path() as lent:
            lent.owner = Owner(lent.path)
        owners.append(lent.owner)
    write_elsewhere(path)
    assert leased.is_detached
    leased.require_unchanged()
    for owner in owners:
        assert owner.memory[:] == DATA


def test_what_took_the_place_of_an_sdks_map_is_left_alone(path: Path, leased: MappedFile) -> None:
    with leased.lend_path() as lent:
        lent.owner = Owner(lent.path)
    del lent
    gc.collect()
    others = [mmap.mmap(-1, len(DATA)) for _ in range(20)]  # somewhere the map was
    for other in others:
        other.write(b"mine")
    write_elsewhere(path)
    assert leased.is_detached
    assert all(other[:4] == b"mine" for other in others)


def test_a_writer_waits_while_a_path_is_lent(path: Path, leased: MappedFile) -> None:
    lease = leased._lease
    assert isinstance(lease, WriteLease)
    writer = threading.Thread(target=write_elsewhere, args=(path,))
    with leased.lend_path() as lent:
        writer.start()
        while fcntl.fcntl(lease.descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
            time.sleep(0.001)
        owner = lent.owner = Owner(lent.path)
        assert owner.memory[:] == DATA
        assert lease.is_held
    writer.join()
    assert path.read_bytes()[:5] == b"other"
    assert owner.memory[:] == DATA
    assert leased.is_detached


def test_after_a_copy_a_sealed_file_in_memory_is_lent(path: Path, leased: MappedFile) -> None:
    write_elsewhere(path)
    assert leased.is_detached
    with leased.lend_path() as lent:
        assert Path(lent.path).read_bytes() == DATA
        with pytest.raises(PermissionError):
            os.truncate(lent.path, 0)


@pytest.mark.parametrize("is_mapped", [True, False])
def test_a_path_whose_borrower_has_no_map_is_compared(
    path: Path, leased: MappedFile, *, is_mapped: bool
) -> None:
    with leased.lend_path() as lent:
        owner = Owner(lent.path) if is_mapped else Owner(str(Path(sys.executable).resolve()))
        lent.owner = None if is_mapped else owner
    write_elsewhere(path)
    assert not leased.is_detached


def forked(work: Callable[[], bool]) -> int:
    """The status with which a forked child ends: 0 where `work` is true; a hang is ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(60)
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_takes_leases_of_its_own(path: Path, leased: MappedFile) -> None:
    def leases() -> bool:
        with open_file(path, copy_limit=1) as file:
            write_elsewhere(path)
            return file.view == DATA

    assert forked(leases) == 0
    assert leased.view == DATA


def test_a_child_that_is_forked_during_a_copy_waits_for_nobody(
    tmp_path: Path, path: Path, leased: MappedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that copies, and holds the lock for as long, does not exist in the child."""
    begun, go_on = threading.Event(), threading.Event()
    copy = WriteLease.copy

    def copy_slowly(lease: WriteLease) -> None:
        copy(lease)
        begun.set()
        go_on.wait()

    monkeypatch.setattr(WriteLease, "copy", copy_slowly)
    other = tmp_path / "other.bin"
    other.write_bytes(DATA)
    writer = threading.Thread(target=write_elsewhere, args=(path,))
    writer.start()
    begun.wait()

    def use_and_let_go() -> bool:
        nonlocal leased
        leased.drop_pages(0, len(DATA))  # the copy is this child's, too
        same = leased.view == DATA and not leased.is_detached
        leased.close()
        leased = open_file(other, copy_limit=1)  # type: ignore[assignment] # a large file is mapped
        gc.collect()
        monkeypatch.undo()
        write_elsewhere(other)
        return same and leased.is_detached and leased.view == DATA

    status = forked(use_and_let_go)
    go_on.set()
    writer.join()
    assert status == 0
    assert leased.is_detached
    assert leased.view == DATA


def test_children_that_are_forked_while_files_are_copied_go_on(tmp_path: Path) -> None:
    """At whatever point of a copy it is; each sees one version or the beginning of the other."""
    path = tmp_path / "large.bin"
    for _ in range(5):
        path.write_bytes(DATA * 4)
        file = open_file(path, copy_limit=1)
        if not isinstance(file, MappedFile) or file._lease is None:
            pytest.skip("this file system has no leases")

        def read_and_let_go(file: MappedFile = file) -> bool:
            file.drop_pages(0, 1 << 20)
            first = bytes(file.view[:5])
            file.close()
            gc.collect()
            return first in (b"other", DATA[:5])

        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
        while not file.is_detached:
            assert forked(read_and_let_go) == 0
        assert writer.wait() == 0
        assert file.view == DATA * 4
        del read_and_let_go
        file.close()


def test_systems_without_leases_do_not_import_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has neither fcntl nor SIGURG."""
    monkeypatch.delitem(sys.modules, "ctx_formats.write_lease")
    for system in ("win32", "darwin"):
        monkeypatch.setattr(sys, "platform", system)
        with MappedFile(path, keep_open=True) as file:
            file.copy_before_writes()
            assert file._lease is None
    assert "ctx_formats.write_lease" not in sys.modules
