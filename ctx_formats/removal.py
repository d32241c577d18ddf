"""Removes and replaces files under Windows' rules as well.

Windows refuses both for a file with the read-only attribute, and for one that somebody has mapped
or has opened without sharing its deletion.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


def remove_file(path: Path) -> None:
    """Remove a file, if it exists, whether or not it is read-only.

    Raises:
        OSError: The file cannot be removed; it has the mode that it had.
    """
    _without_read_only(path, lambda: path.unlink(missing_ok=True))


def remove_files(paths: Iterable[Path]) -> list[Path]:
    """Remove every file that can be removed, and return the paths of all.

    Raises:
        OSError: The first problem, after the other files were removed.
    """
    files, problem = list(paths), None
    for path in files:
        try:
            remove_file(path)
        except OSError as exc:
            problem = problem or exc
    if problem is not None:
        raise problem
    return files


def replace_file(source: Path, target: Path) -> None:
    """Give a file the name `target`; a file of that name gives way, read-only or not.

    Raises:
        OSError: As `Path.replace`; the file at `target` has the mode that it had.
    """
    _without_read_only(target, lambda: source.replace(target))


def _without_read_only(path: Path, action: Callable[[], object]) -> None:
    """Act, and where the file at `path` is read-only and that is refused, a second time."""
    try:
        action()
    except PermissionError:
        mode = _mode(path)
        if mode is None or mode & stat.S_IWRITE:
            raise
        path.chmod(mode | stat.S_IWRITE)
        try:
            action()
        except BaseException:
            path.chmod(mode)
            raise


def _mode(path: Path) -> int | None:
    """The mode of a file; None if there is no file."""
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except OSError:
        return None
