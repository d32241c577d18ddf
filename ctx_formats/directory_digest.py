r"""Digests of folders: the `sha256:` URI under which a model package shares one.

ONNX Runtime's model_package library: SHA-256 over the lines `<sha256 of a file>  <path>\n`, sorted
by path. Empty folders do not count; symlinks are refused.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.mapped_file import open_descriptor, stamp_of
from ctx_formats.package_paths import unsafe_path_error

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILES = 100_000
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigest:
    """Size in bytes and SHA-256, in hex, of a file."""

    size: int
    sha256: str


def digest_file(path: str | os.PathLike[str]) -> FileDigest:
    """The digest of a regular file, which must not be a symlink.

    Raises:
        FormatError: It is something else, or cannot be read.
    """
    descriptor = open_descriptor(path, follow_symlink=False)
    try:
        stamp_of(descriptor, path)
        digest, size = hashlib.sha256(), 0
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as exc:
        raise FormatError(
            "path", f"cannot be read: {exc}", "a readable file", file=str(path),
            reason=Reason.MISSING_PAYLOAD,
        ) from exc  # fmt: skip
    finally:
        os.close(descriptor)
    return FileDigest(size=size, sha256=digest.hexdigest())


def list_files(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Paths of all files below a folder, by their name relative to it with "/" between parts.

    Sorted by the bytes of the relative name.

    Raises:
        FormatError: Reason unsafe_path for a symlink, a device, a FIFO or a socket, or more than
            MAX_FILES files.
    """
    files: dict[str, str] = {}
    pending = [(os.fspath(folder), "")]
    while pending:
        path, prefix = pending.pop()
        try:
            entries = list(os.scandir(path))
        except OSError as exc:
            raise FormatError(
                "folder", f"{path} cannot be read: {exc.strerror}", "a readable folder",
                reason=Reason.MISSING_PAYLOAD,
            ) from exc  # fmt: skip
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                pending.append((entry.path, f"{prefix}{entry.name}/"))
            elif stat.S_ISREG(mode):
                files[prefix + entry.name] = entry.path
            else:
                kind = "a symlink" if stat.S_ISLNK(mode) else "not a regular file"
                raise unsafe_path_error("folder", f"{entry.path} is {kind}", "files and folders")
        if len(files) + len(pending) > MAX_FILES:
            raise unsafe_path_error("folder", f"over {MAX_FILES} files", f"at most {MAX_FILES}")
    return {name: files[name] for name in sorted(files, key=os.fsencode)}


def asset_uri(files: Mapping[str, FileDigest]) -> str:
    """The URI of a folder with these files, by relative name."""
    lines = (f"{files[name].sha256}  ".encode() + os.fsencode(name) + b"\n"
             for name in sorted(files, key=os.fsencode))  # fmt: skip
    return f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}"


def digest_folder(folder: str | os.PathLike[str]) -> str:
    """The URI of a folder on disk.

    Raises:
        FormatError: As `list_files` and `digest_file`.
    """
    return asset_uri({name: digest_file(path) for name, path in list_files(folder).items()})
