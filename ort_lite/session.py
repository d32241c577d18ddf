"""InferenceSession: a model, plain or compiled, made ready and run."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from ort_lite import forks
from ort_lite.context.keys import SHARE_KEY
from ort_lite.load_clock import FIRST_RUN, LoadClock
from ort_lite.providers.provider_list import begin_all, named_in, wanted_by, with_threads
from ort_lite.session_log import DEBUG, get_logger, logging_as, scope_of
from ort_lite.session_reports import SessionReports
from ort_lite.status import Fail

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from ort_lite.background_compile import BackgroundJob
    from ort_lite.execution.session_threads import Surroundings
    from ort_lite.execution_provider import Value
    from ort_lite.model.info import ModelMetadata, NodeArg
    from ort_lite.opening import Opened
    from ort_lite.options import SessionOptions
    from ort_lite.planning.preparation import PreparedGraph
    from ort_lite.run_options import RunOptions

log = get_logger(__name__)

GLOBAL_THREADS = "ort_lite.execution.global_threads"
"""Imported where a program has set numbers of threads for the process."""


class InferenceSession(SessionReports):
    """A model ready to run; `run` may be called from many threads at once.

    A model with EPContext nodes is reloaded from its payloads; anything wrong with one is
    InvalidGraph, and nothing falls back. With `ep.context_enable` a plain model is compiled
    and its context model written before the session is ready.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | bytearray | memoryview,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
        *,
        enable_fallback: bool = False,
        disabled_optimizers: Sequence[str] | None = None,
    ) -> None:
        """Load, partition and compile, or reload.

        Args:
            path_or_bytes: A model file, or the bytes of one.
            sess_options: Copied; later changes do not reach the session.
            providers: Execution providers in order of preference, each a name or a pair
                (name, options). None takes all that are installed and have a device. The CPU
                EP is appended when it is missing.
            provider_options: Options for each of `providers`.
            enable_fallback: Whether to go on without a provider that cannot be opened.
            disabled_optimizers: Names of graph transformations that are not to run, as
                `explain()` gives them.

        Raises:
            OrtLiteError: One of its subclasses, as ONNX Runtime would.
            ValueError: The provider lists do not fit each other.
            TypeError: `path_or_bytes` is of the wrong type.
        """
        self._clock = LoadClock()
        named = named_in(providers, provider_options)
        threads = sess_options.intra_op_num_threads if sess_options is not None else 0
        begun = begin_all(with_threads(named, threads))
        # Here, and not above, since libraries load meanwhile (docs/adr/0015-early-loading.md).
        from ort_lite.options import SessionOptions  # noqa: PLC0415 - see above

        self._source, self._fallback = path_or_bytes, enable_fallback
        self._given = (sess_options or SessionOptions()).snapshot()
        self._options = self._given.snapshot()
        if not self._given.use_per_session_threads or GLOBAL_THREADS in sys.modules:
            from ort_lite.execution.global_threads import with_global_threads  # noqa: PLC0415 - few sessions share

            self._options = with_global_threads(self._options)
        self._log_scope = scope_of(self._options)
        wanted = wanted_by(
            self._options,
            providers,
            provider_options,
            lambda: self._metadata_of(path_or_bytes),
        )
        loaded = begun if named else begin_all(wanted)
        from ort_lite.execution.session_threads import Surroundings  # noqa: PLC0415 - see above
        from ort_lite.session_start import SessionStart  # noqa: PLC0415 - see above

        self._opened: Opened | None = None
        self._lost_threads = False
        self._job: BackgroundJob | None = None
        self._no_job = ""
        self._disabled = tuple(disabled_optimizers or ())
        self._around = Surroundings(self._options)
        starter = SessionStart(
            options=self._options,
            clock=self._clock,
            around=self._around,
            disabled=self._disabled,
            fallback=enable_fallback,
            sdks_loaded=loaded,
        )
        try:
            with logging_as(self._log_scope), self._membership():
                found = starter.start(path_or_bytes, wanted)
        except BaseException:
            self.close()
            raise
        opened, self._provider_options = found.opened, found.provider_options
        self._job, self._no_job = found.job, found.no_job
        self._signature = found.signature
        self._install(opened)
        self._clock.stop()
        self._compile_behind()

    def _membership(self) -> AbstractContextManager[None]:
        """The session's place in its group, where it shares contexts."""
        if not self._options.flag(SHARE_KEY):
            return nullcontext()
        from ort_lite.context.shared_contexts import membership  # noqa: PLC0415 - few sessions share

        return membership(self._options)

    def _compile_behind(self) -> None:
        if self._job is not None:
            self._job.start(self._install, self._around)

    def _install(self, opened: Opened) -> None:
        """Run `opened` from now on; in one step, for other threads may be inside `run`."""
        self._opened = opened
        if not all(ep.survives_fork for ep in opened.eps):
            forks.watch(self)
        from ort_lite.planning.placement import placement_line  # noqa: PLC0415 - see __init__

        line = placement_line(opened.prepared, opened.loaded.described)
        if line is not None:
            with logging_as(self._log_scope):
                log.warning("%s", line)

    def _metadata_of(self, source: object) -> ModelMetadata:
        from ort_lite.model import loader  # noqa: PLC0415 - few sessions ask
        from ort_lite.model.info import ModelMetadata  # noqa: PLC0415 - as above

        with closing(loader.load(source, self._options)) as loaded:
            return ModelMetadata.of(loaded.model)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        """Compute outputs.

        Args:
            output_names: Which outputs, in which order; None or empty for all.
            input_feed: Input name to numpy array (or a list, a scalar, an OrtValue).
            run_options: `terminate`, also set by another thread while the call lasts, stops
                it before the next node of the CPU EP or the next partition of another one.
                Parameters of its active adapters are fed as well.

        Returns:
            Arrays that belong to the caller; no later run changes them.

        Raises:
            ValueError: A required input is missing.
            InvalidArgument: A wrong name, type, rank or dimension.
            Fail: The session is closed, or `terminate` was set.
            EPFail: An execution provider failed.
        """
        if run_options is not None and run_options.active_adapters:
            from ort_lite.execution.adapters import with_adapters  # noqa: PLC0415 - few runs have any

            input_feed = with_adapters(input_feed, run_options.active_adapters)
        return self._run_plain(output_names, input_feed, run_options)

    def _run_plain(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        prepared = self._present().prepared
        began = perf_counter() if FIRST_RUN not in self._clock.phases else None
        if run_options is not None or self._is_watched:
            results = self._run_watched(prepared, input_feed, run_options)
        else:
            results = prepared.run(self._signature.feeds.ordered(input_feed))
        if began is not None:
            self._clock.note_first_run(perf_counter() - began)
        for surprise in self._signature.surprises(results):
            with logging_as(self._log_scope):
                log.warning("%s", surprise)
        if not output_names:
            return list(results)
        return [results[self._signature.position(name)] for name in output_names]

    def _run_watched(
        self,
        prepared: PreparedGraph,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
    ) -> Sequence[Value]:
        from ort_lite.execution.run_context import RunContext, running  # noqa: PLC0415 - see __init__

        context = RunContext(run_options, self._around.profiler, self._around.helpers)
        context.check()
        scope = self._log_scope
        if run_options is not None:
            scope = scope_of(run_options).within(scope)
        with logging_as(scope), self._around.span("model_run"), running(context):
            results = prepared.run(self._signature.feeds.ordered(input_feed))
            log.debug("the run of %r has ended", self)
        return results

    @property
    def _is_watched(self) -> bool:
        told = not self._log_scope.is_plain or log.isEnabledFor(DEBUG)
        return told or self._around.watched

    def end_profiling(self) -> str:
        """Write the profile and give its path; "" where profiling is not enabled.

        Raises:
            Fail: It cannot be written.
        """
        return self._around.end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, in nanoseconds since 1970; 0 where it is not enabled."""
        profiler = self._around.profiler
        return profiler.start_time_ns if profiler is not None else 0

    def get_inputs(self) -> list[NodeArg]:
        """What a feed must hold."""
        return list(self._signature.inputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """What a feed may hold besides."""
        return list(self._signature.overridable)

    def get_outputs(self) -> list[NodeArg]:
        """What `run` gives, in order."""
        return list(self._signature.outputs)

    def get_modelmeta(self) -> ModelMetadata:
        """Descriptions in the model file."""
        from ort_lite.model.info import ModelMetadata  # noqa: PLC0415 - few sessions are asked

        return ModelMetadata.of(self._present().loaded.model)

    def get_providers(self) -> list[str]:
        """Names of the execution providers that the session runs on, in order of preference.

        Those that compile in the background are among them once they have.
        """
        return [ep.name for ep in self._opened.eps] if self._opened is not None else []

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options that each provider was opened with."""
        return {name: dict(self._provider_options.get(name, {})) for name in self.get_providers()}

    def get_session_options(self) -> SessionOptions:
        """A copy of the options that the session was made with."""
        return self._options.snapshot()

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Change execution providers while the session is there.

        None of them has such options here. As in ONNX Runtime they are then ignored, which a
        warning says.

        Raises:
            RuntimeError: There are none, as in ONNX Runtime.
            Fail: The session is closed.
        """
        self._present()
        if not options:
            raise RuntimeError("No options were provided")
        with logging_as(self._log_scope):
            log.warning("%s: no execution provider heeds %s", self, ", ".join(sorted(options)))

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Make the session anew with other execution providers, from the model it was made of.

        Must not be called while another thread is inside `run`. If the new providers fail, the
        session is closed.

        Raises:
            OrtLiteError: As when a session is made.
        """
        self.close()
        InferenceSession.__init__(
            self,
            self._source,
            self._given,
            providers,
            provider_options,
            enable_fallback=self._fallback,
            disabled_optimizers=self._disabled,
        )

    def enable_fallback(self) -> None:
        """Let `set_providers` go on without a provider that cannot be opened.

        A run never goes on elsewhere: where an execution provider fails, it is EPFail.
        """
        self._fallback = True

    def disable_fallback(self) -> None:
        """Make a provider that cannot be opened an error of `set_providers`, as it is at first."""
        self._fallback = False

    def _open_surroundings(self) -> Surroundings:
        self._present()
        return self._around

    def lose_threads(self) -> object:
        """Refuse to run in a forked process, where the SDKs' threads are missing.

        Returns:
            What SDKs made, which must not be freed there.
        """
        self._lost_threads = True
        return (self._opened, self._job)

    def _present(self) -> Opened:
        if self._lost_threads:
            eps = self._opened.eps if self._opened is not None else ()
            lost = ", ".join(ep.name for ep in eps if not ep.survives_fork)
            raise Fail(
                "the session was made before this process was forked, and the threads of "
                f"{lost or 'its SDKs'} are not in the child: {forks.REMEDY}"
            )
        if self._opened is None:
            raise Fail("the session is closed")
        return self._opened

    def close(self) -> None:
        """Release devices, payloads and maps; calling it twice does nothing.

        Must not be called while another thread is inside `run`; calls of `run_async` are
        waited for, and a profile that has not been ended is written. A compile in the
        background is canceled and not waited for: what it holds goes when the SDK's compiler
        comes back.
        """
        if self._lost_threads:
            return
        self._around.close()
        left = self._job is not None and self._job.leave()
        opened, self._opened = self._opened, None
        if opened is not None and not left:
            opened.release()

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()

    _capi = "ort_lite.capi"  # the package whose binding_session has the class of `_sess`

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as various as the names
        """A private name of onnxruntime's session, such as `_inputs_meta`."""
        if name.startswith("__"):
            raise AttributeError(name)
        from ort_lite.session_members import private_member  # noqa: PLC0415 - few sessions are asked

        return private_member(self, name)

    def __repr__(self) -> str:
        """Model and providers."""
        name = self._opened.loaded.described if self._opened is not None else "closed"
        return f"<InferenceSession {name} {self.get_providers()}>"
