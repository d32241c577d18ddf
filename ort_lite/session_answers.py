"""The questions a session answers: inputs and outputs, providers, and decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.execution.session_services import SessionServices
    from ort_lite.model.info import ModelMetadata, NodeArg
    from ort_lite.options import SessionOptions
    from ort_lite.planning import explain
    from ort_lite.planning.assignment_info import OrtEpAssignedSubgraph
    from ort_lite.planning.memory_report import MemoryReport
    from ort_lite.start.load_report import BackgroundCompile, LoadReport
    from ort_lite.start.load_request import LoadClock
    from ort_lite.start.load_session import SessionState
    from ort_lite.start.prepare_model import PreparedModel
    from ort_lite.start.specialized_plans import SpecializedPlans


class SessionAnswers(ABC):
    """The questions that a session answers, which change nothing."""

    _capi: ClassVar[str]
    _source: object
    _initial_options: SessionOptions
    _options: SessionOptions
    _state: SessionState
    _services: SessionServices
    _clock: LoadClock
    _specialized: SpecializedPlans | None = None

    @abstractmethod
    def _present(self) -> PreparedModel:
        """The model that runs; Fail if the session is closed."""

    @abstractmethod
    def _settle(self) -> PreparedModel:
        """As `_present`, compiled for all execution providers: now, if a later run was to do it."""

    @abstractmethod
    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Make the session anew with other execution providers."""

    def end_profiling(self) -> str:
        """Write the profile and give its path; "" where profiling is not enabled.

        Raises:
            Fail: It cannot be written.
        """
        return self._services.end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, in nanoseconds since 1970; 0 if it is not enabled."""
        return self._services.profiling_start_ns

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Which EP runs which nodes; needs `session.record_ep_graph_assignment_info`.

        Raises:
            Fail: That entry is not "1", or the session is closed.
        """
        from ort_lite.planning.assignment_info import assignment_info  # noqa: PLC0415 - lazy: rare

        return assignment_info(self._settle().prepared, self._options, self.get_providers())

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a feed must contain."""
        return list(self._state.signature.inputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Initializers that a feed may override."""
        return list(self._state.signature.overridable)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs of `run`, in order."""
        return list(self._state.signature.outputs)

    def get_modelmeta(self) -> ModelMetadata:
        """Descriptions in the model file."""
        from ort_lite.model.info import ModelMetadata  # noqa: PLC0415 - lazy: reload

        return ModelMetadata.of(self._present().loaded.model)

    def get_providers(self) -> list[str]:
        """Names of the execution providers that the session runs on, in order of preference.

        Providers that compile in the background appear once they finish. One that is not opened,
        since an earlier start found that it runs no node of the model, is among them, and so are
        those that compile for a later run, as far as they seem to be here.
        """
        model, choice, deferred = self._state.model, self._state.choice, self._state.deferred
        if model is None:
            return []
        if deferred is not None:
            return list(deferred.list_options())
        return [ep.name for ep in model.eps] if choice is None else list(choice.names)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options that each provider was opened with."""
        model, deferred = self._state.model, self._state.deferred
        if deferred is not None:
            return deferred.list_options()
        options = model.provider_options if model is not None else None
        options = options or self._state.provider_options
        return {name: dict(options.get(name, {})) for name in self.get_providers()}

    def get_session_options(self) -> SessionOptions:
        """A copy of the options that the session was made with."""
        return self._options.snapshot()

    def explain(self) -> explain.SessionReport:
        """Report which provider runs each node, and why the others do not."""
        from ort_lite.context.signature_report import describe_signatures, signatures_named  # noqa: PLC0415 - lazy: rare
        from ort_lite.planning import explain  # noqa: PLC0415 - lazy: rare

        model, background = self._settle(), self.background_compile()
        compiling = () if self._state.job is None else (str(background),)
        plans = () if self._specialized is None else self._specialized.describe()
        return explain.report(
            model.prepared,
            model=model.loaded.description,
            providers=tuple(self.get_providers()),
            notes=(*self._state.notes, *model.notes, *compiling, *plans),
            transforms=model.transforms,
            signed_by=describe_signatures(signatures_named(model.loaded)),
        )

    def memory_report(self) -> MemoryReport:
        """Memory by device: weights, arena, bound tensors, peak, in bytes.

        Plans for input shapes have entries of their own.

        Raises:
            Fail: The session is closed.
        """
        from ort_lite.planning.memory_report import report_memory  # noqa: PLC0415 - lazy: rare
        from ort_lite.start.load_report import peak_rss  # noqa: PLC0415 - lazy: rare

        model = self._settle()
        plans = () if self._specialized is None else self._specialized.models()
        graphs = [(one.prepared, one.eps) for one in (model, *plans)]
        return report_memory(graphs, peak_rss())

    def background_compile(self, timeout: float | None = 0.0) -> BackgroundCompile:
        """State of the compile that `session.ep_compile_in_background` started.

        Without that option, of the compile for input shapes that come again and again.

        Args:
            timeout: Seconds to wait for its end; None waits for as long as it takes.
        """
        from ort_lite.start.load_report import BackgroundCompile  # noqa: PLC0415 - lazy: rare

        if self._state.job is None and self._specialized is not None:
            return self._specialized.outcome(timeout)
        if self._state.job is None:
            return BackgroundCompile(reason=self._state.no_job)
        return self._state.job.outcome(timeout)

    def load_report(self) -> LoadReport:
        """Time by phase, bytes, memory and cache result of making this session.

        Raises:
            Fail: The session is closed.
        """
        from ort_lite.start.load_report import LoadReport, peak_rss  # noqa: PLC0415 - lazy: rare

        model, background = self._present(), self.background_compile()
        return LoadReport(
            phases=dict(self._clock.phases),
            total=self._clock.total,
            model_bytes=len(model.loaded.data),
            payload_bytes=self._clock.payload_bytes + background.payload_bytes,
            peak_rss=peak_rss(),
            cache=model.cache,
            background=background,
        )
