"""Files are removed and replaced where the system has Windows' rules, too."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.removal import remove_file, remove_files


def is_read_only(path: Path) -> bool:
    return path.exists() and not path.stat().st_mode & stat.S_IWRITE


@pytest.fixture
def windows_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing read-only is removed or replaced, as Windows has it (DeleteFile, MoveFileEx)."""
    unlink, replace = Path.unlink, Path.replace

    def refusing_unlink(self: Path, *, missing_ok: bool = False) -> None:
        if is_read_only(self):
            raise PermissionError(13, "Access is denied", str(self))
        unlink(self, missing_ok=missing_ok)

    def refusing_replace(self: Path, target: Path) -> Path:
        if is_read_only(target):
            raise PermissionError(13, "Access is denied", str(self), None, str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "unlink", refusing_unlink)
    monkeypatch.setattr(Path, "replace", refusing_replace)


def read_only(path: Path) -> Path:
    path.write_bytes(b"old")
    path.chmod(0o444)
    return path


@pytest.mark.usefixtures("windows_rules")
def test_a_read_only_file_is_removed(tmp_path: Path) -> None:
    path = read_only(tmp_path / "f")
    remove_file(path)
    assert not path.exists()
    remove_file(path)


@pytest.mark.usefixtures("windows_rules")
def test_a_read_only_file_is_replaced(tmp_path: Path) -> None:
    path = read_only(tmp_path / "f")
    with create_sibling_file(path) as (file, temporary):
        file.write(b"new")
    temporary.chmod(0o444)
    publish(temporary, path, replace=True)
    assert path.read_bytes() == b"new"
    assert is_read_only(path)


@pytest.mark.usefixtures("windows_rules")
def test_a_file_that_fails_to_be_written_leaves_nothing_read_only(tmp_path: Path) -> None:
    def fail(temporary: Path) -> None:
        temporary.chmod(0o444)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), create_sibling_file(tmp_path / "f") as (_, temporary):
        fail(temporary)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_stays_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = read_only(tmp_path / "f")

    def refuse(self: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(13, "a process has it open", str(self))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(PermissionError, match="a process has it open"):
        remove_file(path)
    assert is_read_only(path)


def test_a_file_that_stays_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.touch()
    unlink = Path.unlink

    def refuse_b(self: Path, *, missing_ok: bool = False) -> None:
        if self.name == "b":
            raise PermissionError(13, "a process has it open", str(self))
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse_b)
    with pytest.raises(PermissionError, match="a process has it open"):
        remove_files(paths)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_name_that_is_in_use_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")

    def refuse(self: Path, target: Path) -> Path:
        problem = PermissionError(13, "Sharing violation", str(self), None, str(target))
        problem.winerror = 32  # type: ignore[attr-defined,unused-ignore] # Windows' alone
        raise problem

    monkeypatch.setattr(Path, "replace", refuse)
    with create_sibling_file(path) as (file, temporary):
        file.write(b"new")
    with pytest.raises(PermissionError, match=r"may have it open \(close its sessions\)") as found:
        publish(temporary, path, replace=True)
    assert found.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path]
