"""A request to load a model, the clock that times it, and what the model cache did for it."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ort_lite.context.payload_checks import PayloadChecks
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.fixed_inputs import FixedInputs
    from ort_lite.model.shape_inference import Inferred
    from ort_lite.options import SessionOptions
    from ort_lite.planning.partitioner import Assignment
    from ort_lite.planning.preparation import PreparationRules
    from ort_lite.planning.transformed_graph import TransformedGraph
    from ort_lite.providers.provider_choice import ProviderChoice
    from ort_lite.providers.provider_list import ProviderRequest

IMPORTS = "imports"
FIRST_RUN = "first run"
DEFERRED_COMPILE = "compile for a later run"
BACKGROUND_KEY = "session.ep_compile_in_background"
SHARED_ARENA_KEY = "session.use_env_allocators"
LOADS = 2
"""A program that ends when another load has begun has waited a third longer for all of it."""
LEAST_RUNS = 32
"""So many show that the same shapes come again."""
LONG_RUN = 0.005
"""Seconds; first runs of small models take several times as long as the later ones."""
NO_COMPILED_NODES = "no execution provider that keeps compiled models took any node"
"""Why nothing is stored of a large model on the default EP, or on others that keep nothing."""
MOST_KEPT_WHOLE = 64 << 20
"""Bytes of a plain model that the cache keeps although no EP compiled anything of it: an entry has
its types and transformations already, but every start digests it, weights included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOutcome:
    """Result of the model cache for one start.

    Attributes:
        state: "off"; "hit" (reloaded); "stored" (compiled, and kept for the next start); or
            "missed" (compiled, and not kept).
        reason: Why it was no hit, why nothing was kept, or why a session that asked for the cache
            goes around it; "" where there is nothing to say.
        key: Of the entry, or "".
    """

    state: str = "off"
    reason: str = ""
    key: str = ""


@dataclass(slots=True)
class LoadClock:
    """Adds up the seconds of each phase while a session is made."""

    began: float = field(default_factory=perf_counter)
    phases: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    payload_bytes: int = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the body towards a phase."""
        began = perf_counter()
        self.phases.setdefault(name, 0.0)
        try:
            yield
        finally:
            self.phases[name] += perf_counter() - began

    def stop(self) -> None:
        """Note the total: the session is ready."""
        self.total = perf_counter() - self.began
        rest = self.total - sum(self.phases.values())
        self.phases = {IMPORTS: max(0.0, rest), **self.phases}

    def note_first_run(self, seconds: float) -> None:
        """Note the duration of the first successful run; of concurrent ones the first to end."""
        self.phases.setdefault(FIRST_RUN, seconds)

    def runs_worth_a_load(self, most: int) -> int:
        """Runs that take `LOADS` times as long as the session's load; `most` where runs are short.

        Both times grow with the load of the machine.
        """
        run = self.phases.get(FIRST_RUN, 0.0)
        if run < LONG_RUN:
            return most
        return min(most, max(LEAST_RUNS, round(LOADS * self.total / run)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Everything that turning a model into a `PreparedModel` needs besides the model.

    Sessions, ModelCompiler, the model cache and background compiles all make one.

    Attributes:
        options: Of the session; their optimization level, progress function and cancellation
            flag apply.
        eps: Execution providers in order of preference.
        provider_options: By name of each EP, the options that it was created with.
        clock: Times the phases.
        disabled: Names of transformations that must not run.
        early: The examination of the context model's payloads that began before the EPs were
            created; None if absent.
        given_up: Whether the caller no longer wants the result, apart from the options'
            cancellation flag.
        context: Whether a context model is written that the options do not ask for.
        cached: Whether what is compiled is kept in the model cache.
        requested: The execution providers that the session asked for, where it is of use to note
            which of them the model needs; else empty.
        choice: Which of them it needs, from an earlier start: `eps` has no others.
        measured: Whether compiling tries every device and takes the fastest; `eps` has the
            default EP alone.
        planned: Whether `choice` is this start's own plan, so that which EPs the model needs is
            not known of an earlier one.
        transformed: The model's graph, where the plan has transformed it already.
        assignment: Of its nodes to `eps`, where the plan has made it.
        inferred: The model with its types, where they were inferred already.
        ordered: Whether the order of `eps` is the user's, and not that of a default list.
        fixed_inputs: Shapes and values of inputs that the model is made ready for; None for all.
    """

    options: SessionOptions
    eps: Sequence[ExecutionProvider]
    provider_options: Mapping[str, Mapping[str, str]]
    clock: LoadClock
    disabled: tuple[str, ...] = ()
    early: PayloadChecks | None = None
    given_up: Callable[[], bool] = lambda: False
    context: bool = False
    cached: bool = False
    requested: Sequence[ProviderRequest] = ()
    choice: ProviderChoice | None = None
    measured: bool = False
    planned: bool = False
    transformed: TransformedGraph | None = None
    assignment: Assignment | None = None
    inferred: Inferred | None = None
    ordered: bool = True
    fixed_inputs: FixedInputs | None = None

    def is_canceled(self) -> bool:
        """Whether loading must stop before its next step."""
        return self.options.is_canceled() or self.given_up()

    def preparation_rules(self) -> PreparationRules:
        """The EPs and the session's rules, for `prepare`."""
        from ort_lite.planning.preparation import PreparationRules  # noqa: PLC0415 - lazy: reload

        return PreparationRules(
            eps=self.eps,
            forbid_compile=self.options.flag("session.disable_model_compile"),
            canceled=self.is_canceled,
            progress=self.options.progress,
            ordered=self.ordered,
        )

    def with_options(self, options: SessionOptions) -> LoadRequest:
        """A copy of the request with other options."""
        return replace(self, options=options)
