"""Maps that are copied when another process is about to write to their file (Linux leases)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctx_formats.copied_file import CopiedFile, open_file
from ctx_formats.mapped_file import MappedFile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's: fcntl(2)")
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
    assert leased.reopened_as
    write_elsewhere(path)
    assert not leased.is_detached


def test_a_forked_child_takes_leases_of_its_own(path: Path, leased: MappedFile) -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            with open_file(path, copy_limit=1) as file:
                write_elsewhere(path)
                code = 0 if file.view == DATA else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert leased.view == DATA
