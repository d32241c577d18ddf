"""Whether a folder can be written to by its user alone, so that what is in it is that user's."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path


def writable_by_others(folder: str | os.PathLike[str]) -> str:
    """Reason why others than this user and root can put files into `folder`; "" if they cannot.

    Each folder on the way is looked at, since who can rename one can put another in its place.
    The way ends at a folder of this user's that nobody else can enter. Access control lists count
    as far as the group's mode shows them.
    """
    if sys.platform == "win32":
        return "this system does not report who can write to a folder"
    real = Path(folder).resolve()
    user = os.getuid()
    for path in (*reversed(real.parents), real):
        try:
            status = path.stat()
        except OSError as exc:
            return f"{path} cannot be looked at: {exc.strerror}"
        if status.st_uid not in (0, user):
            return f"{path} belongs to user {status.st_uid}"
        if status.st_uid == user and not status.st_mode & (stat.S_IXGRP | stat.S_IXOTH):
            return ""
        shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        sticky = status.st_mode & stat.S_ISVTX and path != real
        if shared and not sticky:
            return f"others can write to {path}"
    return ""
