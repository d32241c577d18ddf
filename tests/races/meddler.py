"""Changes a model's files from one version to the other and back until its input ends.

    python meddler.py FOLDER MODE

Prints a line once it has made the first change. It imports nothing of ours, so as to be quick.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Version = Mapping[str, bytes]

PIECE = 1 << 16
PAUSES = (0, 0, 0, 0.001, 0, 0.003, 0, 0.01, 0, 0.03)
"""Seconds between changes: some loads meet one change, some many, and some none."""


def overwrite(live: Path, version: Version) -> None:
    """In place and in one write."""
    for name, data in version.items():
        with (live / name).open("r+b", buffering=0) as file:
            file.write(data)
            file.truncate(len(data))


def copy(live: Path, version: Version) -> None:
    """As `cp new old`: emptied, then written piece by piece."""
    for name, data in version.items():
        with (live / name).open("wb", buffering=0) as file:
            for at in range(0, len(data), PIECE):
                file.write(data[at : at + PIECE])


def truncate(live: Path, version: Version) -> None:
    """Cut off in the middle, then restored."""
    for name, data in version.items():
        os.truncate(live / name, len(data) // 2)
    overwrite(live, version)


def rename(live: Path, version: Version) -> None:
    """Each file replaced by a new one."""
    for name, data in version.items():
        (live / f"{name}.new").write_bytes(data)
        (live / f"{name}.new").replace(live / name)


MODES: dict[str, Callable[[Path, Version], None]] = {
    "overwrite": overwrite,
    "copy": copy,
    "truncate": truncate,
    "rename": rename,
}
LINK = "link"


def main(folder: Path, mode: str) -> None:
    """Change until the input ends."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    files = {
        name: {file.name: file.read_bytes() for file in (folder / name).iterdir()}
        for name in ("one", "two")
    }
    changed = {n for n, data in files["one"].items() if data != files["two"][n]}
    count = 0
    while not ended.wait(PAUSES[count % len(PAUSES)]):
        name = ("two", "one")[count % 2]
        if mode == LINK:
            (folder / "next").symlink_to(name)
            (folder / "next").replace(folder / "current")
        else:
            MODES[mode](folder / "live", {n: files[name][n] for n in sorted(changed)})
        count += 1
        if count == 1:
            sys.stdout.write("at it\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
