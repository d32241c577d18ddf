"""Files on disk: mapped safely, named safely, written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from system_limits import (
    WINDOWS,
    needs_posix,
    needs_removal_while_open,
    needs_special_files,
    needs_symlinks,
)

from ctx_formats.atomic_write import create_sibling_file, publish, publish_new, write_file
from ctx_formats.errors import FormatError, Reason
from ctx_formats.mapped_file import FileStamp, MappedFile
from ctx_formats.safe_path import resolve_payload


def test_a_mapped_file_gives_its_bytes_and_never_writes_to_them(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"hello")
    with MappedFile(path) as mapped:
        assert bytes(mapped.view) == b"hello"
        assert mapped.stamp.size == 5
        mapped.view[0] = ord("J")
        assert bytes(mapped.view) == b"Jello"
    assert path.read_bytes() == b"hello"


@needs_removal_while_open
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


@needs_special_files
def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, text in (("fifo", "a FIFO"), (".", "a folder")):
        with pytest.raises(FormatError, match=text) as found:
            MappedFile(tmp_path / name)
        assert found.value.reason is Reason.UNSAFE_PATH
    with pytest.raises(FormatError, match="a character device"):
        MappedFile(tmp_path / "../../../../../../../dev/null")


@needs_symlinks
def test_a_symlink_is_followed_unless_the_caller_says_not_to(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    link = tmp_path / "link"
    link.symlink_to("f")
    with MappedFile(link) as mapped:
        assert bytes(mapped.view) == b"1"
    with pytest.raises(FormatError, match="a symlink, expected a regular file") as found:
        MappedFile(link, follow_symlink=False)
    assert found.value.reason is Reason.UNSAFE_PATH
    with MappedFile(tmp_path / "f", follow_symlink=False) as mapped:
        assert bytes(mapped.view) == b"1"


@needs_special_files
def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # socket paths are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        with pytest.raises(FormatError, match="a socket"):
            MappedFile(tmp_path / "s")


KERNEL_FILE = Path("/sys/kernel/uevent_seqnum")


@pytest.mark.skipif(not KERNEL_FILE.exists(), reason=f"no {KERNEL_FILE} on this system")
@needs_posix
def test_a_file_that_cannot_be_mapped_is_named() -> None:
    """sysfs announces 4096 bytes that nobody can map."""
    with pytest.raises(FormatError, match=r"cannot be mapped: .*expected 4096 bytes"):
        MappedFile(KERNEL_FILE)


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
        ("Z:\\abs", "Absolute path not allowed"),
        ("//host/share/x", "Absolute path not allowed"),
        ("a/../../x", "escapes the model's folder"),
        ("../model/x", "escapes the model's folder"),
        ("a/../../model/x", "escapes the model's folder"),
        ("NUL:", "device name"),
        ("con:x", "device name"),
        ("CONOUT$", "device name"),
        ("COM\xb9.txt", "device name"),
        ("a.bin:stream", "a colon"),
        ("a.bin::$DATA", "a colon"),
        ("sub:x", "a colon"),
        ("onnx::MatMul_7", "a colon"),
        ("a\\..\\..\\x", "escapes the model's folder"),
        ("aux.txt", "device name"),
        ("sub/LPT9", "device name"),
        ("x.", "ends in a space or dot"),
        ("sub./x", "ends in a space or dot"),
    ],
)
def test_a_name_that_may_lead_elsewhere_is_refused(tmp_path: Path, name: str, text: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "x").touch()
    with pytest.raises(FormatError, match=text) as found:
        resolve_payload(folder, name)
    assert found.value.reason is Reason.UNSAFE_PATH


@pytest.mark.skipif(os.name == "nt", reason="on Windows a colon leads to a stream of the file")
def test_weights_may_be_named_as_pytorch_names_them(tmp_path: Path) -> None:
    (tmp_path / "onnx::MatMul_7").write_bytes(b"1")
    found = resolve_payload(tmp_path, "onnx::MatMul_7", colons=True)
    assert Path(found).read_bytes() == b"1"
    with pytest.raises(FormatError, match="device name"):
        resolve_payload(tmp_path, "nul:x", colons=True)


def test_half_a_surrogate_pair_is_refused_with_a_text_that_can_be_printed(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as found:
        resolve_payload(tmp_path, "x\ud800")
    assert r"x\ud800" in str(found.value)
    assert str(found.value).encode("utf-8")


def test_a_file_has_one_stamp_by_name_and_opened(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"1")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    with path.open("rb") as file:
        assert FileStamp.of(path.stat()) == FileStamp.of(os.fstat(file.fileno()))


@needs_special_files
def test_only_regular_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for name in ("folder", "fifo", "link"):
        with pytest.raises(FormatError, match="is not a regular file") as found:
            resolve_payload(tmp_path, name)
        assert found.value.reason is Reason.UNSAFE_PATH


@needs_symlinks
def test_symlinks_in_a_loop_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("pool")
    (tmp_path / "pool").symlink_to("loop")
    for name in ("loop", "loop/x"):
        with pytest.raises(FormatError, match="loop") as found:
            resolve_payload(tmp_path, name)
        assert found.value.reason is Reason.UNSAFE_PATH


LONG_NAME = "does not exist" if WINDOWS else "File name too long"


@pytest.mark.parametrize(
    ("name", "text"),
    [("gone", "does not exist"), ("f/x", "does not exist"), ("x" * 300, LONG_NAME)],
)
def test_a_name_without_a_file_tells_where_it_was_looked_for(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(
        FormatError, match=re.escape(f"{text} (looked for {tmp_path.resolve()}")
    ) as found:
        resolve_payload(tmp_path, name)
    assert found.value.reason is Reason.MISSING_PAYLOAD
    assert found.value.expected == "a file next to the model"


@pytest.mark.parametrize(
    "name", ["data..bin", ".hidden", "a/../data..bin", "sub/deep/x", "./sub//deep/./x"]
)
def test_odd_names_inside_are_fine(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    for path in ("data..bin", ".hidden", "sub/deep/x"):
        (tmp_path / path).write_bytes(b"1")
    assert Path(resolve_payload(tmp_path, name)).read_bytes() == b"1"


@needs_symlinks
def test_symlinks_are_followed_only_inside(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside").write_bytes(b"1")
    (folder / "real").write_bytes(b"2")
    (folder / "good").symlink_to("real")
    (folder / "bad").symlink_to("../outside")
    (folder / "up").symlink_to("..")
    assert Path(resolve_payload(folder, "good")).read_bytes() == b"2"
    for name in ("bad", "up/outside"):
        with pytest.raises(FormatError, match="escapes"):
            resolve_payload(folder, name)


@needs_symlinks
def test_a_symlinked_model_is_tried_at_its_real_place(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "blobs" / "p.bin").write_bytes(b"1")
    (tmp_path / "blobs" / "m").touch()
    link = tmp_path / "snapshot" / "m.onnx"
    link.symlink_to("../blobs/m")
    found = resolve_payload(link.parent, "p.bin", model_path=link)
    assert found == str((tmp_path / "blobs" / "p.bin").resolve())
    with pytest.raises(FormatError, match="does not exist"):
        resolve_payload(link.parent, "q.bin", model_path=link)


@needs_symlinks
def test_a_hugging_face_cache_is_understood(tmp_path: Path) -> None:
    """Model and payload are symlinks into a folder of blobs that are named by their hashes."""
    (tmp_path / "blobs").mkdir()
    snapshot = tmp_path / "snapshots" / "rev"
    snapshot.mkdir(parents=True)
    for name, blob in (("m.onnx", "aaaa"), ("p.bin", "bbbb")):
        (tmp_path / "blobs" / blob).write_bytes(blob.encode())
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    (tmp_path / "secret").touch()
    (snapshot / "out").symlink_to("../../secret")
    found = resolve_payload(snapshot, "p.bin", model_path=snapshot / "m.onnx")
    assert Path(found).read_bytes() == b"bbbb"
    with pytest.raises(FormatError, match="escapes"):
        resolve_payload(snapshot, "out", model_path=snapshot / "m.onnx")
    with pytest.raises(FormatError, match="escapes"):
        resolve_payload(snapshot, "p.bin")


def test_writing_replaces_or_keeps(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_file(path, b"1", replace=False)
    with pytest.raises(FileExistsError):
        write_file(path, b"2", replace=False)
    assert path.read_bytes() == b"1"
    write_file(path, b"3", replace=True)
    assert path.read_bytes() == b"3"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@needs_removal_while_open
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
        with create_sibling_file(names[0]) as (file, temporary):
            file.write(b"1")
        assert publish_new(temporary, names).name == expected
    with create_sibling_file(names[0]) as (file, temporary):
        file.write(b"1")
    with pytest.raises(FileExistsError):
        publish_new(temporary, names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]


@needs_posix
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "f", b"1", replace=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_name_of_the_full_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)  # 254 bytes of 255
    write_file(path, b"1", replace=False)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_without_hard_links_a_name_is_claimed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT and some network shares have none."""

    def link(*args: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    path, other = tmp_path / "f", tmp_path / "g"
    write_file(path, b"1", replace=False)
    with pytest.raises(FileExistsError):
        write_file(path, b"2", replace=False)
    with create_sibling_file(path) as (file, temporary):
        file.write(b"3")
    assert publish_new(temporary, [path, other]) == other
    assert (path.read_bytes(), other.read_bytes()) == (b"1", b"3")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f", "g"]


def test_a_link_that_fails_for_another_reason_is_not_worked_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*args: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(OSError, match="Input/output error"):
        write_file(tmp_path / "f", b"1", replace=False)
    assert list(tmp_path.iterdir()) == []


@needs_posix
def test_a_disk_that_fills_up_leaves_nothing(tmp_path: Path) -> None:
    """A real write error of the kernel, here by a limit on the size of files."""
    script = f"""
import resource
from pathlib import Path
from ctx_formats.atomic_write import write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    write_file(Path({str(tmp_path / "f")!r}), bytes(1 << 20), replace=True)
except OSError as exc:
    raise SystemExit(7) from exc
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert done.returncode == 7, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), ValueError("x")])
def test_nothing_is_left_when_writing_fails(tmp_path: Path, error: BaseException) -> None:
    def write_half() -> None:
        with create_sibling_file(tmp_path / "f") as (file, _):
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), create_sibling_file(tmp_path / "no" / "f"):
        pass


def test_publishing_what_is_gone_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "gone", tmp_path / "f", replace=True)


@needs_posix
def test_a_writer_killed_at_any_point_leaves_the_old_file_whole(tmp_path: Path) -> None:
    """Kill -9 between the steps of writing: the name holds all of the old or all of the new."""
    path = tmp_path / "f"
    old, new = b"old" * 1000, b"new" * 1000
    for stop in ("begin", "half", "written", "published"):
        write_file(path, old, replace=True)
        script = f"""
import os, signal
from pathlib import Path
from ctx_formats.atomic_write import publish, create_sibling_file
def die(at):
    if at == {stop!r}:
        os.kill(os.getpid(), signal.SIGKILL)
path = Path({str(path)!r})
with create_sibling_file(path) as (file, temporary):
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


def test_pages_that_were_given_back_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "f"
    data = bytes(range(256)) * 100
    path.write_bytes(data)
    with MappedFile(path) as mapped:
        assert mapped.view == data
        for offset, size in ((0, len(data)), (5000, 9000), (10, 20)):
            mapped.drop_pages(offset, size)
            assert mapped.view == data


@pytest.mark.parametrize("linked", [False, True], ids=["itself", "a symlink to it"])
@pytest.mark.parametrize("replace", [False, True])
@needs_special_files
def test_a_fifo_is_not_replaced_by_a_file(tmp_path: Path, *, linked: bool, replace: bool) -> None:
    """As root, `-o /dev/null` made a file of /dev/null."""
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    path = link if linked else fifo
    before = identities_of(fifo, link)
    with pytest.raises(OSError, match="not a regular file and is not replaced"):
        write_file(path, b"mine", replace=replace)
    assert identities_of(fifo, link) == before
    assert sorted(tmp_path.iterdir()) == [fifo, link]


def identities_of(*paths: Path) -> list[tuple[int, ...]]:
    """What tells files apart; not the time of access, which following a symlink changes."""
    stats = [path.lstat() for path in paths]
    return [(stat.st_mode, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns) for stat in stats]
