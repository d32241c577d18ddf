"""From a decoded model and execution providers to a prepared graph.

`compile_model` is the one road from a plain model, `reload_context` the one from a context model.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from ctx_formats.lean_dataclass import dataclass, field, replace
from ort_lite.context.keys import ENABLE_KEY, PROBE_KEY
from ort_lite.context.nodes import has_context_nodes
from ort_lite.ep.interface import SupportsCompileByShape
from ort_lite.start.load_request import CacheOutcome
from ort_lite.status import load_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.mapped_file import FileStamp
    from ctx_formats.onnx_model import Model
    from ort_lite.context.destinations import StagesModels
    from ort_lite.context.payload_checks import PayloadChecks
    from ort_lite.context.target import ContextTarget
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.planning.prepared_graph import PreparedGraph
    from ort_lite.planning.transformed_graph import TransformedGraph
    from ort_lite.providers.provider_choice import ProviderChoice
    from ort_lite.providers.provider_list import ProviderRequest
    from ort_lite.start.load_request import LoadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedModel:
    """A model that is ready to run; its owner releases the graph, then closes the model.

    Attributes:
        loaded: The decoded model.
        prepared: Its partitions, compiled.
        eps: The execution providers that run it, in order of preference.
        transforms: How often each transformation fired.
        cache: Result of the model cache.
        origin: Stamps of the user's model files when they were read or, on a cache hit, digested.
        after_run: Called after each run that it has answered; None if nobody waits for one.
        notes: Lines for `explain()` about how its execution providers were chosen.
        provider_options: By EP name, where compiling chose the EPs; None where the session did.
    """

    loaded: LoadedModel
    prepared: PreparedGraph
    eps: tuple[ExecutionProvider, ...]
    transforms: Mapping[str, int] = field(default_factory=dict)
    cache: CacheOutcome = field(default_factory=CacheOutcome)
    origin: tuple[FileStamp, ...] = ()
    after_run: Callable[[], None] | None = None
    notes: tuple[str, ...] = ()
    provider_options: Mapping[str, Mapping[str, str]] | None = None

    def forget_weights(self) -> PreparedModel:
        """A copy without the weights that no execution provider reads from now on."""
        self.prepared.forget_weights()
        return replace(self, loaded=self.loaded.without_weights())

    def release(self) -> None:
        """Release the graph, then the EPs, then the model's bytes."""
        self.prepared.release()
        for ep in self.eps:
            ep.release()
        self.loaded.close()


class ModelSource(Protocol):
    """A model that a session loads: straight from its file, or through the model cache."""

    def load_plain(self) -> LoadedModel:
        """The user's model, decoded."""
        ...

    def examine_early(
        self, requests: Sequence[ProviderRequest], disabled: Sequence[str]
    ) -> PayloadChecks | None:
        """Begin to check the payloads that `load_compiled` will need, as far as they are known.

        Args:
            requests: The execution providers that are about to be created.
            disabled: Names of transformations that are not to run.
        """
        ...

    def load_compiled(self, request: LoadRequest) -> PreparedModel | None:
        """The model from its compiled form; None if none of its forms fits."""
        ...

    def compile(self, request: LoadRequest) -> PreparedModel:
        """The model, compiled where `load_compiled` returned None."""
        ...

    def keep_choice(self, choice: ProviderChoice, request: LoadRequest) -> bool:
        """Keep the execution providers that the model runs on for the next start; whether it is."""
        ...

    def stamps(self) -> tuple[FileStamp, ...]:
        """Stamps of the model's files when read or digested; empty for a model from memory."""
        ...

    def cache_outcome(self) -> CacheOutcome:
        """Result of the model cache, between `load_compiled` and `compile`."""
        ...

    def close(self, taken: LoadedModel | None = None) -> None:
        """Close the model, unless it is `taken`, which a session owns."""
        ...


@dataclass(frozen=True, slots=True)
class UncachedModel:
    """A model that does not use the model cache.

    Attributes:
        bypass_reason: Why it bypasses the cache that the session asked for, or "".
    """

    loaded: LoadedModel
    options: SessionOptions
    bypass_reason: str = ""

    def is_compiled(self) -> bool:
        """True for a context model."""
        return has_context_nodes(self.loaded.model.graph)

    def examine_early(
        self,
        requests: Sequence[ProviderRequest],  # noqa: ARG002 - see ModelSource
        disabled: Sequence[str],  # noqa: ARG002 - see ModelSource
    ) -> PayloadChecks | None:
        """See ModelSource."""
        return examine_early(self.loaded, self.options) if self.is_compiled() else None

    def load_plain(self) -> LoadedModel:
        """See ModelSource."""
        return self.loaded

    def load_compiled(self, request: LoadRequest) -> PreparedModel | None:
        """See ModelSource."""
        return reload_context(self.loaded, request) if self.is_compiled() else None

    def compile(self, request: LoadRequest) -> PreparedModel:
        """See ModelSource."""
        return replace(compile_plain(self.loaded, request), cache=self.cache_outcome())

    def keep_choice(
        self,
        choice: ProviderChoice,  # noqa: ARG002 - see ModelSource
        request: LoadRequest,  # noqa: ARG002 - see ModelSource
    ) -> bool:
        """False: there is nowhere to keep it."""
        return False

    def stamps(self) -> tuple[FileStamp, ...]:
        """See ModelSource."""
        return self.loaded.stamps

    def cache_outcome(self) -> CacheOutcome:
        """See ModelSource."""
        return CacheOutcome(reason=self.bypass_reason)

    def close(self, taken: LoadedModel | None = None) -> None:
        """See ModelSource."""
        if self.loaded is not taken:
            self.loaded.close()


def examine_early(loaded: LoadedModel, options: SessionOptions) -> PayloadChecks:
    """Begin to check the payloads of a context model; the caller closes it."""
    from ort_lite.context.payload_checks import PayloadChecks  # noqa: PLC0415 - lazy: reload

    checks = PayloadChecks(loaded, options)
    checks.start()
    return checks


def prepare_model(loaded: LoadedModel, request: LoadRequest) -> PreparedModel:
    """Reload a context model, or compile a plain one.

    Raises:
        OrtLiteError: As a session.
    """
    if has_context_nodes(loaded.model.graph):
        return reload_context(loaded, request)
    return compile_plain(loaded, request)


def reload_context(loaded: LoadedModel, request: LoadRequest) -> PreparedModel:
    """Import the payloads of a context model.

    Raises:
        OrtLiteError: As a session.
    """
    from ort_lite.context.reload import reload  # noqa: PLC0415 - lazy: reload

    probe = None
    if PROBE_KEY in request.options.config:
        from ort_lite.probing.probe import probe_of  # noqa: PLC0415 - lazy: rare

        probe = probe_of(
            request.options,
            request.eps,
            request.provider_options,
            believed=loaded.proof is not None or loaded.kept_here,
        )
    prepared = reload(loaded, request, probe)
    model = PreparedModel(loaded=loaded, prepared=prepared, eps=tuple(request.eps))
    return require_placement(model, request.options)


def require_placement(model: PreparedModel, options: SessionOptions) -> PreparedModel:
    """Check that the session's rules allow each node's execution provider; returns `model`.

    Partitions that compile by shape may leave runs to others from then on, where nodes may be left.

    Raises:
        Fail: They do not; the graph is released then.
    """
    from ort_lite.planning.placement import check_placement  # noqa: PLC0415 - lazy: reload

    try:
        check_placement(model.prepared, options)
        if any(isinstance(p.compiled, SupportsCompileByShape) for p in model.prepared.partitions):
            from ort_lite.start.other_answers import offer_answers  # noqa: PLC0415 - lazy: rare
            from ort_lite.start.placement_option import PAYS, choose_placement  # noqa: PLC0415 - lazy: rare

            if choose_placement(options) == PAYS:
                offer_answers(model.prepared, model.eps)
    except BaseException:
        model.prepared.release()
        raise
    return model


def compile_plain(loaded: LoadedModel, request: LoadRequest) -> PreparedModel:
    """Compile a plain model and write the files that the options ask for.

    Raises:
        OrtLiteError: As a session.
    """
    if not request.options.flag(ENABLE_KEY):
        return _compile_and_write(loaded, request, None)
    from ort_lite.context.shared_contexts import group_target  # noqa: PLC0415 - lazy: rare
    from ort_lite.context.target import session_target  # noqa: PLC0415 - lazy: rare

    with ExitStack() as undo:
        with group_target(session_target(loaded.path, request.options), request.options) as target:
            model = _compile_and_write(loaded, request, target)
            undo.callback(model.prepared.release)
        undo.pop_all()
    return model


def _compile_and_write(
    loaded: LoadedModel, request: LoadRequest, target: ContextTarget | None
) -> PreparedModel:
    model = compile_model(loaded, request, target.group if target is not None else None)
    try:
        with request.clock.phase("write"):
            _write(model, target, request)
    except BaseException:
        model.prepared.release()
        raise
    return model


def compile_model(
    loaded: LoadedModel, request: LoadRequest, group: StagesModels | None = None
) -> PreparedModel:
    """Transform, partition and compile a plain model: every road to a compiled graph is this one.

    Nothing is written.

    Args:
        loaded: The plain model.
        request: With the level of optimizations and the session's rules in its options.
        group: The session group of the context model; it numbers the names of partitions.

    Raises:
        ModelLoadCanceled: A cancellation came, be it during the last compile.
        OrtLiteError: As a session.
    """
    from ort_lite.planning.preparation import prepare  # noqa: PLC0415 - lazy: reload
    from ort_lite.start.placement_option import PAYS, choose_placement  # noqa: PLC0415 - lazy: reload

    options = request.options
    recorded = _by_recorded_kernels(loaded.model, request.eps)
    transformed = request.transformed or transform_model(recorded, request)
    names = {} if group is None else group.names
    judged = choose_placement(options, context=request.context) == PAYS
    rules = request.preparation_rules()
    reloaded = request.context or request.cached or options.flag(ENABLE_KEY)
    rules = replace(rules, fuse=transformed.fuse, names=names, judged=judged, reloaded=reloaded)
    with request.clock.phase("compile"):
        first = request.assignment if transformed is request.transformed else None
        prepared = prepare(transformed.graph, rules, first=first)
    with ExitStack() as undo:
        undo.callback(prepared.release)
        loaded.require_unchanged()
        if request.is_canceled():
            raise load_canceled()
        undo.pop_all()
    model = PreparedModel(
        loaded=loaded,
        prepared=prepared,
        eps=tuple(request.eps),
        transforms=transformed.list_fired(),
    )
    return require_placement(model, options)


def transform_model(model: Model, request: LoadRequest) -> TransformedGraph:
    """The graph with its types, after the transformations of a session.

    Raises:
        Fail: numpy is too old.
    """
    from ort_lite.numpy_baseline import require_numpy  # noqa: PLC0415 - lazy: reload

    with request.clock.phase("transform"):
        require_numpy()
        return _transform(model, request)


def _transform(model: Model, request: LoadRequest) -> TransformedGraph:
    """The graph with its types, after the transformations of a session.

    A file that records its kernels has all types, and was optimised when it was saved; fusions
    make operators that it does not record.
    """
    from ort_lite.model import loader  # noqa: PLC0415 - lazy: reload
    from ort_lite.planning.transformed_graph import TransformedGraph  # noqa: PLC0415 - lazy: reload

    if model.kernel_types is not None:
        if request.options.free_dimensions:
            from ort_lite.model.free_dimensions import bind  # noqa: PLC0415 - lazy: rare

            fixed = bind(model.graph, request.options.free_dimensions)
            model = replace(model, graph=replace(fixed, value_info=model.graph.value_info))
        return TransformedGraph(loader.as_graph(model))
    from ort_lite.planning.optimization import optimize_model, settings_of  # noqa: PLC0415 - lazy: reload
    from ort_lite.start.placement_option import PAYS, choose_placement  # noqa: PLC0415 - lazy: reload
    from ort_lite.transforms.fusions import Fuser  # noqa: PLC0415 - lazy: reload

    options = request.options
    level = options.graph_optimization_level
    judged = choose_placement(options, context=request.context) == PAYS
    settings = settings_of(options, request.eps, level, request.disabled, judged=judged)
    graph, done = optimize_model(model, options.free_dimensions, settings, request.inferred)
    return TransformedGraph(graph, done.fired, Fuser(level, settings.disabled))


def _by_recorded_kernels(model: Model, eps: Sequence[ExecutionProvider]) -> Model:
    """`model`; without its recorded kernel types where an EP chooses nodes by anything else."""
    if model.kernel_types is None:
        return model
    from ort_lite.ep.kernels import SupportsKernels  # noqa: PLC0415 - lazy: rare

    if all(isinstance(ep, SupportsKernels) for ep in eps):
        return model
    return replace(model, kernel_types=None)


def _write(model: PreparedModel, target: ContextTarget | None, request: LoadRequest) -> None:
    if target is not None:
        from ort_lite.context.writer import source_of, write_context  # noqa: PLC0415 - lazy: rare

        source = source_of(model.loaded)
        write_context(model.prepared, source, target, request.provider_options, request.is_canceled)
    if request.options.optimized_model_filepath:
        from ort_lite.start.optimized_model import write_optimized  # noqa: PLC0415 - lazy: rare

        write_optimized(model.prepared, model.loaded.model, request.options)
