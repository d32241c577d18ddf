"""Paths and `sha256:` references in a model package to files that stay inside it.

The rules are those of ONNX Runtime's model_package library, and what docs/formats/paths.md adds:
Windows' forms on every system, device names, NUL, and that the target is a file or a folder.
"""

from __future__ import annotations

import errno
import os
import re
import stat

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.package_manifest import ASSETS_FOLDER
from ctx_formats.safe_path import MAX_NAME, parts_problem

ASSET_URI = re.compile(r"sha256:([0-9a-f]{64})")
_DRIVE = re.compile(r"[A-Za-z]:")
_SEPARATORS = "/\\"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagePaths:
    """Resolves the paths of one package.

    Attributes:
        root: The package's folder, absolute, without symlinks.
        portable: Whether paths must be relative and stay inside `root`.
        assets: By `sha256:` URI the path that the manifest has for it.
    """

    root: str
    portable: bool = True
    assets: dict[str, str] = field(default_factory=dict)

    def resolve(self, text: str, base: str, field_name: str) -> str:
        """The absolute path that `text` stands for, without symlinks; it need not exist.

        Args:
            text: A path relative to `base`, or `sha256:<hex>` with or without a path behind it.
            base: Absolute.
            field_name: The part of the manifest, for an error.

        Raises:
            FormatError: Reason unsafe_path; the text is not a path that a package may have, or it
                leads out of the package or the asset. Reason missing_payload: no such asset.
        """
        asset = ASSET_URI.match(text)
        if asset is None:
            return self._confine(text, base, self.root, field_name, free=not self.portable)
        folder = self.asset_folder(asset[0], field_name)
        below = text[asset.end() :]
        if not below:
            return folder
        if below[0] != "/":
            raise unsafe_path_error(field_name, f"{text[:200]!r}", "sha256:<hex>/path")
        return self._confine(below[1:], folder, folder, field_name, free=False)

    def asset_folder(self, uri: str, field_name: str) -> str:
        """The folder of a shared asset.

        Raises:
            FormatError: There is none (missing_payload), or it leads out of the package.
        """
        named = self.assets.get(uri, f"{ASSETS_FOLDER}/{uri.replace(':', '-')}")
        free = not self.portable
        folder = self._confine(named, self.root, self.root, field_name, free=free)
        require_folder(folder, field_name)
        return folder

    def _confine(self, text: str, base: str, inside: str, field_name: str, *, free: bool) -> str:
        problem = _text_problem(text, free=free)
        if problem:
            raise unsafe_path_error(field_name, f"{text[:200]!r}: {problem}", _EXPECTED)
        try:
            target = os.path.realpath(os.path.join(base, text))
            # A loop of symlinks is left in the path, as a link.
            looped = os.path.islink(target)
        except (OSError, ValueError) as exc:
            raise unsafe_path_error(field_name, f"{text[:200]!r}: {exc}", _EXPECTED) from exc
        if looped:
            raise unsafe_path_error(field_name, f"{text[:200]!r}: symlinks in a loop", _EXPECTED)
        root = os.path.realpath(inside)
        if not free and target != root and not target.startswith(os.path.join(root, "")):
            raise unsafe_path_error(
                field_name, f"{text[:200]!r} escapes the package: it leads to {target}", _EXPECTED
            )
        return target


_EXPECTED = "a relative path that stays inside the package"


def require_folder(path: str, field_name: str) -> None:
    """Check that a folder exists.

    Raises:
        FormatError: It does not (missing_payload), or is something else (unsafe_path).
    """
    if not stat.S_ISDIR(_mode(path, field_name, "a folder")):
        raise unsafe_path_error(field_name, f"{path} is not a folder", "a folder")


def require_file(path: str, field_name: str) -> None:
    """Check that a regular file exists.

    Raises:
        FormatError: It does not (missing_payload), or is something else (unsafe_path).
    """
    if not stat.S_ISREG(_mode(path, field_name, "a file")):
        raise unsafe_path_error(field_name, f"{path} is not a regular file", "a regular file")


def unsafe_path_error(field_name: str, actual: str, expected: str) -> FormatError:
    """The error for a path that a package may not have."""
    return FormatError(field_name, actual, expected, reason=Reason.UNSAFE_PATH)


def _mode(path: str, field_name: str, expected: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError as exc:
        gone = exc.errno in (errno.ENOENT, errno.ENOTDIR)
        why = "does not exist" if gone else f"cannot be reached: {exc.strerror}"
        raise FormatError(
            field_name, f"{path} {why}", expected, reason=Reason.MISSING_PAYLOAD
        ) from exc


def _text_problem(text: str, *, free: bool) -> str:
    """Problem of a path's text; `free` paths may be absolute and contain "..".

    A package made on Linux is used on Windows, so the rules are the same on every system.
    """
    if not text:
        return "an empty path"
    if len(text) > MAX_NAME:
        return f"longer than {MAX_NAME} characters"
    if "\0" in text:
        return "NUL in a path"
    if free:
        return ""
    if text[0] in _SEPARATORS or _DRIVE.match(text):
        return "an absolute path or one with a drive"
    if "\\" in text:
        return "a backslash; parts of a path are separated by /"
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        return "'..' in a path"
    return parts_problem(parts, colons=False)
