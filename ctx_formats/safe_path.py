"""Names in a model file to paths that stay inside the model's folder.

Rules: ONNX Runtime's ValidateExternalDataPath (docs/formats/paths.md), and what it leaves out:
Windows forms on every system, NUL, device names, and that the target is a regular file.
"""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

from ctx_formats.errors import FormatError, Reason

_DEVICES = frozenset(
    ["CON", "PRN", "AUX", "NUL", *(f"{d}{n}" for d in ("COM", "LPT") for n in range(1, 10))]
)
_IN_MEMORY_TAG = "*/_ORT_MEM_ADDR_/*"
MAX_NAME = 4096


def resolve_payload(base: Path, name: str, *, model_path: Path | None = None) -> Path:
    """The file that `name` stands for, below `base`.

    Args:
        base: The model's folder.
        name: As the model has it: relative, "/" between its parts.
        model_path: The model file. Where it is a symlink, as in a Hugging Face cache, the
            folder it points to is tried too.

    Raises:
        FormatError: Reason unsafe_path for a name that is no relative path or leads outside
            or to something other than a regular file; missing_payload where nothing is there.
    """
    _check_text(name)
    try:
        return _inside(base, name)
    except FormatError as first:
        if model_path is None or not model_path.is_symlink():
            raise
        try:
            return _inside(model_path.resolve().parent, name)
        except FormatError:
            raise first from None


def _check_text(name: str) -> None:
    problem = _text_problem(name)
    if problem:
        raise FormatError(
            "path",
            f"{name[:200]!r}: {problem}",
            "a path relative to the model's folder",
            reason=Reason.UNSAFE_PATH,
        )


def _text_problem(name: str) -> str:
    if not name:
        return "Empty external data path not allowed"
    if len(name) > MAX_NAME:
        return f"longer than {MAX_NAME} characters"
    if "\0" in name:
        return "NUL in a path"
    if name.startswith(_IN_MEMORY_TAG):
        return "In-memory external data reference tag is not a valid file path"
    windows = PureWindowsPath(name)
    if PurePosixPath(name).is_absolute() or windows.root or windows.drive:
        return "Absolute path not allowed for external data location"
    for part in windows.parts:
        if part == "..":
            continue
        if part.rstrip(" .") != part:
            return "a part ends in a space or dot, which Windows drops"
        if part.split(".")[0].rstrip(" ").upper() in _DEVICES:
            return f"{part} is a device name on Windows"
    return ""


def _inside(base: Path, name: str) -> Path:
    root = base.resolve()
    target = (root / name.replace("\\", "/")).resolve()
    if target == root or not target.is_relative_to(root):
        raise FormatError(
            "path",
            f"{name!r} escapes the model's folder (resolves to {target})",
            f"a file below {root}",
            reason=Reason.UNSAFE_PATH,
        )
    try:
        mode = target.stat().st_mode
    except OSError as exc:
        raise FormatError(
            "path",
            f"{name!r} is not there (looked for {target})",
            "a file beside the model: copy it there, set ep.context_file_path to the model's "
            "original path, or compile the model again",
            reason=Reason.MISSING_PAYLOAD,
        ) from exc
    if not stat.S_ISREG(mode):
        raise FormatError(
            "path",
            f"{name!r} is no regular file ({target})",
            "a regular file",
            reason=Reason.UNSAFE_PATH,
        )
    return target
