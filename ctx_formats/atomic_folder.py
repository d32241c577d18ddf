"""Folders that appear whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import missing_folder_error, sync_folder
from ctx_formats.temporary_files import forget_unfinished, note_unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
"""Errors of renameat2 on kernels and file systems that cannot exchange two names."""


@contextmanager
def replace_folder(target: Path, *, replace: bool) -> Iterator[Path]:
    """A new folder that gets the name `target` when the body has filled it.

    Everything in it is on the disk before it gets its name. On Linux an existing folder gives way
    in one step; elsewhere there is a moment in which neither has the name.

    Args:
        target: Its parent must exist.
        replace: Whether an existing folder gives way; it is removed then.

    Yields:
        The folder under its temporary name, next to `target`.

    Raises:
        FileExistsError: `target` exists, and `replace` is false or it is not a folder.
        OSError: The parent cannot be written to. The temporary folder is gone in all cases.
    """
    _require_free(target, replace=replace)
    stem = os.fsencode(target.name)[:100].decode(errors="ignore")
    temporary = target.with_name(f".{stem}.{os.urandom(8).hex()}.tmp")
    try:
        temporary.mkdir()
    except FileNotFoundError as exc:
        raise missing_folder_error(exc, temporary) from exc
    note_unfinished(temporary)
    try:
        yield temporary
        _sync_all(temporary)
        _require_free(target, replace=replace)
        _give_name(temporary, target)
    finally:
        if temporary.exists():  # after an error, or the folder that gave way
            shutil.rmtree(temporary, ignore_errors=True)
        forget_unfinished(temporary)


def _require_free(target: Path, *, replace: bool) -> None:
    there = target.exists() or target.is_symlink()
    if there and not (replace and target.is_dir() and not target.is_symlink()):
        raise FileExistsError(errno.EEXIST, "it exists already", str(target))


def _give_name(temporary: Path, target: Path) -> None:
    if not target.exists():
        temporary.rename(target)
    elif not _exchange(temporary, target):
        aside = temporary.with_name(f"{temporary.name}.old")
        note_unfinished(aside)
        target.rename(aside)
        try:
            temporary.rename(target)
        except BaseException:
            aside.rename(target)
            raise
        shutil.rmtree(aside, ignore_errors=True)
        forget_unfinished(aside)
    sync_folder(target.parent)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step; False where the system cannot.

    Raises:
        OSError: It can, and something else is wrong.
    """
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    try:
        rename = library.renameat2
    except AttributeError:  # glibc before 2.28
        return False
    paths = os.fsencode(first), os.fsencode(second)
    if not rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(_RENAME_EXCHANGE)):
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(second))


def _sync_all(folder: Path) -> None:
    """Write all files and names below a folder to the disk."""
    for path, _, names in os.walk(folder):
        for name in names:
            # Windows' fsync wants a descriptor that may write.
            descriptor = os.open(Path(path, name), os.O_RDWR | getattr(os, "O_BINARY", 0))
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(path))
