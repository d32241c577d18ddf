"""Files in memory that nobody can change, for SDKs that map a file by its path (Linux)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


STEP = 64 << 20
"""Bytes that are written at once; signals are handled in between."""


@dataclass(slots=True, eq=False)
class LentPath:
    """A path at which an SDK opens and maps a file itself.

    Attributes:
        path: Valid while it is lent.
        owner: To be set by the borrower: an object that lives for as long as the SDK's map. What
            has no owner is compared with the file instead of being protected.
    """

    path: str
    owner: object = None


def sealed_file(data: memoryview) -> int | None:
    """A descriptor of a file in memory with these bytes; None where the system has no such.

    Raises:
        OSError: There are no descriptors or no memory left.
    """
    return _seal_file(lambda file: _write_all(file, data))


def sealed_copy(descriptor: int, size: int) -> int | None:
    """As `sealed_file`, from the first `size` bytes of an open file.

    Raises:
        OSError: As `sealed_file`, or the file ends before.
    """
    return _seal_file(lambda file: _copy_all(file, descriptor, size))


def _seal_file(fill: Callable[[int], None]) -> int | None:
    if sys.platform != "linux":
        return None
    import fcntl  # noqa: PLC0415 - lazy: reload

    file = os.memfd_create("ort_lite", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        fill(file)
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(file)
        raise
    return file


def _write_all(file: int, data: memoryview) -> None:
    at = 0
    while at < len(data):
        at += os.write(file, data[at : at + STEP])


def _copy_all(file: int, source: int, size: int) -> None:
    if sys.platform != "linux":
        return  # `_seal_file` makes none
    at = 0
    while at < size:
        count = os.sendfile(file, source, at, min(STEP, size - at))
        if not count:
            raise OSError(0, "the file ends too early")
        at += count
