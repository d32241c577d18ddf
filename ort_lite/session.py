"""InferenceSession: a model, plain or compiled, made ready and run."""

from __future__ import annotations

import os
from contextlib import closing, nullcontext
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, cast

from ctx_formats.lean_dataclass import replace
from ort_lite import forks
from ort_lite.context.keys import (
    CACHE_FOLDER_VARIABLE,
    CACHE_KEY,
    CONTEXT_FALLBACK_KEY,
    SHARE_KEY,
    SPECIALIZE_KEY,
    TRUST_KEY,
)
from ort_lite.providers import provider_list
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.run_forms import RunForms, memories_of
from ort_lite.session_log import get_logger, logging_as, scope_of
from ort_lite.shortages import shortage_as_status
from ort_lite.start.load_request import DEFERRED_COMPILE, LoadClock
from ort_lite.status import EPFail, Fail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from ort_lite.ep.device_tensors import DeviceMemory
    from ort_lite.model.info import ModelMetadata
    from ort_lite.options import SessionOptions
    from ort_lite.planning.prepared_graph import PreparedGraph
    from ort_lite.providers.provider_choice import ProviderChoice
    from ort_lite.providers.provider_list import ProviderRequest
    from ort_lite.start.load_session import SessionLoader, SessionState
    from ort_lite.start.prepare_model import PreparedModel

log = get_logger(__name__)

IN_PLACE_KEYS = (
    "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers",
)


def _membership(options: object) -> AbstractContextManager[None]:
    """The place of a session with these options in its group, where it shares contexts."""
    flag = getattr(options, "flag", None)  # it is checked later what the options are
    if flag is None or not flag(SHARE_KEY):
        return nullcontext()
    from ort_lite.context.shared_contexts import membership  # noqa: PLC0415 - lazy: rare

    return membership(cast("SessionOptions", options))


def _keeps_bytes(options: object) -> bool:
    """Whether the program promises not to write to a model in the ORT format in its memory."""
    config = getattr(options, "config", None) or {}
    return all(config.get(key) == "1" for key in IN_PLACE_KEYS)


def _find_choice_file(source: object, config: Mapping[str, str]) -> str:
    """Path of the file that says which execution providers the model needs; "" without one."""
    if CACHE_KEY not in config and CACHE_FOLDER_VARIABLE not in os.environ:
        return ""
    from ort_lite.model_cache.choice_file import find_choice_file  # noqa: PLC0415 - lazy: rare

    return find_choice_file(source, config, os.environ)


def _find_choice(
    source: object,
    options: SessionOptions,
    requests: Sequence[ProviderRequest],
    disabled: tuple[str, ...],
) -> tuple[ProviderChoice | None, tuple[str, ...]]:
    """The execution providers that an earlier start of the same request needed.

    And the inputs for which the model cache has plans.
    """
    from ort_lite.model_cache.kept_choice import find_record  # noqa: PLC0415 - lazy: rare

    record = find_record(source, options, requests, disabled)
    return (None, ()) if record is None else (record.choice(), record.inputs())


def _plan_start(
    options: SessionOptions,
    named: Sequence[ProviderRequest],
    requests: Sequence[ProviderRequest],
    source: object,
) -> tuple[bool, int]:
    """Whether EPs of a default list are opened only if the model needs them.

    And how many runs the default EP answers before the others compile, which decides the former.
    """
    runs = options.runs_before_compile()
    if runs:
        from ort_lite.start.deferred_compile import may_wait  # noqa: PLC0415 - lazy: reload

        if may_wait(options, requests, source):
            return False, runs
    if named or len(requests) < 3:
        return False, 0
    from ort_lite.start.plan_providers import may_plan  # noqa: PLC0415 - lazy: reload

    return may_plan(options, requests), 0


def _read_metadata(source: object, options: SessionOptions) -> ModelMetadata:
    """The model's metadata, read before the session is made."""
    from ort_lite.model import loader  # noqa: PLC0415 - lazy: rare
    from ort_lite.model.info import ModelMetadata  # noqa: PLC0415 - lazy: reload

    with closing(loader.load(source, options)) as loaded:
        return ModelMetadata.of(loaded.model)


def _start(
    loader: SessionLoader,
    source: object,
    requests: Sequence[ProviderRequest],
    choice: ProviderChoice | None,
) -> tuple[SessionLoader, object, SessionState]:
    """The loader and the model of a session, and what was loaded."""
    if CONTEXT_FALLBACK_KEY not in loader.options.config:
        return loader, source, loader.load(source, requests, choice)
    from ort_lite.start.context_fallback import load_or_fall_back  # noqa: PLC0415 - lazy: rare

    return load_or_fall_back(loader, source, requests, choice)


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
        **kwargs: Any,  # noqa: ANN401 - onnxruntime's signature
    ) -> None:
        """Load, partition and compile, or reload.

        Args:
            path_or_bytes: A model file, the bytes of one, or a model package: its folder, a URL
                or a ModelPackage, of which the variant that fits this machine is loaded.
            sess_options: Copied; later changes do not reach the session.
            providers: Execution providers in order of preference, each a name or a pair
                (name, options). None takes all that are installed, and opens those behind
                the first one only if the model needs them. The CPU EP is appended when it is
                missing. One that is not installed is a UserWarning, and the next one is taken.
            provider_options: Options for each of `providers`.
            kwargs: `enable_fallback` (1): whether to go on, with an "EP Error" on stderr, without a
                provider that is unknown or cannot be opened, and to run on the CPU EP
                once another EP has failed. `disabled_optimizers` (none): names of graph
                transformations that are not to run, as `explain()` gives them.
                `read_config_from_model`: 0 ignores what ORT_LOAD_CONFIG_FROM_MODEL=1 asks for.
                Any other is ignored, as by ONNX Runtime.

        Raises:
            OrtLiteError: One of its subclasses, as ONNX Runtime would.
            ValueError: The provider lists do not fit each other, and `enable_fallback` is 0.
            TypeError: `path_or_bytes` or `sess_options` is of the wrong type.
        """
        self._enable_fallback = int(kwargs.get("enable_fallback", 1)) == 1
        self._reads_config = int(kwargs.get("read_config_from_model", 1)) == 1
        self._disabled = tuple(kwargs.get("disabled_optimizers") or ())
        self._falling_back = Lock()
        self._replaced_models: list[PreparedModel] = []  # other threads may run them until `close`
        self._lost_threads = False
        if isinstance(path_or_bytes, bytearray | memoryview) and not _keeps_bytes(sess_options):
            path_or_bytes = bytes(path_or_bytes)  # its owner may write to it; a fallback reads it
        self._origin = path_or_bytes
        fallback = provider_list.Fallback(enabled=self._enable_fallback, providers=providers)
        with _membership(sess_options):
            try:
                named = provider_list.read_requests(providers, provider_options)
            except ValueError as exc:
                if not self._enable_fallback:
                    raise
                from ort_lite.providers.fallback import report_unusable  # noqa: PLC0415 - lazy: rare

                fallback.notes.append(report_unusable(exc, providers))
                named = provider_list.read_requests(DEFAULT_PROVIDER, None)
            self._load(sess_options, named, fallback)
        if fallback.notes and self._enable_fallback:
            self._enable_fallback = False  # once only, as in ONNX Runtime

    @shortage_as_status("the session cannot be created")
    def _load(
        self,
        sess_options: SessionOptions | None,
        named: Sequence[ProviderRequest],
        fallback: provider_list.Fallback,
    ) -> None:
        """Load the model on these providers and run it from now on; an error changes nothing."""
        clock = LoadClock()
        threads = getattr(sess_options, "intra_op_num_threads", 0)
        config = getattr(sess_options, "config", None) or {}
        held = TRUST_KEY in config
        chosen_before = not held and _find_choice_file(self._origin, config)
        begun = not (held or chosen_before) and provider_list.begin_all(
            provider_list.with_threads(named, threads)
        )
        # Here, and not above, since libraries load meanwhile (docs/adr/0015-early-loading.md).
        from ort_lite.options import SessionOptions  # noqa: PLC0415 - lazy: reload

        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options must be SessionOptions, not {sess_options!r}")
        # The user's options, from which `set_providers` starts again, and those that apply: with
        # what the model's own configuration and the process's threads add.
        initial_options = (sess_options or SessionOptions()).snapshot()
        options = provider_list.with_shared_threads(initial_options.snapshot())
        source, options, named, notes = self._apply_model_settings(options, named)
        requests = provider_list.choose_requests(
            options, named, lambda: _read_metadata(source, options)
        )
        choice, self._cached_inputs = (
            _find_choice(source, options, requests, self._disabled)
            if chosen_before and source is self._origin
            else (None, ())
        )
        loaded = begun
        measured = not named and options.selects_by_runs and not options.has_providers()
        plans, answers = _plan_start(options, named, requests, source)
        plans = plans and not (measured or choice)
        if not (held or answers) and (chosen_before or not named) and (choice or not measured):
            loaded = provider_list.begin_all(
                choice.pick(requests) if choice else requests[: 1 if plans else None]
            )
        from ort_lite.execution.session_services import SessionServices  # noqa: PLC0415 - lazy: reload
        from ort_lite.start.load_session import SessionLoader  # noqa: PLC0415 - lazy: reload

        loader = SessionLoader(
            options=options,
            clock=clock,
            services=SessionServices(options),
            disabled=self._disabled,
            fallback=fallback,
            sdks_loaded=loaded,
            sdks_held=held,
            measured=measured,
            plans=plans,
            runs_to_answer=answers,
        )
        self._log_scope = scope_of(options)
        try:
            with logging_as(self._log_scope), _membership(options):
                loader, source, state = _start(loader, source, requests, choice)
        except BaseException:
            loader.services.close()
            raise
        self._initial_options, self._options = initial_options, loader.options
        self._loader, self._clock, self._services = loader, clock, loader.services
        state = replace(state, notes=(*notes, *state.notes)) if notes else state
        self._take_over(source, state, requests)
        self._install(self._present())
        clock.stop()
        if state.job is not None:
            state.job.start(self._install, self._services)

    def _take_over(
        self, source: object, state: SessionState, requests: Sequence[ProviderRequest]
    ) -> None:
        """Run what was loaded, and count its runs."""
        self._source, self._state, self._lost_threads = source, state, False
        self._requests, self._specialized = requests, None
        least_runs = self._runs_before_plans = self._options.runs_before_plans()
        # With plans in the cache not the first run, whose answer is waited for most.
        unwatched = 1 if self._cached_inputs else least_runs // 2
        self._runs_to_watch = unwatched if least_runs and not state.is_interim else -1

    def _apply_model_settings(
        self, options: SessionOptions, named: Sequence[ProviderRequest]
    ) -> tuple[object, SessionOptions, Sequence[ProviderRequest], tuple[str, ...]]:
        """The model to load, options and providers, as a package or the model's metadata say.

        The last are notes about a package for `explain()`.
        """
        from ort_lite.model.loader import is_package  # noqa: PLC0415 - lazy: reload

        source: object = self._origin
        notes: tuple[str, ...] = ()
        if is_package(source):
            from ort_lite.packages.session_start import start_from_package  # noqa: PLC0415 - lazy: rare

            chosen = start_from_package(source, options, named)
            source, options, named, notes = (
                *(chosen.model_path, chosen.options, chosen.named),
                chosen.notes,
            )
        if "ORT_LOAD_CONFIG_FROM_MODEL" in os.environ and self._reads_config:
            from ort_lite.model.ort_config import configure_from_model  # noqa: PLC0415 - lazy: rare

            plain = options
            options = configure_from_model(plain, lambda: _read_metadata(source, plain), os.environ)
        options.runs_before_plans()  # what cannot be read is an error now
        return source, options, named, notes

    def _settle(self) -> PreparedModel:
        """See SessionAnswers; if the compile fails, the default EP goes on, with a warning."""
        with self._falling_back:
            first = self._present()
            if self._state.deferred is None:
                return first
            from ort_lite.start.interim_graph import hand_over  # noqa: PLC0415 - lazy: reload

            began = perf_counter()
            with logging_as(self._log_scope):
                state = self._loader.compile_later(self._state)
            self._clock.phases[DEFERRED_COMPILE] = perf_counter() - began
            self._loader = replace(self._loader, runs_to_answer=0)
            self._take_over(self._source, state, self._requests)
            if state.model is not None and state.model.prepared is not first.prepared:
                self._install(self._present())
                hand_over(first, self._present())
            return self._present()

    def _install(self, model: PreparedModel) -> None:
        """Run `model` from now on, in one assignment: other threads may be inside `run`."""
        model = model.forget_weights()
        self._state = replace(self._state, model=model)
        if self._state.deferred is not None or not all(ep.survives_fork for ep in model.eps):
            forks.watch(self)
        from ort_lite.planning.placement import placement_line  # noqa: PLC0415 - lazy: reload

        line = placement_line(model.prepared, model.loaded.description)
        if line is not None:
            with logging_as(self._log_scope):
                log.warning("%s", line)

    def _fall_back_after(self, error: EPFail, failed: PreparedGraph) -> PreparedGraph:
        from ort_lite.run_fallback import start_on_cpu  # noqa: PLC0415 - lazy: rare

        with self._falling_back:
            before, model = self._state, self._present()
            if model.prepared is not failed:  # another thread's run failed, too
                return model.prepared
            if not self._enable_fallback or self.get_providers() == [DEFAULT_PROVIDER]:
                raise error
            state = start_on_cpu(self._loader, self._source, error, model)
            self._enable_fallback = False  # once only, as in ONNX Runtime
            self._specialized, self._runs_to_watch = None, -1
            self._replaced_models.append(model)
            self._state = replace(
                state, job=before.job, no_job=before.no_job, notes=(*before.notes, *state.notes)
            )
            self._install(self._present())
            return self._present().prepared

    def _count_sooner(self) -> None:
        if self._runs_to_watch > 0 and SPECIALIZE_KEY not in self._options.config:
            self._runs_before_plans = self._clock.runs_worth_a_load(self._runs_before_plans)
            self._runs_to_watch = min(self._runs_to_watch, self._runs_before_plans // 2)

    def _count_shapes(self, model: PreparedModel) -> None:
        from ort_lite.start.specialized_plans import SpecializedPlans, may_specialize  # noqa: PLC0415 - lazy: rare

        with self._falling_back:
            unfit = self._loader.measured or self._loader.fallback.notes
            if unfit or self._specialized is not None:
                return
            if not may_specialize(model, self._options, self._requests):
                return
            least_runs = self._runs_before_plans
            if not self._cached_inputs:
                least_runs -= least_runs // 2
            plans = SpecializedPlans(
                *(model, self._loader, self._source, self._requests, least_runs),
                kept=self._cached_inputs,
            )
            self._specialized = model.prepared.specialized = plans

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Make the session anew with other execution providers, from the model it was made of.

        Must not be called while another thread is inside `run`. If the new providers fail, the
        session is closed. One that is not installed is a UserWarning, as for a new session; one
        that is unknown or cannot be opened is an error, whatever `enable_fallback` was.

        Raises:
            OrtLiteError: As when a session is made.
            ValueError: The provider lists do not fit each other.
        """
        fallback = provider_list.Fallback(enabled=False, providers=providers)
        with _membership(self._initial_options):
            named = provider_list.read_requests(providers, provider_options)
            self.close()
            self._load(self._initial_options, named, fallback)

    def device_memories(self) -> list[DeviceMemory]:
        """As RunForms; after a fallback those of the devices before it, too, for bound outputs."""
        models = (self._settle(), *self._replaced_models)
        return [memory for model in models for memory in memories_of(model)]

    def enable_fallback(self) -> None:
        """Let a run go on with the CPU EP alone once another execution provider has failed."""
        self._enable_fallback = True

    def disable_fallback(self) -> None:
        """Make the failure of an execution provider an error of the run: EPFail."""
        self._enable_fallback = False

    def lose_threads(self) -> object:
        """Refuse to run in a forked process, where the SDKs' threads are missing.

        Returns:
            What SDKs made, which must not be freed there.
        """
        held = (self._state, tuple(self._replaced_models))
        self._replaced_models.clear()
        self._falling_back = Lock()  # a thread that is not here may hold the other
        model = self._state.model
        eps = model.eps if model is not None else ()
        self._lost_threads = not all(ep.survives_fork for ep in eps)
        return held

    def _present(self) -> PreparedModel:
        model = self._state.model
        if self._lost_threads:
            eps = model.eps if model is not None else ()
            lost = ", ".join(ep.name for ep in eps if not ep.survives_fork)
            raise Fail(
                "the session was made before this process was forked, and the threads of "
                f"{lost or 'its SDKs'} are not in the child: {forks.REMEDY}"
            )
        if model is None:
            raise Fail("the session is closed")
        return model

    def close(self) -> None:
        """Release devices, payloads and maps; calling it twice does nothing.

        Must not be called while another thread is inside `run`; calls of `run_async` are
        waited for, and a profile that has not been ended is written. A compile in the
        background is canceled and not waited for: what it holds goes when the SDK's compiler
        comes back.

        Raises:
            Fail: A callback of its own run_async closes it; it stays open.
        """
        if self._lost_threads:
            return
        self._services.close()
        job = self._state.job
        thread_releases = job is not None and job.leave()
        model, deferred = self._state.model, self._state.deferred
        self._state = replace(self._state, model=None, deferred=None)
        if deferred is not None:
            deferred.source.close()
        for replaced in self._replaced_models:
            replaced.release()
        self._replaced_models.clear()
        if model is not None and not thread_releases:
            model.release()

    def __enter__(self) -> Self:
        """Return this session."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close this session."""
        self.close()

    _capi = "ort_lite.capi"  # the package whose binding_session has the class of `_sess`

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as various as the names
        """A private name of onnxruntime's session, such as `_inputs_meta`."""
        if name.startswith("__"):
            raise AttributeError(name)
        from ort_lite.session_members import private_member  # noqa: PLC0415 - lazy: rare

        return private_member(self, name)

    def __repr__(self) -> str:
        """Show the model and its providers."""
        model = self._state.model
        name = model.loaded.description if model is not None else "closed"
        return f"<InferenceSession {name} {self.get_providers()}>"
