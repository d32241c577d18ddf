"""Paths that are longer than Windows accepts without LongPathsEnabled."""

from __future__ import annotations

import os
from pathlib import Path

ON_WINDOWS = os.name == "nt"
LONGEST_FOLDER = 247
"""Characters of the longest folder that Windows creates by default: MAX_PATH less 12 for a file
name in it (8.3) and less the NUL ("Maximum Path Length Limitation", Microsoft Learn)."""
LONGEST_FILE = 259
"""Characters of the longest file path that Windows opens by default: MAX_PATH less the NUL."""
_VERBATIM = "\\\\?\\"
"""The prefix of paths that have no such limit."""


def explain_length(path: str | os.PathLike[str], longest: int = LONGEST_FILE) -> str:
    """A sentence about a path that Windows may have refused for its length; else "".

    Windows reports such a path as one that does not exist (ERROR_PATH_NOT_FOUND).
    """
    name = os.fspath(path)
    if not ON_WINDOWS or name.startswith(_VERBATIM):
        return ""
    length = len(str(Path(name).absolute()))
    if length <= longest:
        return ""
    return (
        f"The path has {length} characters, and Windows accepts {longest} unless LongPathsEnabled "
        r"is 1 under HKLM\SYSTEM\CurrentControlSet\Control\FileSystem. Set it, or use a folder "
        "with a shorter path"
    )
