"""Child processes that run the driver's compiler side by side.

See docs/adr/0055-builds-in-processes.md. Intel's driver builds one program at a time in a process,
however many threads ask. Processes start while the source is generated, get a part of it each, and
send the driver's binary of it. None outlives the `with` statement, nor this process. A part that a
process does not build, because it cannot start, dies or is refused, is for the caller to build.
"""

from __future__ import annotations

import json
import os
import selectors
import struct
from contextlib import suppress
from subprocess import TimeoutExpired
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from eps.opencl.trials.record import facts_of
from ort_lite.ep import describe_exit, get_logger, start_module

if TYPE_CHECKING:
    from collections.abc import Sequence
    from subprocess import Popen

    from eps.opencl.runtime.device import ListedDevice

log = get_logger(__name__)

CHILD = "eps.opencl.runtime.build_child"
BEGUN = b"ort_lite build\n"
"""What a child writes before the size of its binary."""
SIZE = struct.Struct("<Q")
LIMIT = 300.0
"""Seconds after which children are given up; on a machine that is not busy a part takes two."""
PATIENCE = 1.0
"""Seconds that a process may take to end once it has closed its pipe."""
_CHUNK = 1 << 16
_MOST_WRITTEN = 512
"""POSIX's least PIPE_BUF: what a pipe accepts without blocking once it is ready for writing."""
_LARGEST = 1 << 30
_one_at_a_time = Lock()
"""Threads that compile at once would start more processes than there are cores."""


class BuildProcesses:
    """Processes that each build one part of a program; a context manager around their lives."""

    def __init__(self, listed: ListedDevice, count: int) -> None:
        """Take note of the device, and of how many processes `__enter__` starts."""
        self._listed = listed
        self._count = count
        self._children: list[_Child] = []

    def __enter__(self) -> BuildProcesses:
        """Start the processes, as many as the system lets; wait for those of other threads."""
        _one_at_a_time.acquire()
        try:
            self._start(self._count)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, count: int) -> None:
        """Have so many processes, or as many as the system lets."""
        facts = json.dumps(facts_of(self._listed, os.environ))
        try:
            while len(self._children) < count:
                self._children.append(_Child(start_module(CHILD, self._listed.name, facts)))
        except OSError as exc:
            log.debug("programs are built in this process: %s", exc)

    def __exit__(self, *exc: object) -> None:
        """End the processes, whatever they do."""
        try:
            for child in self._children:
                child.end()
            self._children.clear()
        finally:
            _one_at_a_time.release()

    def build(self, sources: Sequence[str], options: str) -> list[bytes | None]:
        """The driver's binary of each source; None for those that no process has built.

        Processes that are missing are started now.

        Args:
            sources: The process with the same index builds each, so that its bytes do not depend
                on which one is quicker.
            options: Build options.
        """
        self._start(len(sources))
        at_work = list(zip(self._children, sources, strict=False))
        with selectors.DefaultSelector() as selector:
            for child, source in at_work:
                child.begin(selector, [options, source])
            until = monotonic() + LIMIT
            while selector.get_map() and monotonic() < until:
                for key, _ in selector.select(until - monotonic()):
                    key.data()
        binaries = [child.binary() for child, _ in at_work]
        return [*binaries, *[None] * (len(sources) - len(binaries))]


class _Child:
    """A process with what is still to be sent to it, and what it has sent."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process
        self._received = bytearray()

    def begin(self, selector: selectors.BaseSelector, texts: Sequence[str]) -> None:
        """Have the selector call what sends the texts and receives the answer."""
        process = self._process
        assert process.stdin is not None, "start_module makes pipes"
        assert process.stdout is not None, "start_module makes pipes"
        into, out = process.stdin.fileno(), process.stdout.fileno()
        encoded = [text.encode() for text in texts]
        rest = memoryview(b"".join(SIZE.pack(len(text)) + text for text in encoded))

        def send() -> None:
            nonlocal rest
            try:
                rest = rest[os.write(into, rest[:_MOST_WRITTEN]) :]
            except BrokenPipeError:  # its end shows in what it sends
                rest = rest[:0]
            if not rest:
                selector.unregister(into)

        def receive() -> None:
            data = os.read(out, _CHUNK)
            self._received += data
            if not data or self._whole() is not None or len(self._received) > _LARGEST:
                selector.unregister(out)

        selector.register(into, selectors.EVENT_WRITE, send)
        selector.register(out, selectors.EVENT_READ, receive)

    def binary(self) -> bytes | None:
        """What the process has built; None with a line in the log if that is nothing."""
        whole = self._whole()
        if whole is None:
            try:
                ending = describe_exit(self._process.wait(PATIENCE))
            except TimeoutExpired:
                ending = "does not answer"
            log.info("a process that builds a part of a program %s; it is built here", ending)
        return whole

    def _whole(self) -> bytes | None:
        head = len(BEGUN) + SIZE.size
        if len(self._received) < head or not self._received.startswith(BEGUN):
            return None
        (size,) = SIZE.unpack_from(self._received, len(BEGUN))
        return bytes(self._received[head:]) if len(self._received) == head + size else None

    def end(self) -> None:
        """Kill the process if it is still there."""
        process = self._process
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()
