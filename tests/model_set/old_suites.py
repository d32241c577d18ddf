"""Brings the node cases of older ONNX suites: `python tests/model_set/old_suites.py FOLDER`.

The installed onnx makes cases of current operator versions only. Its wheels up to 1.18 held theirs
as files, in the versions of their day.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from model_set.wheels import FetchError, Tags, download_wheel

NODE_CASES = "onnx/backend/test/data/node/"
RELEASES = {
    **dict.fromkeys(("1.2.2", "1.3.0", "1.4.1", "1.5.0", "1.6.0", "1.7.0"), ("36", "manylinux1")),
    **dict.fromkeys(("1.8.1", "1.9.0", "1.10.2", "1.11.0"), ("36", "manylinux2010")),
    **dict.fromkeys(("1.12.0", "1.13.1", "1.14.1"), ("37", "manylinux2014")),
    **dict.fromkeys(("1.15.0", "1.16.2", "1.17.0"), ("38", "manylinux2014")),
    "1.18.0": ("39", "manylinux2014"),
}
"""Release to the Python and platform of a wheel of it; only its data is read."""


def main() -> int:
    """Fetch the releases that `FOLDER` lacks; 1 if one cannot be had."""
    parser = argparse.ArgumentParser(
        description="Bring the node cases of older ONNX suites out of its wheels, without doubles."
    )
    parser.add_argument("folder", type=Path, help="where to keep them, a folder a release")
    asked = parser.parse_args()
    seen: set[str] = set()
    try:
        for release, (python, platform) in RELEASES.items():
            _fetch(release, Tags(python, f"{platform}_x86_64"), asked.folder / release)
            sys.stderr.write(f"onnx {release}: {_drop_doubles(asked.folder / release, seen)} new\n")
    except FetchError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 1
    return 0


def _fetch(release: str, tags: Tags, folder: Path) -> None:
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch:
        wheel = download_wheel("onnx", release, Path(scratch), tags)
        made = Path(scratch) / "cases"
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(NODE_CASES) and not name.endswith("/"):
                    _write(made, PurePosixPath(name.removeprefix(NODE_CASES)), archive.read(name))
        made.rename(folder)


def _write(folder: Path, name: PurePosixPath, content: bytes) -> None:
    if name.is_absolute() or ".." in name.parts:
        raise FetchError(f"a wheel of onnx holds the unsafe name {name}")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _drop_doubles(folder: Path, seen: set[str]) -> int:
    """Remove cases that an earlier release has, byte for byte; returns how many stay."""
    files: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*.*")):
        if path.is_file():
            files[folder / path.relative_to(folder).parts[0]].append(path)
    kept = 0
    for paths in files.values():
        digest = hashlib.sha256()
        for path in paths:
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
        if digest.hexdigest() in seen:
            for path in paths:
                path.unlink()
        else:
            seen.add(digest.hexdigest())
            kept += 1
    return kept


if __name__ == "__main__":
    sys.exit(main())
