"""SharedContexts: sessions that put their contexts into one file, or take them from one."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Self

from ort_lite.context.destinations import Callback, PayloadFiles
from ort_lite.context.keys import SHARE_KEY, STOP_KEY
from ort_lite.context.shared_generation import GroupFiles, Stage
from ort_lite.context.shared_reading import SharedPayloads
from ort_lite.status import EPFail, Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from ort_lite.context.target import ContextTarget
    from ort_lite.options import SessionOptions

WHOLE_KEY = "session.ep_context_whole_payloads"

_numbers = count(1)


def _drop(stage: Stage, files: SharedPayloads) -> None:
    files.clear()
    stage.discard()


class SharedContexts:
    """A session group: models that share contexts, written together or loaded together.

    Written: every session that joined keeps its context model and payloads here; leaving the
    `with` block publishes all files at once, the payload file named after the first model.
    Leaving it through an exception publishes nothing. A session that fails takes back what it
    added and leaves the group as it was.

    Loaded: a payload file is mapped, its index read and its weights checked once for all
    sessions; a context leaves the group when a session takes it.

    Groups know nothing of each other and may be used at the same time in several threads;
    within one group sessions compile one after the other.
    """

    def __init__(self, *, replace: bool = False) -> None:
        """Create an empty group.

        Args:
            replace: Whether context models that exist are replaced when the group ends. Payload
                files are not: the new one has another name.
        """
        self.id = next(_numbers)
        self.replaces_models = replace
        self._lock = threading.RLock()
        self._stage = Stage()
        self._payload_files = SharedPayloads()
        # A group that is never ended leaves no temporary files when the process ends.
        self._cleanup = weakref.finalize(self, _drop, self._stage, self._payload_files)

    def join(self, options: SessionOptions) -> SessionOptions:
        """Make sessions with `options` members of this group; gives `options` back."""
        options.set_shared_contexts(self)
        return options

    @property
    def waiting_models(self) -> tuple[Path, ...]:
        """Context models that will appear when the group ends."""
        return self._stage.models

    @property
    def waiting_contexts(self) -> tuple[str, ...]:
        """Partitions of loaded files that no session has taken yet."""
        return self._payload_files.names()

    @property
    def payload_files(self) -> SharedPayloads:
        """Payload files that sessions of this group have loaded."""
        return self._payload_files

    def end(self) -> None:
        """Publish what was compiled, let go of what was loaded; the group is empty then.

        Raises:
            Fail: A file cannot be written, or one of its name is there; then none is.
        """
        with self._lock:
            self._payload_files.clear()
            self._stage.publish()
            self._stage.names.clear()

    def abandon(self) -> None:
        """Forget what was compiled and loaded; no file appears."""
        with self._lock:
            _drop(self._stage, self._payload_files)
            self._stage.names.clear()

    @contextmanager
    def compiling(self, *, last: bool, fragile: bool) -> Iterator[Stage]:
        """One session's turn; what it adds is taken back if the body fails.

        Args:
            last: Publish afterwards.
            fragile: Give up the whole group if the body fails.
        """
        with self._lock:
            before = self._stage.mark()
            try:
                yield self._stage
            except BaseException:
                if fragile or last:
                    self.abandon()
                else:
                    self._stage.rewind(before)
                raise
            if last:
                self.end()

    def __enter__(self) -> Self:
        """Return this group."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        """End the group, or abandon it if the block failed."""
        if kind is None:
            self.end()
        else:
            self.abandon()

    def __repr__(self) -> str:
        """The group's number, and names of its waiting models and contexts."""
        models = [path.name for path in self.waiting_models]
        return f"<SharedContexts {self.id}, models {models}, contexts {self.waiting_contexts}>"


_of_process = SharedContexts()
"""The group of sessions that set `ep.share_ep_contexts` and name none: ONNX Runtime's option has
no other meaning than one group for the process. State of a module, for that reason alone."""


def group_of(options: SessionOptions) -> SharedContexts | None:
    """The group of a session; None if it shares nothing."""
    if not options.flag(SHARE_KEY):
        return None
    group = options.shared_contexts or _of_process
    assert isinstance(group, SharedContexts), "`join` sets it"
    return group


@contextmanager
def membership(options: SessionOptions) -> Iterator[None]:
    """A session's or compilation's time in its group, which ends where the body fails.

    However early it fails, the process's own group is abandoned, and so is any group whose last
    session failed: nothing says whether the sessions that follow belong to it.
    """
    try:
        yield
    except BaseException:
        group = group_of(options)
        if group is not None and (group is _of_process or options.flag(STOP_KEY)):
            group.abandon()
        raise


@contextmanager
def open_for_loading(options: SessionOptions) -> Iterator[SharedPayloads]:
    """The payload files that a session of a group loads from; closed after the group's last."""
    group = group_of(options)
    assert group is not None, "the flag is set"
    try:
        yield group.payload_files
    finally:
        if options.flag(STOP_KEY):
            group.payload_files.clear()


@contextmanager
def group_target(target: ContextTarget, options: SessionOptions) -> Iterator[ContextTarget]:
    """`target`, with the session's group as the destination where it has one.

    A failed session of the process's own group abandons the group, as it is unknown whether
    the sessions that follow belong to it: they start a new one.

    Raises:
        EPFail: The payloads are to be embedded.
        InvalidArgument: They are to go to a write function.
        Fail: It is the group's last session, and the files cannot be written.
    """
    group = group_of(options)
    if group is None:
        yield target
        return
    if isinstance(target.payloads, Callback):
        raise InvalidArgument("ep.share_ep_contexts writes a file; unset the write function")
    if not isinstance(target.payloads, PayloadFiles):
        raise EPFail(
            "Invalid EP context configuration: ep.context_embed_mode must be 0 if "
            "ep.share_ep_contexts is 1."
        )
    given_up = [path.name for path in group.waiting_models] if group is _of_process else []
    last = options.flag(STOP_KEY)
    try:
        with group.compiling(last=last, fragile=group is _of_process) as stage:
            payloads = GroupFiles(stage, target.payloads, whole=options.flag(WHOLE_KEY))
            yield replace(target, payloads=payloads)
    except Fail as exc:
        if given_up:
            exc.add_note(f"given up with it: {', '.join(given_up)} of the same session group")
        raise
