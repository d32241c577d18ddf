"""Files on disk: mapped safely, named safely, written whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ctx_formats.atomic_write import publish, publish_new, write_file, written_beside
from ctx_formats.errors import FormatError, Reason
from ctx_formats.mapped_file import MappedFile
from ctx_formats.safe_path import resolve_payload

if TYPE_CHECKING:
    from pathlib import Path


def test_a_mapped_file_gives_its_bytes_and_never_writes_to_them(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"hello")
    with MappedFile(path) as mapped:
        assert bytes(mapped.view) == b"hello"
        assert mapped.stamp.size == 5
        mapped.view[0] = ord("J")
        assert bytes(mapped.view) == b"Jello"
    assert path.read_bytes() == b"hello"


def test_a_view_outlives_the_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"hello")
    mapped = MappedFile(path)
    part = mapped.view[1:3]
    mapped.close()
    path.unlink()
    assert bytes(part) == b"el"
    assert len(mapped.view) == 0


def test_an_empty_file_is_an_empty_view(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with MappedFile(tmp_path / "f") as mapped:
        assert len(mapped.view) == 0


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, text in (("fifo", "a FIFO"), (".", "a folder")):
        with pytest.raises(FormatError, match=text) as found:
            MappedFile(tmp_path / name)
        assert found.value.reason is Reason.UNSAFE_PATH
    with pytest.raises(FormatError, match="a character device"):
        MappedFile(tmp_path / "../../../../../../../dev/null")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file") as found:
        MappedFile(tmp_path / "gone")
    assert found.value.reason is Reason.MISSING_PAYLOAD
    with pytest.raises(FormatError, match="no NUL"):
        MappedFile(tmp_path / "a\0b")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "Empty external data path not allowed"),
        ("x" * 5000, "longer than 4096"),
        ("*/_ORT_MEM_ADDR_/*", "In-memory external data reference tag"),
        ("/abs", "Absolute path not allowed"),
        ("\\abs", "Absolute path not allowed"),
        ("c:rel", "Absolute path not allowed"),
        ("//host/share/x", "Absolute path not allowed"),
        ("a/../../x", "escapes the model's folder"),
        ("a\\..\\..\\x", "escapes the model's folder"),
        ("aux.txt", "device name"),
        ("sub/LPT9", "device name"),
        ("x.", "ends in a space or dot"),
        ("sub./x", "ends in a space or dot"),
    ],
)
def test_a_name_that_may_lead_elsewhere_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(FormatError, match=text) as found:
        resolve_payload(tmp_path, name)
    assert found.value.reason is Reason.UNSAFE_PATH


@pytest.mark.parametrize("name", ["data..bin", ".hidden", "a/../data..bin", "sub/deep/x"])
def test_odd_names_inside_are_fine(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    for path in ("data..bin", ".hidden", "sub/deep/x"):
        (tmp_path / path).write_bytes(b"1")
    assert resolve_payload(tmp_path, name).read_bytes() == b"1"


def test_symlinks_are_followed_only_inside(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside").write_bytes(b"1")
    (folder / "real").write_bytes(b"2")
    (folder / "good").symlink_to("real")
    (folder / "bad").symlink_to("../outside")
    (folder / "up").symlink_to("..")
    assert resolve_payload(folder, "good").read_bytes() == b"2"
    for name in ("bad", "up/outside"):
        with pytest.raises(FormatError, match="escapes"):
            resolve_payload(folder, name)


def test_a_symlinked_model_is_tried_at_its_real_place(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "blobs" / "p.bin").write_bytes(b"1")
    (tmp_path / "blobs" / "m").touch()
    link = tmp_path / "snapshot" / "m.onnx"
    link.symlink_to("../blobs/m")
    found = resolve_payload(link.parent, "p.bin", model_path=link)
    assert found == (tmp_path / "blobs" / "p.bin").resolve()
    with pytest.raises(FormatError, match="is not there"):
        resolve_payload(link.parent, "q.bin", model_path=link)


def test_writing_replaces_or_keeps(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_file(path, b"1", replace=False)
    with pytest.raises(FileExistsError):
        write_file(path, b"2", replace=False)
    assert path.read_bytes() == b"1"
    write_file(path, b"3", replace=True)
    assert path.read_bytes() == b"3"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_whoever_has_a_replaced_file_mapped_keeps_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_file(path, b"old", replace=False)
    with MappedFile(path) as mapped:
        write_file(path, b"new content", replace=True)
        assert bytes(mapped.view) == b"old"


def test_the_first_free_name_is_taken(tmp_path: Path) -> None:
    names = [tmp_path / name for name in "abc"]
    names[0].touch()
    for expected in ("b", "c"):
        with written_beside(names[0]) as (file, temporary):
            file.write(b"1")
        assert publish_new(temporary, names).name == expected
    with written_beside(names[0]) as (file, temporary):
        file.write(b"1")
    with pytest.raises(FileExistsError):
        publish_new(temporary, names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), ValueError("x")])
def test_nothing_is_left_when_writing_fails(tmp_path: Path, error: BaseException) -> None:
    def write_half() -> None:
        with written_beside(tmp_path / "f") as (file, _):
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), written_beside(tmp_path / "no" / "f"):
        pass


def test_publishing_what_is_gone_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "gone", tmp_path / "f", replace=True)


def test_a_writer_killed_at_any_point_leaves_the_old_file_whole(tmp_path: Path) -> None:
    """Kill -9 between the steps of writing: the name holds all of the old or all of the new."""
    path = tmp_path / "f"
    old, new = b"old" * 1000, b"new" * 1000
    for stop in ("begin", "half", "written", "published"):
        write_file(path, old, replace=True)
        script = f"""
import os, signal
from pathlib import Path
from ctx_formats.atomic_write import publish, written_beside
def die(at):
    if at == {stop!r}:
        os.kill(os.getpid(), signal.SIGKILL)
path = Path({str(path)!r})
with written_beside(path) as (file, temporary):
    die("begin")
    file.write({new[:1500]!r})
    file.flush()
    die("half")
    file.write({new[1500:]!r})
die("written")
publish(temporary, path, replace=True)
die("published")
"""
        done = subprocess.run([sys.executable, "-c", script], check=False)
        assert done.returncode == -signal.SIGKILL
        assert path.read_bytes() == (new if stop == "published" else old)
