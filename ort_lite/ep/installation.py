"""What is installed, read from files only: texts that change when a driver or an SDK does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def stamp_files(paths: Iterable[str]) -> str:
    """Path, size and time of change of each file, of links those that they lead to.

    A folder stands for the files in it; what is not there is left out.
    """
    stamps: list[str] = []
    for path in paths:
        try:
            names = sorted(os.listdir(path)) if os.path.isdir(path) else [""]
            for name in names:
                file = os.path.join(path, name) if name else path
                status = os.stat(file)
                stamps.append(f"{file} {status.st_size} {status.st_mtime_ns}")
        except OSError:
            continue
    return ";".join(stamps)


def pick_variables(environment: Mapping[str, str], prefixes: tuple[str, ...]) -> str:
    """The environment variables whose names begin with one of `prefixes`."""
    return ";".join(
        f"{name}={value}"
        for name, value in sorted(environment.items())
        if name.startswith(prefixes)
    )
