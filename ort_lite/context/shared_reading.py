"""Payload files that several sessions load from: read, indexed and checked once."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ctx_formats.copied_file import COPY_LIMIT, open_file
from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.mapped_file import FileStamp
from ort_lite.context.keys import MAP_KEY, MAP_OF_CACHE, TRUST_KEY
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_formats.container import Container
    from ctx_formats.copied_file import CopiedFile
    from ctx_formats.mapped_file import MappedFile
    from ort_lite.ep.interface import WeightsFile
    from ort_lite.options import SessionOptions

    FileBytes = MappedFile | CopiedFile

COPY_LIMITS = {"auto": COPY_LIMIT, "0": 1 << 62, "1": 0, MAP_OF_CACHE: 0}
"""By value of MAP_KEY, up to how many bytes payload files are copied in place of being mapped;
docs/adr/0033-copied-payloads.md."""


def copy_limit(options: SessionOptions) -> int:
    """Bytes up to which a session copies payload files.

    All of them, where a signature is asked for: who may write to a mapped file could hand the
    vendor's code other bytes than those that were verified.

    Raises:
        InvalidArgument: MAP_KEY has a value that it does not have.
    """
    value = options.config.get(MAP_KEY, "0" if TRUST_KEY in options.config else "auto")
    if value not in COPY_LIMITS:
        raise InvalidArgument(f"{MAP_KEY} is '{value}', expected auto, 0 or 1")
    return COPY_LIMITS[value]


@dataclass(slots=True, eq=False)
class PayloadFile:
    """A payload file and what is known of it.

    Attributes:
        waiting: Partitions that no session has taken.
        users: Sessions that are loading from it.
    """

    file: FileBytes
    container: Container
    waiting: set[str]
    users: int = 0
    _checked: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def weights(self, name: str) -> WeightsFile | None:
        """The weights that a payload needs, checked; None if it needs none.

        Raises:
            FormatError: Reason integrity; they are not what was written.
        """
        runs = self.container.entries[name].weights
        if not runs:
            return None
        from ort_lite.ep.interface import WeightsFile  # noqa: PLC0415 - lazy: rare

        with self._lock:
            for run in runs:
                if run not in self._checked:
                    self.container.verify_weights(run)
                    self._checked.add(run)
                    entry = self.container.weights[run]
                    self.file.drop_pages(entry.offset, entry.size)  # an SDK maps them itself
        return WeightsFile(self.file.view, self.file.lend_path)

    def close(self) -> None:
        """Let go of the file; views of it keep the memory."""
        self.file.close()


def open_payloads(
    path: str, parse: Callable[[FileBytes], Container], copy_limit: int
) -> PayloadFile:
    """Copy or map a payload file and read its index.

    Args:
        path: The file.
        parse: Reads the index.
        copy_limit: In bytes; a larger file is mapped.

    Raises:
        FormatError: It is not there, not to be followed, or no container; reason integrity where
            it changes for as long as it is being read.
    """
    file = open_file(path, copy_limit=copy_limit, follow_symlink=False)
    try:
        container = parse(file)
    except BaseException:
        file.close()
        raise
    return PayloadFile(file, container, set(container.entries))


class SharedPayloads:
    """Payload files by what they are, not by what they are called: a new file is another one."""

    def __init__(self) -> None:
        """Share no file yet."""
        self._lock = threading.Lock()
        self._files: dict[FileStamp, PayloadFile] = {}
        self._reads = 0

    @property
    def reads(self) -> int:
        """How many files were read."""
        return self._reads

    def file(
        self, path: str, parse: Callable[[FileBytes], Container], copy_limit: int
    ) -> PayloadFile:
        """The file at `path`, read only if no session of the group has read it.

        The caller gives it to `release` when it has imported what it needs.

        Raises:
            FormatError: As `open_payloads`.
        """
        with self._lock:
            stamp = _stamp(path)
            known = self._files.get(stamp) if stamp is not None else None
            if known is None:
                known = open_payloads(path, parse, copy_limit)
                self._reads += 1
                self._files[known.file.stamp] = known
            known.users += 1
            return known

    def release(self, file: PayloadFile) -> None:
        """The session needs the file itself no longer; what it imported keeps its bytes."""
        with self._lock:
            file.users -= 1
            self._close_unused(file)

    def take(self, file: PayloadFile, name: str) -> None:
        """A session has this partition now; a file without any others is let go."""
        with self._lock:
            file.waiting.discard(name)
            if not file.waiting:
                self._files.pop(file.file.stamp, None)

    def names(self) -> tuple[str, ...]:
        """Partitions that no session has taken."""
        with self._lock:
            return tuple(sorted(n for file in self._files.values() for n in file.waiting))

    def clear(self) -> None:
        """Let go of every file."""
        with self._lock:
            files = list(self._files.values())
            self._files.clear()
            for file in files:
                self._close_unused(file)

    def _close_unused(self, file: PayloadFile) -> None:
        if not file.users and file not in self._files.values():
            file.close()


def _stamp(path: str) -> FileStamp | None:
    """Of the file that is there now; None if nothing is."""
    try:
        info = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return FileStamp.of(info)
