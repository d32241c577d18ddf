"""`FormatError`: a defect of a file, with named parts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os


class Reason(StrEnum):
    """Why a compiled model is refused; the closed list of docs/epcontext.md."""

    SDK_VERSION = "sdk_version"
    DRIVER_VERSION = "driver_version"
    HARDWARE_ARCHITECTURE = "hardware_architecture"
    DEVICE_MISSING = "device_missing"
    SOURCE_UNKNOWN = "source_unknown"
    INTEGRITY = "integrity"
    FORMAT = "format"
    MISSING_PAYLOAD = "missing_payload"
    UNSAFE_PATH = "unsafe_path"
    OPTIONS = "options"
    SHAPE = "shape"
    VENDOR_REJECTED = "vendor_rejected"
    VENDOR_CRASHED = "vendor_crashed"
    UNTRUSTED = "untrusted"


class FormatError(ValueError):
    """Bytes that are not what their format says they must be.

    Attributes:
        field: Dotted name of the part that is wrong, e.g. "header.magic".
        found: What is there, short and printable.
        expected: What would have been right, or "".
        file: Path or description of the source of the bytes, or "".
        reason: The word of the closed list under which a session refuses it.
    """

    def __init__(
        self,
        field: str,
        found: str,
        expected: str = "",
        *,
        file: str = "",
        reason: Reason = Reason.FORMAT,
    ) -> None:
        self.field = field
        self.found = found
        self.expected = expected
        self.file = file
        self.reason = reason
        super().__init__(field, found, expected, file, reason)

    def __str__(self) -> str:
        """One line: file, field, found, expected; any stream of UTF-8 can print it."""
        where = f"{self.file}: " if self.file else ""
        expectation = f", expected {self.expected}" if self.expected else ""
        text = f"{where}{self.field}: {self.found}{expectation}"
        # Half a surrogate pair, out of a name in a file or of a file, has no UTF-8.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def in_file(self, file: str) -> FormatError:
        """The same error with the name of its file, which an inner reader does not know."""
        if self.file:
            return self
        return FormatError(self.field, self.found, self.expected, file=file, reason=self.reason)


class FileChangedError(FormatError):
    """Somebody wrote to a file, or replaced it, while it was read or used; reason integrity."""

    def __init__(self, path: str | os.PathLike[str], when: str = "while it was read") -> None:
        """`path` is the file's."""
        super().__init__(
            "file",
            f"changed {when}",
            "a file that nobody writes to; write a new one next to it and rename that",
            file=str(path),
            reason=Reason.INTEGRITY,
        )


class HasWriterError(Exception):
    """Somebody has a file open for writing."""
