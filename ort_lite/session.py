"""InferenceSession: a model, plain or compiled, made ready and run."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

from ort_lite import model_loader
from ort_lite.context_nodes import has_context_nodes
from ort_lite.context_target import ENABLE_KEY
from ort_lite.feeds import Feeds
from ort_lite.load_report import FIRST_RUN, LoadClock, LoadReport, peak_rss
from ort_lite.model_cache.settings import session_cache
from ort_lite.model_info import ModelMetadata, NodeArg
from ort_lite.opening import Opened, Opening, make_ready
from ort_lite.options import RunOptions, SessionOptions
from ort_lite.placement import placement_line
from ort_lite.provider_list import begin_all, open_all, requested, with_threads
from ort_lite.run_context import RunContext, running
from ort_lite.run_forms import RunForms
from ort_lite.session_log import get_logger, logging_as, scope_of
from ort_lite.session_threads import Surroundings
from ort_lite.shared_reading import SHARE_KEY
from ort_lite.status import Fail, InvalidArgument
from ort_lite.tensor_values import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite import explain
    from ort_lite.assignment_info import OrtEpAssignedSubgraph
    from ort_lite.early_examination import EarlyExamination
    from ort_lite.execution_provider import ExecutionProvider, Value
    from ort_lite.model_cache.cached_model import CachedModel
    from ort_lite.model_loader import LoadedModel
    from ort_lite.preparation import PreparedGraph
    from ort_lite.provider_list import Request

log = get_logger(__name__)


class InferenceSession(RunForms):
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
        self._source, self._fallback = path_or_bytes, enable_fallback
        self._given = (sess_options or SessionOptions()).snapshot()
        self._options = self._given.snapshot()
        self._log_scope = scope_of(self._options)
        if not providers and self._options.selects_devices:
            from ort_lite.device_policy import add_providers  # noqa: PLC0415 - few sessions ask

            add_providers(self._options, lambda: self._metadata_of(path_or_bytes))
        wanted = with_threads(
            requested(self._options, providers, provider_options),
            self._options.intra_op_num_threads,
        )
        begin_all(wanted)
        self._loaded: LoadedModel | None = None
        self._eps: list[ExecutionProvider] = []
        self._prepared: PreparedGraph | None = None
        self._disabled = tuple(disabled_optimizers or ())
        self._around = Surroundings(self._options)
        try:
            with logging_as(self._log_scope):
                opened = self._open(path_or_bytes, wanted, fallback=enable_fallback)
        except BaseException:
            self.close()
            raise
        self._prepared, self._loaded, self._cache = opened.prepared, opened.loaded, opened.cache
        self._transforms = opened.transforms
        graph = opened.prepared.graph
        inputs = (*graph.inputs, *graph.overridable)
        backed = opened.loaded.model.graph.initializers
        defaults = {i.name: to_numpy(backed[i.name]) for i in graph.overridable}
        self._feeds = Feeds(inputs, defaults)
        self._input_args = [NodeArg.of(info) for info in graph.inputs]
        self._overridable_args = [NodeArg.of(info) for info in graph.overridable]
        self._output_args = [NodeArg.of(info) for info in graph.outputs]
        self._positions = {info.name: i for i, info in enumerate(graph.outputs)}

        self._clock.stop()

    def _open(self, source: object, wanted: Sequence[Request], *, fallback: bool) -> Opened:
        cached = self._cached(source)
        early: EarlyExamination | None = None
        if cached is None:
            with self._clock.phase("read model"), self._around.loading(source):
                self._loaded = model_loader.load(source, self._options)
            early = self._examined_early(self._loaded)
        try:
            with self._clock.phase("open providers"):
                kernels = self._options.custom_kernels
                self._eps = open_all(wanted, fallback=fallback, kernels=kernels)
            self._provider_options = {
                ep.name: dict(r.options) for ep in self._eps for r in wanted if r.name == ep.name
            }
            opening = Opening(
                options=self._options,
                eps=self._eps,
                provider_options=self._provider_options,
                clock=self._clock,
                disabled=self._disabled,
                pool=self._around.pool(),
                early=early,
            )
            with self._around.span("session_initialization"):
                if cached is not None:
                    opened = cached.open(opening)
                    self._loaded = opened.loaded
                else:
                    assert self._loaded is not None, "read above"
                    opened = make_ready(self._loaded, opening)
        finally:
            if early is not None:
                early.close()
            if cached is not None and cached.loaded is not self._loaded:
                cached.close()
        line = placement_line(opened.prepared, opened.loaded.described)
        if line is not None:
            log.warning("%s", line)
        return opened

    def _metadata_of(self, source: object) -> ModelMetadata:
        with closing(model_loader.load(source, self._options)) as loaded:
            return ModelMetadata.of(loaded.model)

    def _examined_early(self, loaded: LoadedModel) -> EarlyExamination | None:
        if not has_context_nodes(loaded.model.graph):
            return None
        from ort_lite.early_examination import EarlyExamination  # noqa: PLC0415 - contexts only

        return EarlyExamination(loaded, self._options)

    def _cached(self, source: object) -> CachedModel | None:
        """The model, to be looked for in the cache; None where none is wanted."""
        settings = session_cache(self._options.config, os.environ)
        writes = self._options.flag(ENABLE_KEY) or self._options.optimized_model_filepath
        given = self._options.given_weights is not None  # of which the cache has no digest
        if settings is None or writes or given or self._options.flag(SHARE_KEY):
            return None
        from ort_lite.model_cache.cached_model import CachedModel  # noqa: PLC0415 - if wanted

        return CachedModel(settings, source, self._options, self._clock)

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

        Returns:
            Arrays that belong to the caller; no later run changes them.

        Raises:
            ValueError: A required input is missing.
            InvalidArgument: A wrong name, type, rank or dimension.
            Fail: The session is closed, or `terminate` was set.
            EPFail: An execution provider failed.
        """
        prepared = self._prepared
        if prepared is None:
            raise Fail("the session is closed")
        if run_options is not None or self._is_watched:
            results = self._run_watched(prepared, input_feed, run_options)
        elif FIRST_RUN not in self._clock.phases:
            with self._clock.phase(FIRST_RUN):
                results = prepared.run(self._feeds.ordered(input_feed))
        else:
            results = prepared.run(self._feeds.ordered(input_feed))
        if not output_names:
            return list(results)
        return [results[self._position(name)] for name in output_names]

    def _run_watched(
        self,
        prepared: PreparedGraph,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
    ) -> Sequence[Value]:
        context = RunContext(run_options, self._around.profiler)
        context.check()
        scope = self._log_scope
        if run_options is not None:
            scope = scope_of(run_options).within(scope)
        with logging_as(scope), self._around.span("model_run"), running(context):
            results = prepared.run(self._feeds.ordered(input_feed))
            log.debug("the run of %r has ended", self)
        return results

    @property
    def _is_watched(self) -> bool:
        told = not self._log_scope.is_plain or log.isEnabledFor(logging.DEBUG)
        return told or self._around.profiler is not None

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

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Which EP runs which nodes; needs `session.record_ep_graph_assignment_info`.

        Raises:
            Fail: That entry is not "1", or the session is closed.
        """
        from ort_lite.assignment_info import assignment_info  # noqa: PLC0415 - few sessions ask

        if self._prepared is None:
            raise Fail("the session is closed")
        return assignment_info(self._prepared, self._options)

    def _position(self, name: str) -> int:
        position = self._positions.get(name)
        if position is None:
            raise InvalidArgument(f"Invalid output name:{name}. Outputs: {list(self._positions)}")
        return position

    def get_inputs(self) -> list[NodeArg]:
        """What a feed must hold."""
        return list(self._input_args)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """What a feed may hold besides."""
        return list(self._overridable_args)

    def get_outputs(self) -> list[NodeArg]:
        """What `run` gives, in order."""
        return list(self._output_args)

    def get_modelmeta(self) -> ModelMetadata:
        """Descriptions in the model file."""
        return ModelMetadata.of(self._open_model().model)

    def get_providers(self) -> list[str]:
        """Names of the session's execution providers, in order of preference."""
        return [ep.name for ep in self._eps]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options that each provider was opened with."""
        return {name: dict(options) for name, options in self._provider_options.items()}

    def get_session_options(self) -> SessionOptions:
        """A copy of the options that the session was made with."""
        return self._options.snapshot()

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

    def explain(self) -> explain.SessionReport:
        """Which node runs where, and why not elsewhere."""
        from ort_lite import explain  # noqa: PLC0415 - a session that is only run needs it not

        if self._prepared is None:
            raise Fail("the session is closed")
        return explain.report(
            self._prepared,
            model=self._open_model().described,
            providers=tuple(self.get_providers()),
            notes=(),
            transforms=self._transforms,
        )

    def load_report(self) -> LoadReport:
        """What it took to get here: time by phase, bytes, memory, and what the cache did.

        Raises:
            Fail: The session is closed.
        """
        return LoadReport(
            phases=dict(self._clock.phases),
            total=self._clock.total,
            model_bytes=len(self._open_model().data),
            payload_bytes=self._clock.payload_bytes,
            peak_rss=peak_rss(),
            cache=self._cache,
        )

    def _open_surroundings(self) -> Surroundings:
        self._open_model()
        return self._around

    def _open_model(self) -> LoadedModel:
        if self._loaded is None:
            raise Fail("the session is closed")
        return self._loaded

    def close(self) -> None:
        """Release devices, payloads and maps; calling it twice does nothing.

        Must not be called while another thread is inside `run`; calls of `run_async` are
        waited for, and a profile that has not been ended is written.
        """
        self._around.close()
        if self._prepared is not None:
            self._prepared.release()
            self._prepared = None
        for ep in self._eps:
            ep.release()
        self._eps = []
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Model and providers."""
        name = self._loaded.described if self._loaded is not None else "closed"
        return f"<InferenceSession {name} {self.get_providers()}>"
