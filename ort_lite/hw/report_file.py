"""Files that hardware runs write: whole or not at all, with a typed error that names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.atomic_write import write_file
from ort_lite.shortages import write_error

if TYPE_CHECKING:
    from pathlib import Path


def write_report_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, in the place of an earlier file.

    Raises:
        Fail: It cannot be written; an earlier file stays.
    """
    try:
        write_file(path, data, replace=True)
    except OSError as exc:
        raise write_error(exc, f"the result {path} cannot be written") from exc
