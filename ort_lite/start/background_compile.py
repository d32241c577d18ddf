"""Compiles behind a session that answers already, and swaps what it runs when that is done.

docs/adr/0016-background-compile.md says why it is a thread, and what closing means.
"""

from __future__ import annotations

import threading
import weakref
from time import monotonic
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.context.keys import ENABLE_KEY, SHARE_KEY
from ort_lite.context.nodes import has_context_nodes
from ort_lite.context.target import session_target
from ort_lite.ep.interface import SupportsEpContext
from ort_lite.sdk_thread import SdkThread
from ort_lite.session_log import get_logger, logging_as, scope_of
from ort_lite.start.interim_graph import InterimGraph, hand_over, require_same_interface
from ort_lite.start.load_report import BackgroundCompile
from ort_lite.start.load_request import BACKGROUND_KEY, LoadClock
from ort_lite.start.prepare_model import compile_plain
from ort_lite.start.shape_compiles import ShapeCompiles, answers_meanwhile
from ort_lite.status import InvalidArgument, ModelLoadCanceled
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable

    from ort_lite.execution.session_services import SessionServices
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.start.load_request import LoadRequest
    from ort_lite.start.prepare_model import ModelSource, PreparedModel

    Install = Callable[[PreparedModel], None]

log = get_logger(__name__)

CONTRADICTIONS = {
    "session.disable_cpu_ep_fallback": "nodes run on the CPU EP until the compile is done",
    "session.disable_model_compile": "one asks for a compile and the other forbids it",
    SHARE_KEY: "the files of a session group are written when the group ends",
}


def check_options(options: SessionOptions) -> None:
    """Find what cannot be had together with a compile in the background.

    Raises:
        InvalidArgument: Such an entry is set; whatever the model and the cache are.
    """
    for key, why in CONTRADICTIONS.items():
        if options.flag(key):
            raise InvalidArgument(
                f"Conflicting session configuration: {BACKGROUND_KEY}=1 and {key}=1: {why}. "
                "Leave one of them out."
            )


def load_initial(
    source: ModelSource, request: LoadRequest
) -> tuple[PreparedModel, BackgroundJob | None, str]:
    """The compiled model, else the model on EPs that need no compile and a job for the rest.

    A model that those EPs cannot run is compiled before this returns, as without the option:
    nothing that works without it fails with it.

    Returns:
        The model to run first, the background compile, and the reason if it is missing.

    Raises:
        OrtLiteError: As a session.
    """
    compiled = source.load_compiled(request)
    if compiled is not None:
        return compiled, None, "the compiled form was loaded"
    loaded, interim = source.load_plain(), interim_request(request)
    if has_context_nodes(loaded.model.graph):
        return source.compile(request), None, "a context model compiles nothing"
    if len(interim.eps) == len(request.eps) and not request.measured:
        return source.compile(request), None, "no execution provider of the session compiles"
    if request.options.flag(ENABLE_KEY):
        session_target(loaded.path, request.options)  # what cannot be written is an error now
    try:
        first = replace(prepare_interim(loaded, interim), cache=source.cache_outcome())
    except NotImplementedByAny as exc:
        log.info("%s: nothing runs it while it is compiled: %s", loaded.description, exc.message)
        return (
            source.compile(request),
            None,
            f"nothing can run it during the compile: {exc.message}",
        )
    return first, BackgroundJob(source, request, first), ""


def interim_request(request: LoadRequest) -> LoadRequest:
    """`request` with only the EPs that keep no compiled form: those compile nothing long.

    It writes no files, which hold the compiled form, and reports no progress of its own.
    """
    options = request.options.snapshot()
    options.add_session_config_entry(ENABLE_KEY, "0")
    options.optimized_model_filepath = ""
    options.set_progress_func(None)
    eps = [ep for ep in request.eps if not isinstance(ep, SupportsEpContext)]
    return replace(request, options=options, eps=eps)


def prepare_interim(loaded: LoadedModel, request: LoadRequest) -> PreparedModel:
    """`loaded` on the EPs of an `interim_request`, in an `InterimGraph`.

    Raises:
        NotImplemented: They do not run every node.
        OrtLiteError: As a session on them alone.
    """
    model = compile_plain(loaded, request)
    return replace(model, prepared=InterimGraph(model.prepared))


@dataclass(frozen=True, slots=True)
class _CompileTask:
    """The objects that the thread holds while it compiles.

    Attributes:
        source: Compiles the model.
        request: With all EPs; the thread owns those that `first` does not run on until the
            session gets them.
        first: The model that runs meanwhile; the session owns it.
    """

    source: ModelSource
    request: LoadRequest
    first: PreparedModel

    def release(self, compiled: PreparedModel | None, *, everything: bool) -> None:
        """Release what the session does not get; with `everything`, `first` as well."""
        first = self.first
        if compiled is not None:
            compiled.prepared.release()
            if compiled.loaded is not first.loaded:
                compiled.loaded.close()
        chosen = compiled.eps if compiled is not None else ()
        for ep in dict.fromkeys((*self.request.eps, *chosen)):
            if ep not in first.eps:
                ep.release()
        if everything:
            first.release()


class BackgroundJob:
    """One compile in a thread; it holds no session, so a session that is dropped ends it.

    The thread is not a daemon: Python waits for it at exit. One that is stopped inside a vendor's
    compiler ends the process with SIGABRT now and then (1 of 14 with OpenVINO 2026.4.1).
    """

    def __init__(self, source: ModelSource, request: LoadRequest, first: PreparedModel) -> None:
        """Prepare; `start` begins. For the arguments see _CompileTask."""
        request = replace(request, clock=LoadClock(), given_up=self._is_given_up)
        self._task: _CompileTask | None = _CompileTask(source, request, first)
        self._log_scope = scope_of(request.options)
        self._lock = threading.RLock()  # a log handler may ask for the outcome
        self._left = False
        self._has_let_go = False
        self._install: weakref.WeakMethod[Install] | None = None
        names = tuple(ep.name for ep in first.eps)
        self._outcome = BackgroundCompile(state="compiling", interim=names)
        self._thread: SdkThread | None = None
        self._shapes = ShapeCompiles(self._is_given_up, self._log_scope)

    def start(self, install: Install, services: SessionServices) -> None:
        """Begin to compile; once.

        Args:
            install: A session's method, called once, in the thread, if the compile succeeds and
                the session is still there; the session runs what it is given from then on.
            services: For the event in the session's profile.
        """
        task, self._task = self._task, None  # what is over must not keep the first graph alive
        assert task is not None, "a job is started once"
        self._install = weakref.WeakMethod(install)
        name = "ort_lite-background-compile"
        thread = SdkThread(target=self._work, args=(task, services), name=name, daemon=False)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError as exc:  # no more threads, or the interpreter is on its way out
            self._thread = None
            self._end(task, None, exc)

    def outcome(self, timeout: float | None = 0.0) -> BackgroundCompile:
        """State after at most `timeout` seconds; None waits until the compile has ended."""
        end = None if timeout is None else monotonic() + timeout
        thread = self._thread
        if thread is not None:
            thread.wait_for_end(timeout)
        self._shapes.wait(None if end is None else max(0.0, end - monotonic()))
        with self._lock:
            if self._outcome.state == "compiling" and not self._at_work():
                return replace(self._outcome, state="canceled", reason="the process was forked")
            return self._with_shapes(self._outcome)

    def _with_shapes(self, done: BackgroundCompile) -> BackgroundCompile:
        """`done` with the state of compiles for shapes that came after the swap."""
        if done.state != "done":
            return done
        if self._shapes.is_busy():
            return replace(done, state="compiling", reason="for shapes that it has met")
        failed = self._shapes.failure
        return done if failed is None else replace(_failure(failed), interim=done.interim)

    def leave(self) -> bool:
        """Cancel, for a session that closes.

        Returns:
            Whether what the session runs on is the thread's to let go of, now or when the
            compiler that it is in comes back; the session must not.
        """
        with self._lock:
            self._left = True
            at_it = self._outcome.state == "compiling" and self._at_work()
            thread_releases = self._has_let_go or at_it
        if not thread_releases:
            if self._thread is not None:
                self._thread.wait_for_end()
            self._shapes.leave()
        return thread_releases

    def _at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()  # it is not, after a fork

    def _live_install(self) -> Install | None:
        """The session's method; None once it was closed or dropped, or Python is on its way out."""
        leaving = not threading.main_thread().is_alive()  # Python joins threads, then exits
        return self._install() if self._install and not self._left and not leaving else None

    def _is_given_up(self) -> bool:
        return self._live_install() is None

    def _work(self, task: _CompileTask, services: SessionServices) -> None:
        compiled: PreparedModel | None = None
        problem: Exception | None = None
        try:
            with logging_as(self._log_scope), services.span("background_compile"):
                compiled = task.source.compile(task.request)
            require_same_interface(task.first, compiled)
            prepared = answers_meanwhile(compiled.prepared, task.first.eps, self._shapes)
            compiled = replace(compiled, prepared=prepared, origin=task.source.stamps())
        except Exception as exc:  # noqa: BLE001 - whatever it is, the session must report it
            problem = exc
        self._end(task, compiled, problem)

    def _end(
        self, task: _CompileTask, compiled: PreparedModel | None, problem: Exception | None
    ) -> None:
        """Swap the models, or release what the session does not get."""
        with self._lock:
            install = self._live_install()
            clock = task.request.clock
            came_to = replace(
                self._outcome, phases=dict(clock.phases), payload_bytes=clock.payload_bytes
            )
            if install is not None and compiled is not None and problem is None:
                _swap(task.first, compiled, install)
                self._outcome = replace(came_to, state="done")
                return
            failure = _failure(problem) if install is not None else _CLOSED
            self._outcome = replace(
                came_to, state=failure.state, reason=failure.reason, error=failure.error
            )
            self._has_let_go = install is None
        task.release(compiled, everything=install is None)
        if install is not None:
            self._warn(task.first.loaded.description)

    def _warn(self, model: str) -> None:
        outcome = self._outcome
        with logging_as(self._log_scope):
            log.warning(
                "%s: the compile in the background %s; %s goes on: %s",
                model,
                _VERBS[outcome.state],
                ", ".join(outcome.interim),
                outcome.reason,
            )


def _swap(first: PreparedModel, compiled: PreparedModel, install: Install) -> None:
    install(compiled)
    hand_over(first, compiled)
    for one in (first, compiled):
        one.loaded.close()


_CLOSED = BackgroundCompile(state="canceled", reason="the session was closed")
_VERBS = {"failed": "failed", "canceled": "was canceled"}


def _failure(problem: Exception | None) -> BackgroundCompile:
    if isinstance(problem, ModelLoadCanceled):
        return BackgroundCompile(state="canceled", reason=problem.message)
    reason = f"{type(problem).__name__}: {problem}"
    return BackgroundCompile(state="failed", reason=reason, error=problem)
