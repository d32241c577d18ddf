"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@contextmanager
def written_beside(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file in the folder of `path`, fsynced at the end, removed unless published.

    Yields:
        The open file (write and read back), and its temporary path for `publish`.

    Raises:
        OSError: The folder cannot be written to, or is full; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file, temporary
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


def publish(temporary: Path, path: Path, *, replace: bool) -> None:
    """Give a finished file its name, in one step.

    Args:
        temporary: From `written_beside`, closed.
        path: In the same folder.
        replace: Whether an existing file gives way. Whoever has it open keeps the old bytes.

    Raises:
        FileExistsError: It exists and `replace` is false.
        OSError: The folder cannot be written to. The temporary file is gone in both cases.
    """
    try:
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)
            temporary.unlink()
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def publish_new(temporary: Path, names: Sequence[Path]) -> Path:
    """Give a finished file the first of `names` that is free, and say which.

    Raises:
        FileExistsError: None of them is. The temporary file is gone in both cases.
    """
    try:
        for name in names[:-1]:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, name)
                return name
        os.link(temporary, names[-1])
        return names[-1]
    finally:
        temporary.unlink()
        sync_folder(temporary.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system allows it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes, *, replace: bool) -> None:
    """Write and publish `data`."""
    with written_beside(path) as (file, temporary):
        file.write(data)
    publish(temporary, path, replace=replace)
