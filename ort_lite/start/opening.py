"""From a decoded model and open execution providers to a prepared graph."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from ctx_formats.lean_dataclass import dataclass, field, replace
from ort_lite.context.keys import ENABLE_KEY, PROBE_KEY
from ort_lite.context.nodes import has_context_nodes
from ort_lite.start.load_clock import CacheOutcome, LoadClock
from ort_lite.status import load_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.mapped_file import FileStamp
    from ort_lite.context.destinations import StagesModels
    from ort_lite.context.payload_checks import PayloadChecks
    from ort_lite.context.target import ContextTarget
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.planning.preparation import PreparationRules, PreparedGraph
    from ort_lite.providers.provider_list import Request


BACKGROUND_KEY = "session.ep_compile_in_background"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a session opens a model with.

    Attributes:
        eps: In order of preference.
        provider_options: What each EP was opened with.
        disabled: Names of transformations that are not to run.
        early: Of the context model's payloads, begun before the EPs were opened.
        given_up: Whether nobody wants the result any more; the user's cancellation flag, in the
            options, counts besides.
    """

    options: SessionOptions
    eps: Sequence[ExecutionProvider]
    provider_options: Mapping[str, Mapping[str, str]]
    clock: LoadClock
    disabled: tuple[str, ...] = ()
    early: PayloadChecks | None = None
    given_up: Callable[[], bool] = lambda: False

    def canceled(self) -> bool:
        """Whether to stop before the next step."""
        return self.options.canceled() or self.given_up()

    def preparation_rules(self) -> PreparationRules:
        """What preparing needs."""
        from ort_lite.planning.preparation import PreparationRules  # noqa: PLC0415 - lazy: reload

        return PreparationRules(
            eps=self.eps,
            forbid_compile=self.options.flag("session.disable_model_compile"),
            canceled=self.canceled,
            progress=self.options.progress,
        )

    def with_options(self, options: SessionOptions) -> Opening:
        """The same under other options."""
        return replace(self, options=options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A model that is ready to run; its owner releases the graph, then closes the model.

    Attributes:
        eps: What runs it, in order of preference.
        transforms: How often each transformation fired.
        cache: What the model cache did.
        origin: The files of the user's model as they were read or, of one in the cache, digested.
    """

    loaded: LoadedModel
    prepared: PreparedGraph
    eps: tuple[ExecutionProvider, ...]
    transforms: Mapping[str, int] = field(default_factory=dict)
    cache: CacheOutcome = field(default_factory=CacheOutcome)
    origin: tuple[FileStamp, ...] = ()

    def forget_weights(self) -> Opened:
        """The same without the weights that no execution provider reads from now on."""
        self.prepared.forget_weights()
        return replace(self, loaded=self.loaded.without_weights())

    def release(self) -> None:
        """Release the graph, then the EPs, then the model's bytes."""
        self.prepared.release()
        for ep in self.eps:
            ep.release()
        self.loaded.close()


class ModelSource(Protocol):
    """A model on its way into a session."""

    def plain(self) -> LoadedModel:
        """The model as the user gave it."""
        ...

    def examined_early(
        self, wanted: Sequence[Request], disabled: Sequence[str]
    ) -> PayloadChecks | None:
        """Begin to check the payloads that `find` is going to need, as far as that is known.

        Args:
            wanted: The execution providers that are about to be opened.
            disabled: Names of transformations that are not to run.
        """
        ...

    def find(self, opening: Opening) -> Opened | None:
        """The model out of its compiled form, where there is one that fits."""
        ...

    def make(self, opening: Opening) -> Opened:
        """Compile the model, or whatever else makes it ready."""
        ...

    def stamps(self) -> tuple[FileStamp, ...]:
        """Of the model's files, as they were read or digested; none for a model from memory."""
        ...

    def cache_so_far(self) -> CacheOutcome:
        """What the model cache did, between `find` and `make`."""
        ...

    def close(self, taken: LoadedModel | None = None) -> None:
        """Let go of the model, unless it is the one that a session has taken."""
        ...


@dataclass(frozen=True, slots=True)
class UncachedModel:
    """A model that is compiled unless it is a context model.

    Attributes:
        around_it: Why it goes around the model cache that the session asked for, or "".
    """

    loaded: LoadedModel
    options: SessionOptions
    around_it: str = ""

    def is_compiled(self) -> bool:
        """Whether it is a context model."""
        return has_context_nodes(self.loaded.model.graph)

    def examined_early(
        self,
        wanted: Sequence[Request],  # noqa: ARG002 - see ModelSource
        disabled: Sequence[str],  # noqa: ARG002 - see ModelSource
    ) -> PayloadChecks | None:
        """See ModelSource."""
        return examine_early(self.loaded, self.options) if self.is_compiled() else None

    def plain(self) -> LoadedModel:
        """See ModelSource."""
        return self.loaded

    def find(self, opening: Opening) -> Opened | None:
        """See ModelSource."""
        return reload_context(self.loaded, opening) if self.is_compiled() else None

    def make(self, opening: Opening) -> Opened:
        """See ModelSource."""
        return replace(compile_plain(self.loaded, opening), cache=self.cache_so_far())

    def stamps(self) -> tuple[FileStamp, ...]:
        """See ModelSource."""
        return self.loaded.stamps

    def cache_so_far(self) -> CacheOutcome:
        """See ModelSource."""
        return CacheOutcome(reason=self.around_it)

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


def make_ready(loaded: LoadedModel, opening: Opening) -> Opened:
    """Reload a context model, or compile a plain one.

    Raises:
        OrtLiteError: As a session.
    """
    if has_context_nodes(loaded.model.graph):
        return reload_context(loaded, opening)
    return compile_plain(loaded, opening)


def reload_context(loaded: LoadedModel, opening: Opening) -> Opened:
    """Import the payloads of a context model.

    Raises:
        OrtLiteError: As a session.
    """
    from ort_lite.context.reload import reload  # noqa: PLC0415 - lazy: reload

    probe = None
    if PROBE_KEY in opening.options.config:
        from ort_lite.probing.probe import probe_of  # noqa: PLC0415 - lazy: rare

        probe = probe_of(
            opening.options,
            opening.eps,
            opening.provider_options,
            believed=loaded.proof is not None or loaded.kept_here,
        )
    prepared = reload(loaded, opening, probe)
    opened = Opened(loaded=loaded, prepared=prepared, eps=tuple(opening.eps))
    return placed(opened, opening.options)


def placed(opened: Opened, options: SessionOptions) -> Opened:
    """What was opened, if the session's rules let every node run where it would.

    Raises:
        Fail: They do not; the graph is released.
    """
    from ort_lite.planning.placement import check_placement  # noqa: PLC0415 - lazy: reload

    try:
        check_placement(opened.prepared, options)
    except BaseException:
        opened.prepared.release()
        raise
    return opened


def compile_plain(loaded: LoadedModel, opening: Opening) -> Opened:
    """Partition and compile a plain model, and write of it what the options ask for.

    Raises:
        OrtLiteError: As a session.
    """
    if not opening.options.flag(ENABLE_KEY):
        return _written(loaded, opening, None)
    from ort_lite.context.shared_contexts import staged  # noqa: PLC0415 - lazy: rare
    from ort_lite.context.target import session_target  # noqa: PLC0415 - lazy: rare

    with ExitStack() as undo:
        with staged(session_target(loaded.path, opening.options), opening.options) as target:
            opened = _written(loaded, opening, target)
            undo.callback(opened.prepared.release)
        undo.pop_all()
    return opened


def _written(loaded: LoadedModel, opening: Opening, target: ContextTarget | None) -> Opened:
    opened = compile_model(loaded, opening, target.group if target is not None else None)
    try:
        with opening.clock.phase("write"):
            _write(opened, target, opening)
    except BaseException:
        opened.prepared.release()
        raise
    return opened


def compile_model(
    loaded: LoadedModel, opening: Opening, group: StagesModels | None = None
) -> Opened:
    """Transform, partition and compile a plain model: every road to a compiled graph is this one.

    Nothing is written.

    Args:
        loaded: The plain model.
        opening: With the level of optimizations and the session's rules in its options.
        group: The session group of the context model; it numbers the names of partitions.

    Raises:
        ModelLoadCanceled: A cancellation came, be it during the last compile.
        OrtLiteError: As a session.
    """
    from ort_lite.planning.optimization import optimized, settings_of  # noqa: PLC0415 - lazy: reload
    from ort_lite.planning.preparation import prepare  # noqa: PLC0415 - lazy: reload
    from ort_lite.transforms.fusions import Fuser  # noqa: PLC0415 - lazy: reload

    options = opening.options
    level = options.graph_optimization_level
    settings = settings_of(options, opening.eps, level, opening.disabled)
    with opening.clock.phase("transform"):
        graph, done = optimized(loaded.model, options.free_dimensions, settings)
    fuser = Fuser(level, settings.disabled)
    names = {} if group is None else group.names
    rules = replace(opening.preparation_rules(), fuse=fuser.fused, names=names)
    with opening.clock.phase("compile"):
        prepared = prepare(graph, rules)
    with ExitStack() as undo:
        undo.callback(prepared.release)
        loaded.require_unchanged()
        if opening.canceled():
            raise load_canceled()
        undo.pop_all()
    opened = Opened(
        loaded=loaded,
        prepared=prepared,
        eps=tuple(opening.eps),
        transforms={**done.fired, **fuser.fired},
    )
    return placed(opened, options)


def _write(opened: Opened, target: ContextTarget | None, opening: Opening) -> None:
    if target is not None:
        from ort_lite.context.writer import source_of, write_context  # noqa: PLC0415 - lazy: rare

        source = source_of(opened.loaded)
        write_context(opened.prepared, source, target, opening.provider_options, opening.canceled)
    if opening.options.optimized_model_filepath:
        from ort_lite.start.optimized_model import write_optimized  # noqa: PLC0415 - lazy: rare

        write_optimized(opened.prepared, opened.loaded.model, opening.options)
