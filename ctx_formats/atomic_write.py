"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from ctx_formats.removal import remove_file, replace_file
from ctx_formats.temporary_files import forget_unfinished, note_unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
"""Error numbers of `link` on file systems without hard links (FAT, some network shares)."""

_IN_USE = {5, 32, 1224}
"""Windows' ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION and ERROR_USER_MAPPED_FILE."""

_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES}
_NAME_BYTES = 100


@contextmanager
def create_sibling_file(path: Path, mode: int = 0o666) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file in the folder of `path`, fsynced at the end, removed if the body raises.

    Its mode is `mode`, less what the umask takes away.

    Yields:
        The open file (write and read back), and its temporary path for `publish`.

    Raises:
        OSError: The folder cannot be written to, or is full, or `path` is a device, FIFO or
            socket, which a file must not replace; nothing is left behind.
    """
    _require_replaceable(path)
    stem = os.fsencode(path.name)[:_NAME_BYTES].decode(errors="ignore")
    temporary = path.with_name(f".{stem}.{os.urandom(8).hex()}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, mode)
    except FileNotFoundError as exc:
        raise missing_folder_error(exc, temporary) from exc
    note_unfinished(temporary)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file, temporary
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        _discard(temporary)
        raise


def publish(temporary: Path, path: Path, *, replace: bool) -> None:
    """Give a finished file its name, in one step.

    Args:
        temporary: From `create_sibling_file`, closed.
        path: In the same folder.
        replace: Whether an existing file gives way, read-only or not. A process that has it open
            keeps the old bytes; on Windows it must have shared the deletion.

    Raises:
        FileExistsError: It exists and `replace` is false.
        PermissionError: On Windows, a process has the existing file open.
        OSError: The folder cannot be written to. The temporary file is gone in all cases.
    """
    if not replace:
        publish_new(temporary, [path])
        return
    try:
        replace_file(temporary, path)
    except BaseException as exc:
        _discard(temporary)
        if getattr(exc, "winerror", None) in _IN_USE and path.exists():
            raise PermissionError(
                errno.EACCES,
                "a process may have it open (close its sessions), or write to another name",
                str(path),
            ) from exc
        raise
    forget_unfinished(temporary)
    sync_folder(path.parent)


def missing_folder_error(exc: FileNotFoundError, temporary: Path) -> FileNotFoundError:
    """The error for a temporary path that cannot be created; names the folder if that is absent."""
    from ctx_formats.long_path import explain_length  # noqa: PLC0415 - lazy: rare

    long = explain_length(temporary)
    if not long and not temporary.parent.is_dir():
        return FileNotFoundError(exc.errno, "the folder does not exist", str(temporary.parent))
    return FileNotFoundError(exc.errno, long or exc.strerror, str(temporary))


def publish_new(temporary: Path, names: Sequence[Path]) -> Path:
    """Give a finished file the first of `names` that is free, and say which.

    Raises:
        FileExistsError: None of them is. The temporary file is gone in both cases.
    """
    try:
        for name in names[:-1]:
            with contextlib.suppress(FileExistsError):
                return _link_name(temporary, name)
        return _link_name(temporary, names[-1])
    finally:
        _discard(temporary)
        sync_folder(temporary.parent)


def write_file(path: Path, data: bytes, *, replace: bool) -> None:
    """Write and publish `data`."""
    with create_sibling_file(path) as (file, temporary):
        file.write(data)
    publish(temporary, path, replace=replace)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system allows it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as exc:
        if exc.errno not in _NO_FOLDER_SYNC:
            raise


def _require_replaceable(path: Path) -> None:
    """Refuse what is there and no file: `-o /dev/null` must not make a file of /dev/null."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # nothing is there; whatever else is wrong, opening the new file says
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file and is not replaced", str(path))


def _link_name(temporary: Path, name: Path) -> Path:
    """Give the file a name that no file has.

    Without hard links the name is claimed with an empty file first, which the file then
    replaces: still no other file is overwritten, but for a moment the name is an empty file.
    """
    try:
        os.link(temporary, name)
    except OSError as exc:
        if exc.errno not in _NO_HARD_LINKS:
            raise
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        try:
            temporary.replace(name)
        except BaseException:
            _discard(name)
            raise
    return name


def _discard(path: Path) -> None:
    """Remove a file on the way out of an error, which is not to be hidden by another."""
    with contextlib.suppress(OSError):
        remove_file(path)
    forget_unfinished(path)
