"""Names in a model file to paths that stay inside the model's folder.

Rules: ONNX Runtime's ValidateExternalDataPath (docs/formats/paths.md), and what it leaves out:
Windows forms on every system, NUL, device names, and that the target is a regular file.

Without pathlib, whose import takes longer than all else that a context's start needs of Python's.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    PathLike = str | os.PathLike[str]

_DEVICES = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"]
    + [f"{device}{n}" for device in ("COM", "LPT") for n in "0123456789\xb9\xb2\xb3"]
)
_IN_MEMORY_TAG = "*/_ORT_MEM_ADDR_/*"
MAX_NAME = 4096


def resolve_payload(
    base: PathLike,
    name: str,
    *,
    model_path: PathLike | None = None,
    colons: bool = False,
) -> str:
    """The file that `name` stands for, below `base`, without a symlink in its path.

    Args:
        base: The model's folder.
        name: As the model has it: relative, "/" between its parts.
        model_path: The model file. Where it is a symlink, as in a Hugging Face cache, the
            folder of the file that it leads to is the model's folder too: `name` may be a
            symlink into it, or be there itself.
        colons: Whether a part may hold a colon, as names of weights do that PyTorch exports
            (onnx::MatMul_7). On Windows none may: it is followed by the name of a stream.

    Raises:
        FormatError: Reason unsafe_path for a name that is not a relative path or leads outside
            or to something other than a regular file; missing_payload where nothing is there.
    """
    problem = _text_problem(name, colons=colons and os.name != "nt")
    if problem:
        raise _unsafe_path_error(
            f"{name[:200]!r}: {problem}", "a path relative to the model's folder"
        )
    folders = [_resolve_symlinks(base, name)]
    if model_path is not None and os.path.islink(model_path):
        folders.append(os.path.dirname(_resolve_symlinks(model_path, name)))
    errors = []
    for folder in folders:
        try:
            return _look_up(folder, name, folders)
        except FormatError as exc:
            errors.append(exc)
    raise errors[0]


def _text_problem(name: str, *, colons: bool) -> str:
    if not name:
        return "Empty external data path not allowed"
    if len(name) > MAX_NAME:
        return f"longer than {MAX_NAME} characters"
    if "\0" in name:
        return "NUL in a path"
    if name.startswith(_IN_MEMORY_TAG):
        return "In-memory external data reference tag is not a valid file path"
    has_drive = name[1:2] == ":" and name[0].isascii() and name[0].isalpha()
    if name[0] in "/\\" or has_drive:
        return "Absolute path not allowed for external data location"
    parts = name.replace("\\", "/").split("/")
    return parts_problem([part for part in parts if part not in ("", ".")], colons=colons)


def parts_problem(parts: Sequence[str], *, colons: bool) -> str:
    """Problem of the parts of a relative path on some system; "" if they are valid.

    Args:
        parts: None of them empty or ".".
        colons: As `resolve_payload`.
    """
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:  # also where it would come back in: folders get renamed
            return "escapes the model's folder"
        if part == "..":
            continue
        if part.rstrip(" .") != part:
            return "a part ends in a space or dot, which Windows drops"
        if part.split(".")[0].split(":")[0].rstrip(" ").upper() in _DEVICES:
            return f"{part} is a device name on Windows"
        if ":" in part and not colons:
            return "a colon, which on Windows is followed by the name of a stream"
    return ""


def _resolve_symlinks(path: PathLike, name: str) -> str:
    """`path`, absolute, with its symlinks followed."""
    try:
        return os.path.realpath(os.fspath(path))
    except (OSError, RuntimeError, ValueError) as exc:  # a loop, or characters of no file name
        raise _unsafe_path_error(f"{name[:200]!r}: {exc}", "a path that can be followed") from exc


def _look_up(start: str, name: str, folders: Sequence[str]) -> str:
    target = _resolve_symlinks(os.path.join(start, name.replace("\\", "/")), name)
    if not any(_is_below(target, folder) for folder in folders):
        raise _unsafe_path_error(
            f"{name!r} escapes the model's folder (resolves to {target})",
            "a file below " + " or ".join(folders),
        )
    try:
        mode = os.stat(target).st_mode
    except OSError as exc:
        raise _absence_error(name, target, exc) from exc
    if not stat.S_ISREG(mode):
        raise _unsafe_path_error(f"{name!r} is not a regular file ({target})", "a regular file")
    return target


def _is_below(target: str, folder: str) -> bool:
    """Whether real path `target` is inside the real folder, and is not the folder."""
    inside = os.path.join(folder, "")
    return os.path.normcase(target).startswith(os.path.normcase(inside))


def _absence_error(name: str, target: str, exc: OSError) -> FormatError:
    if exc.errno == errno.ELOOP:
        return _unsafe_path_error(
            f"{name[:200]!r}: symlinks in a loop", "a path that can be followed"
        )
    gone = exc.errno in (errno.ENOENT, errno.ENOTDIR)
    why = "does not exist" if gone else f"cannot be reached: {os.strerror(exc.errno or 0)}"
    return FormatError(
        "path",
        f"{name!r} {why} (looked for {target})",
        "a file next to the model",
        reason=Reason.MISSING_PAYLOAD,
    )


def _unsafe_path_error(actual: str, expected: str) -> FormatError:
    return FormatError("path", actual, expected, reason=Reason.UNSAFE_PATH)
