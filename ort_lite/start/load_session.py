"""From a model's path or bytes, and requests for providers, to the state of a session."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.context.keys import CACHE_FOLDER_VARIABLE, CACHE_KEY
from ort_lite.model import loader
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.provider_list import applied_options, begin_all, open_all
from ort_lite.session_log import get_logger
from ort_lite.start.load_request import BACKGROUND_KEY, SHARED_ARENA_KEY, LoadClock, LoadRequest
from ort_lite.start.prepare_model import UncachedModel
from ort_lite.status import load_canceled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.execution.session_services import SessionServices
    from ort_lite.execution.signature import Signature
    from ort_lite.model.fixed_inputs import FixedInputs
    from ort_lite.model.shape_inference import Inferred
    from ort_lite.options import SessionOptions
    from ort_lite.providers.provider_choice import ProviderChoice
    from ort_lite.providers.provider_list import Fallback, ProviderRequest
    from ort_lite.start.background_compile import BackgroundJob
    from ort_lite.start.deferred_compile import DeferredCompile
    from ort_lite.start.prepare_model import ModelSource, PreparedModel


log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """Everything of a session that loading, a fallback, a background compile or `close` replaces.

    Attributes:
        model: The model that runs; None once the session is closed.
        provider_options: By EP name, the options that it was created with; includes EPs that
            compile in the background.
        signature: Inputs and outputs.
        job: The background compile; None if absent.
        no_job: Why there is no background compile although the options ask for one.
        notes: Lines for `explain()` about providers that the session goes on without.
        choice: Its execution providers, where an earlier start found that it needs but some.
        deferred: The compile that waits for a later run; None if absent.
    """

    model: PreparedModel | None
    provider_options: Mapping[str, Mapping[str, str]]
    signature: Signature
    job: BackgroundJob | None = None
    no_job: str = ""
    notes: tuple[str, ...] = ()
    choice: ProviderChoice | None = None
    deferred: DeferredCompile | None = None

    @property
    def is_interim(self) -> bool:
        """Whether the model that runs is going to be replaced by a compile."""
        return self.job is not None or self.deferred is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLoader:
    """Loads models for one session.

    Attributes:
        options: Of the session.
        clock: Times the phases.
        services: The session's threads and profiler.
        disabled: Names of transformations that must not run.
        fallback: Decides about providers that are missing.
        sdks_loaded: Whether the process has loaded the EPs' SDKs: then starting threads would
            cost more than the overlap saves.
        sdks_held: Whether SDKs begin to load only once the model's signature is verified.
        measured: Whether a plain model is compiled for each device, and the fastest taken.
        plans: Whether the EPs behind the first one are opened only if the model needs them; its
            choice is then None. Decided later where runs are answered first.
        runs_to_answer: How many runs of a plain model the default EP answers before the others
            compile, or RUNS_BY_ESTIMATE.
        fixed_inputs: Shapes and values of inputs that the plain model is made ready for; None for
            all that it accepts.
        inferred: The plain model with its types, where they were inferred already.
    """

    options: SessionOptions
    clock: LoadClock
    services: SessionServices
    disabled: tuple[str, ...]
    fallback: Fallback
    sdks_loaded: bool = False
    sdks_held: bool = False
    measured: bool = False
    plans: bool = False
    runs_to_answer: int = 0
    fixed_inputs: FixedInputs | None = None
    inferred: Inferred | None = None

    def load(
        self,
        path_or_bytes: object,
        providers: Sequence[ProviderRequest],
        choice: ProviderChoice | None = None,
    ) -> SessionState:
        """Read the model, create the EPs, reload or compile; an error leaves nothing open.

        Args:
            path_or_bytes: The model.
            providers: All execution providers of the session.
            choice: Those of them that the model needs, from an earlier start; None opens all.

        Raises:
            OrtLiteError: As a session.
            TypeError: `path_or_bytes` is neither a path nor bytes.
        """
        if self.options.flag(BACKGROUND_KEY):
            from ort_lite.start.background_compile import check_options  # noqa: PLC0415 - lazy: rare

            check_options(self.options)
        source = self._open_source(path_or_bytes)
        if self.runs_to_answer:
            with ExitStack() as undo:
                undo.callback(source.close)
                first = self._load_first(source, providers)
                undo.pop_all()
            if first is not None:
                return first
            return self._begin_compile(providers).load_from(source, providers, choice)
        return self.load_from(source, providers, choice)

    def _load_first(
        self, source: ModelSource, providers: Sequence[ProviderRequest]
    ) -> SessionState | None:
        """The model on the default EP, and a compile for a later run; None if that cannot wait."""
        from ort_lite.start.deferred_compile import (  # noqa: PLC0415 - lazy: reload
            DeferredCompile,
            may_answer,
            prepare_first,
        )

        if not may_answer(source.load_plain().model):
            return None
        with ExitStack() as undo:
            home = [one for one in providers if one.name == DEFAULT_PROVIDER]
            request = self._make_request(providers, home, None, undo)
            first = prepare_first(source, request)
            if first is None:
                return None
            undo.callback(first.model.prepared.release)
            _refuse_old_numpy()
            deferred = DeferredCompile(source, providers, self.runs_to_answer, first)
            undo.pop_all()
        return SessionState(
            model=replace(first.model, after_run=deferred.note_run),
            provider_options=request.provider_options,
            signature=first.signature,
            notes=tuple(self.fallback.notes),
            deferred=deferred,
        )

    def _begin_compile(self, providers: Sequence[ProviderRequest]) -> SessionLoader:
        """The loader of a session that does not wait; SDKs begin to load."""
        from ort_lite.start.plan_providers import may_plan  # noqa: PLC0415 - lazy: reload

        plans = may_plan(self.options, providers)
        begin_all(providers[: 1 if plans else None])
        return replace(self, runs_to_answer=0, plans=plans)

    def compile_later(self, first: SessionState) -> SessionState:
        """The state of a session that has compiled what `load` left for a later run.

        If that fails, `first` as it is, with a warning and a note.
        """
        deferred, before = first.deferred, first.model
        assert deferred is not None, "its compile waits"
        assert before is not None, "a session that is closed runs nothing"
        try:
            loader = self._begin_compile(deferred.requests)
            loader = replace(loader, clock=LoadClock(), inferred=deferred.inferred)
            state = loader.load_from(deferred.source, deferred.requests)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the session must report it
            note = f"{DEFAULT_PROVIDER} goes on, since the compile for later runs failed: {exc}"
            log.warning("%s: %s", before.loaded.description, note)
            model = replace(before, after_run=None)
            return replace(first, model=model, notes=(*first.notes, note), deferred=None)
        return replace(state, notes=tuple(dict.fromkeys((*first.notes, *state.notes))))

    def load_from(
        self,
        source: ModelSource,
        providers: Sequence[ProviderRequest],
        choice: ProviderChoice | None = None,
    ) -> SessionState:
        """As `load`, from a model that is open; an error closes it."""
        in_background = self.options.flag(BACKGROUND_KEY)
        with ExitStack() as undo:
            undo.callback(source.close)
            if (
                self.options.is_canceled()
            ):  # a model that cannot be read says that, as in ONNX Runtime
                raise load_canceled()
            measured = self.measured and choice is None and not _is_context(source)
            if measured:
                source = self._measure(source)
                needed: Sequence[ProviderRequest] = [
                    one for one in providers if one.name == DEFAULT_PROVIDER
                ]
            else:
                needed = providers if choice is None else choice.pick(providers)
            planned = self.plans and not in_background and _is_to_be_placed(source)
            begins = self.sdks_held or (self.plans and not planned)
            loaded = begin_all(needed) if begins else self.sdks_loaded
            early = None if loaded else source.examine_early(providers, self.disabled)
            if early is not None:
                undo.callback(early.close)
            if planned:
                request, choice = self._make_planned_request(source, providers, undo)
            else:
                request = self._make_request(providers, needed, choice, undo)
            request = replace(request, early=early, measured=measured)
            with self.services.span("session_initialization"):
                model, job, no_job = _load_model(source, request, in_background=in_background)
            undo.callback(model.prepared.release)
            signature = model.prepared.signature(model.loaded.model.graph.initializers)
            _refuse_old_numpy()
            model = replace(model, origin=source.stamps())
            undo.pop_all()
        if early is not None:
            early.close()
        source.close(taken=model.loaded)
        if job is None:
            model.loaded.close()  # nothing reads its bytes any more
        return SessionState(
            model=model,
            provider_options=model.provider_options or request.provider_options,
            signature=signature,
            job=job,
            no_job=no_job,
            notes=(*self.fallback.notes, *(choice.notes if choice is not None else ())),
            choice=choice,
        )

    def _make_planned_request(
        self, source: ModelSource, providers: Sequence[ProviderRequest], undo: ExitStack
    ) -> tuple[LoadRequest, ProviderChoice | None]:
        """A request with the first EP, the default one, and those others that the model needs."""
        from ort_lite.start.plan_providers import may_move_steps, plan_providers  # noqa: PLC0415 - lazy: reload
        from ort_lite.start.prepare_model import transform_model  # noqa: PLC0415 - lazy: reload

        ends = (providers[0], providers[-1])
        plain = source.load_plain().model
        with self.clock.phase("transform"):  # while SDKs load
            inferred = self.inferred or loader.infer_certain(plain, self.options.free_dimensions)
        request = self._make_request(providers, ends, None, undo)
        request = replace(request, inferred=inferred)
        if len(request.eps) < len(ends):  # the first is not here: the second is the first one now
            return self._add_opened(request, providers, providers[1:-1], undo), None
        transformed = transform_model(plain, request)
        plan = plan_providers(
            providers,
            request.eps,
            lambda: transformed.graph,
            for_many_runs=self.fixed_inputs is not None and may_move_steps(self.options),
        )
        request = self._add_opened(request, providers, plan.opened, undo, plan.choice)
        request = replace(request, transformed=transformed, assignment=plan.assignment)
        return replace(request, planned=True), plan.choice

    def _add_opened(
        self,
        request: LoadRequest,
        providers: Sequence[ProviderRequest],
        more: Sequence[ProviderRequest],
        undo: ExitStack,
        choice: ProviderChoice | None = None,
    ) -> LoadRequest:
        """The request with more EPs, before the default one."""
        *first, default = request.eps
        with self.clock.phase("open providers"):
            opened = open_all(more, fallback=self.fallback, others=request.eps) if more else []
        for ep in opened:
            undo.callback(ep.release)
        return self._request_of((*first, *opened, default), providers, providers, choice)

    def _make_request(
        self,
        providers: Sequence[ProviderRequest],
        needed: Sequence[ProviderRequest],
        choice: ProviderChoice | None,
        undo: ExitStack,
    ) -> LoadRequest:
        with self.clock.phase("open providers"):
            kernels = self.options.custom_kernels
            eps = open_all(needed, fallback=self.fallback, kernels=kernels)
        for ep in eps:
            undo.callback(ep.release)
        return self._request_of(eps, providers, needed, choice)

    def _request_of(
        self,
        eps: Sequence[ExecutionProvider],
        providers: Sequence[ProviderRequest],
        needed: Sequence[ProviderRequest],
        choice: ProviderChoice | None,
    ) -> LoadRequest:
        if self.options.flag(SHARED_ARENA_KEY):
            from ort_lite.start.share_arenas import share_arenas  # noqa: PLC0415 - lazy: rare

            share_arenas(eps)
        return LoadRequest(
            options=self.options,
            eps=eps,
            provider_options=applied_options(
                [*providers, *needed], [ep.name for ep in eps] if choice is None else choice.names
            ),
            clock=self.clock,
            disabled=self.disabled,
            requested=() if self.fallback.notes else providers,
            choice=choice,
            ordered=any(provider.explicit for provider in providers),
            fixed_inputs=self.fixed_inputs,
            inferred=self.inferred,
        )

    def _measure(self, source: ModelSource) -> ModelSource:
        """`source` as a model that is compiled for each device; InvalidArgument if it cannot be."""
        from ort_lite.start.fastest import FastestModel, check_options  # noqa: PLC0415 - lazy: rare

        check_options(self.options)
        return FastestModel(source, self.options.intra_op_num_threads)

    def _open_source(self, path_or_bytes: object) -> ModelSource:
        """The model, through the model cache where the options ask for it."""
        if CACHE_KEY not in self.options.config and CACHE_FOLDER_VARIABLE not in os.environ:
            return self._read_uncached(path_or_bytes)
        from ort_lite.model_cache.settings import bypass_reason, session_cache  # noqa: PLC0415 - lazy: rare

        settings = session_cache(self.options.config, os.environ)
        reason = bypass_reason(self.options) if settings is not None else ""
        if settings is None or reason:
            return self._read_uncached(path_or_bytes, reason)
        from ort_lite.model_cache.cached_model import CachedModel  # noqa: PLC0415 - lazy: rare

        return CachedModel(settings, path_or_bytes, self.options, self.clock, self.fixed_inputs)

    def _read_uncached(self, path_or_bytes: object, bypass_reason: str = "") -> ModelSource:
        with self.clock.phase("read model"), self.services.loading_span(path_or_bytes):
            loaded = loader.load(path_or_bytes, self.options)
        if self.fixed_inputs is not None:
            from ort_lite.start.fix_model import fix_model  # noqa: PLC0415 - lazy: rare

            loaded = fix_model(loaded, self.fixed_inputs)
        return UncachedModel(loaded, self.options, bypass_reason)


def _is_to_be_placed(source: ModelSource) -> bool:
    """Whether a model is plain, and types and transformations are not recorded in it."""
    from ort_lite.context.nodes import has_context_nodes  # noqa: PLC0415 - lazy: reload

    model = source.load_plain().model
    return model.kernel_types is None and not has_context_nodes(model.graph)


def _refuse_old_numpy() -> None:
    """Refuse a numpy that is too old; it is imported by now.

    Raises:
        Fail: It is.
    """
    if not hasattr(sys.modules["numpy"], "unstack"):  # of 2.1, without another module
        from ort_lite.numpy_baseline import require_numpy  # noqa: PLC0415 - lazy: rare

        require_numpy()


def _is_context(source: ModelSource) -> bool:
    """Whether a model is compiled already, so that nothing is to be chosen."""
    from ort_lite.context.nodes import has_context_nodes  # noqa: PLC0415 - lazy: reload

    return has_context_nodes(source.load_plain().model.graph)


def _load_model(
    source: ModelSource, request: LoadRequest, *, in_background: bool
) -> tuple[PreparedModel, BackgroundJob | None, str]:
    """The model to run first, the compile to run in the background, and why it is missing."""
    if in_background:
        from ort_lite.start.background_compile import load_initial  # noqa: PLC0415 - lazy: rare

        return load_initial(source, request)
    return source.load_compiled(request) or source.compile(request), None, ""
