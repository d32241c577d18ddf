"""One arena for the programs of a context, which take turns (`session.use_env_allocators`)."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.foreign import mark, wait_on_device
from eps.opencl.runtime.device_memory import allocate
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.ep import EPFail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eps.opencl.cl.objects import Buffer, Context, Event, Queue

    Place = tuple[int, int]
    """Offset and size of a part, in bytes."""

    class ArenaUser(Protocol):
        """A program with values in the arena; called by the thread whose turn it is."""

        def enter_arena(self, buffer: Buffer) -> None:
            """Have kernels use this memory, which stays until `leave_arena`."""
            ...

        def leave_arena(self) -> None:
            """Let go of the memory."""
            ...


MOST_PARTS = 1 << 14
"""Parts of an arena, of the programs that are there and of some before them."""

_arenas: weakref.WeakValueDictionary[int, SharedArena] = weakref.WeakValueDictionary()
_making = threading.Lock()


def shared_arena(context: Context) -> SharedArena:
    """The arena of a context, as long as something uses it."""
    with _making:
        arena = _arenas.get(context.handle)
        if arena is None or arena.context.handle != context.handle:
            arena = _arenas[context.handle] = SharedArena(context)
        return arena


class SharedArena:
    """As much memory as the largest program needs; its content does not outlive a turn.

    Attributes:
        context: Whose memory it is.
        peak: Most bytes that it had.
    """

    def __init__(self, context: Context) -> None:
        """Allocate nothing yet."""
        self.context = context
        self.peak = 0
        self._lock = threading.Lock()
        self._sizes: weakref.WeakKeyDictionary[ArenaUser, int] = weakref.WeakKeyDictionary()
        self._buffer: Buffer | None = None
        self._parts: dict[Place, Buffer] = {}
        self._size = 0
        self._last: Event | None = None

    @property
    def size(self) -> int:
        """Bytes that are allocated."""
        return self._size

    def growth(self, size: int) -> int:
        """Bytes that a program adds which needs so many."""
        return max(0, size - self._size)

    def join(self, user: ArenaUser, size: int) -> None:
        """Have room for a program.

        Raises:
            EPFail: The device has not enough memory; other programs are as they were.
        """
        with self._lock:
            self._sizes[user] = size
            try:
                self._fit()
            except EPFail:
                del self._sizes[user]
                raise

    def leave(self, user: ArenaUser) -> None:
        """Go on without a program, in less memory where it was the largest."""
        with self._lock:
            if self._sizes.pop(user, None) is not None:
                user.leave_arena()
                if self._largest() < self._size:
                    self._discard()

    @contextmanager
    def turn(self, user: ArenaUser, queue: Queue, *, waits: bool) -> Iterator[None]:
        """The arena for one program alone; later turns begin when its commands have ended.

        Args:
            user: Has joined.
            queue: Gets the program's commands.
            waits: Whether they have ended when the turn does.

        Raises:
            EPFail: The device has not enough memory any more, or failed.
        """
        with self._lock:
            self._fit()
            assert self._buffer is not None, "_fit has allocated it"
            user.enter_arena(self._buffer)
            if self._last is not None:
                wait_on_device(queue, [self._last.handle])
            try:
                yield
            finally:
                self._last = None
                if not waits:
                    self._last = mark(queue)
                    queue.flush()

    def part(self, offset: int, size: int) -> Buffer:
        """A part of the memory, for the user whose turn it is, until `leave_arena`.

        Parts outlive the programs that ask for them: these come and go in any order, and a part
        is freed only when all newer ones are (`PartStack`).

        Raises:
            OpenCLError: The driver makes none.
        """
        assert self._buffer is not None, "a turn has memory"
        place = offset, size
        part = self._parts.get(place)
        if part is None:
            part = self._parts[place] = self._buffer.part(offset, size)
        return part

    def _largest(self) -> int:
        return max(self._sizes.values(), default=0)

    def _fit(self) -> None:
        """Allocate what the largest program needs, instead of too little or of too many parts.

        The memory before is freed first, since its content is not needed, so that both need
        not fit on the device.
        """
        size = self._largest()
        if self._size >= size and len(self._parts) < MOST_PARTS:
            return
        self._discard()
        with opencl_errors(f"allocating {size} bytes for the values inside models"):
            self._buffer = allocate(self.context, CL_MEM_READ_WRITE, size)
        self._size = size
        self.peak = max(self.peak, size)

    def _discard(self) -> None:
        if self._last is not None:
            with opencl_errors("waiting for the last run"):
                self._last.wait()
            self._last = None
        for user in list(self._sizes):
            user.leave_arena()
        for part in self._parts.values():
            part.release()
        self._parts.clear()
        buffer, self._buffer, self._size = self._buffer, None, 0
        if buffer is not None:
            buffer.release()
