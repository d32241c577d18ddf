"""The policy FASTEST: a model is compiled for each device, a few runs in turns decide.

No estimate knows which execution provider is the fastest for a model: that changes with the model,
the machine and the driver (docs/adr/0042-providers-chosen-by-earlier-starts.md).
"""

from __future__ import annotations

from contextlib import ExitStack
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.context.keys import ENABLE_KEY, SHARE_KEY
from ort_lite.execution.sample_inputs import find_dtype, make_random_array
from ort_lite.model.info import ModelMetadata
from ort_lite.model.shape_guess import guessed_shape
from ort_lite.model.tensor_values import to_numpy
from ort_lite.planning.unused_providers import list_used_providers
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.devices import get_ep_devices
from ort_lite.providers.provider_choice import ProviderChoice
from ort_lite.providers.provider_list import (
    ProviderRequest,
    applied_options,
    open_all,
    with_threads,
)
from ort_lite.session_log import get_logger
from ort_lite.start.load_request import SHARED_ARENA_KEY
from ort_lite.start.prepare_model import compile_plain
from ort_lite.start.share_arenas import share_arenas
from ort_lite.status import InvalidArgument, OrtLiteError
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.mapped_file import FileStamp
    from ort_lite.context.payload_checks import PayloadChecks
    from ort_lite.ep.interface import Value
    from ort_lite.model.info import NodeArg
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.start.load_request import CacheOutcome, LoadRequest
    from ort_lite.start.prepare_model import ModelSource, PreparedModel

log = get_logger(__name__)

FEWEST, MOST = 3, 10
"""Timed runs of each candidate, after one that is not timed."""
SECONDS = 1.0
"""From then on no further turn begins."""


def check_options(options: SessionOptions) -> None:
    """Refuse what FASTEST cannot do: it compiles several times, and a file has one content.

    Raises:
        InvalidArgument: Files are to be written.
    """
    writes = {
        ENABLE_KEY: options.flag(ENABLE_KEY),
        SHARE_KEY: options.flag(SHARE_KEY),
        "optimized_model_filepath": bool(options.optimized_model_filepath),
    }
    for name, is_set in writes.items():
        if is_set:
            raise InvalidArgument(
                f"the policy FASTEST and {name} cannot be combined: each candidate would write "
                "the same file. Name an execution provider to write files for"
            )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled form of the model.

    Attributes:
        request: Of the execution provider next to the default one; None to measure only that one.
        model: Ready to run.
    """

    request: ProviderRequest | None
    model: PreparedModel

    @property
    def label(self) -> str:
        """Name and options of the execution provider."""
        if self.request is None:
            return DEFAULT_PROVIDER
        return _label(self.request)


class FastestModel:
    """A model source whose compile tries all devices and gives the fastest; see ModelSource."""

    def __init__(
        self,
        inner: ModelSource,
        threads: int,
        timer: Callable[[], float] = perf_counter,
        candidates: Sequence[ProviderRequest] | None = None,
    ) -> None:
        """Wrap `inner`, which compiles for each device.

        Args:
            inner: The model, taken over.
            threads: `SessionOptions.intra_op_num_threads`.
            timer: Gives seconds; called before and after each timed run.
            candidates: What is tried besides the default EP; None for every device that was found.
        """
        self._inner = inner
        self._threads = threads
        self._timer = timer
        self._candidates = candidates

    def load_plain(self) -> LoadedModel:
        """See ModelSource."""
        return self._inner.load_plain()

    def examine_early(
        self,
        requests: Sequence[ProviderRequest],  # noqa: ARG002 - see ModelSource
        disabled: Sequence[str],  # noqa: ARG002 - see ModelSource
    ) -> PayloadChecks | None:
        """None: which compiled form is needed is not known."""
        return None

    def load_compiled(self, request: LoadRequest) -> PreparedModel | None:  # noqa: ARG002 - see ModelSource
        """None: an earlier choice would have been found before."""
        return None

    def keep_choice(self, choice: ProviderChoice, request: LoadRequest) -> bool:
        """See ModelSource."""
        return self._inner.keep_choice(choice, request)

    def stamps(self) -> tuple[FileStamp, ...]:
        """See ModelSource."""
        return self._inner.stamps()

    def cache_outcome(self) -> CacheOutcome:
        """See ModelSource."""
        return self._inner.cache_outcome()

    def close(self, taken: LoadedModel | None = None) -> None:
        """See ModelSource."""
        self._inner.close(taken)

    def compile(self, request: LoadRequest) -> PreparedModel:
        """Compile for each device, measure, keep the choice; the losers are released.

        Where no random inputs can be made, or nothing runs on them, the first device is taken,
        and nothing is kept.

        Args:
            request: With the default EP alone.

        Raises:
            OrtLiteError: Nothing runs the model; the error of the last candidate.
        """
        requests = self._find_requests() if self._candidates is None else self._candidates
        with ExitStack() as undo:
            candidates, failures = self._compile_each(request, requests, undo)
            try:
                winner, figures = self._measure(candidates)
            except OrtLiteError as exc:
                winner = candidates[min(1, len(candidates) - 1)]
                notes = (f"FASTEST: {winner.label}, unmeasured: {exc.message}", *failures)
            else:
                notes = (figures, *failures)
                self.keep_choice(_choice_of(winner, request, notes), request)
            undo.pop_all()
        for candidate in candidates:
            if candidate is not winner:
                self._release(candidate, request)
        log.info("%s", notes[0])
        return replace(
            winner.model,
            notes=notes,
            provider_options={
                **request.provider_options,
                **({winner.request.name: winner.request.options} if winner.request else {}),
            },
        )

    def _measure(self, candidates: Sequence[Candidate]) -> tuple[Candidate, str]:
        """The fastest, and a line with all figures.

        Raises:
            OrtLiteError: Nothing can be measured.
        """
        feed = sample_feed(candidates[0].model)
        times = measure_in_turns([c.model.prepared.run for c in candidates], feed, self._timer)
        best = min(range(len(candidates)), key=lambda at: times[at])
        return candidates[best], _describe(candidates, times, feed)

    def _find_requests(self) -> list[ProviderRequest]:
        """The first device of each kind of each execution provider, the default one left out."""
        firsts: dict[tuple[str, object], ProviderRequest] = {}
        for device in get_ep_devices():
            if device.ep_name != DEFAULT_PROVIDER:
                key = (device.ep_name, device.device.type)
                request = ProviderRequest(device.ep_name, device.ep_options, explicit=False)
                firsts.setdefault(key, request)
        return list(with_threads(list(firsts.values()), self._threads))

    def _compile_each(
        self, request: LoadRequest, requests: Sequence[ProviderRequest], undo: ExitStack
    ) -> tuple[list[Candidate], list[str]]:
        """All that can run the model, and why others do not.

        Raises:
            OrtLiteError: None can.
        """
        candidates: list[Candidate] = []
        failures: list[str] = []
        problem: OrtLiteError | None = None
        for one in (None, *requests):
            try:
                candidate = self._compile_one(request, one)
            except NotImplementedByAny as exc:  # the default EP lacks a kernel
                problem = exc
                continue
            except OrtLiteError as exc:
                if request.is_canceled():
                    raise
                problem = exc
                name = _label(one) if one is not None else DEFAULT_PROVIDER
                failures.append(f"FASTEST: {name} is left out: {exc.message}")
                continue
            undo.callback(self._release, candidate, request)
            if one is None or one.name in list_used_providers(candidate.model.prepared):
                candidates.append(candidate)
            else:
                failures.append(f"FASTEST: {_label(one)} is left out: it runs no node of the model")
                self._release(candidate, request)
        if not candidates:
            assert problem is not None, "the default EP is always tried"
            raise problem
        return candidates, failures

    def _compile_one(self, request: LoadRequest, one: ProviderRequest | None) -> Candidate:
        if one is None:
            return Candidate(None, compile_plain(self.load_plain(), request))
        opened = open_all([one])
        if request.options.flag(SHARED_ARENA_KEY):
            share_arenas(opened)
        try:
            names = [one.name]
            own = applied_options([one], names)
            sub_request = replace(
                request,
                eps=(*opened, *request.eps),
                provider_options={**own, **request.provider_options},
                requested=(),
            )
            model = self._inner.load_compiled(sub_request) or self._inner.compile(sub_request)
        except BaseException:
            for ep in opened:
                ep.release()
            raise
        return Candidate(ProviderRequest(one.name, own[one.name], explicit=False), model)

    def _release(self, candidate: Candidate, request: LoadRequest) -> None:
        """Release a graph, its EPs but for the default one, and a context model."""
        model = candidate.model
        model.prepared.release()
        for ep in model.eps:
            if ep not in request.eps:
                ep.release()
        if model.loaded is not self.load_plain():
            model.loaded.close()


def sample_feed(model: PreparedModel) -> list[Value]:
    """Random inputs of guessed sizes for a prepared graph, in its order.

    Raises:
        InvalidArgument: An input is not a tensor, so that nothing can be measured.
    """
    weights = model.loaded.model.graph.initializers
    signature = model.prepared.signature(weights)
    metadata = ModelMetadata.of(model.loaded.model).custom_metadata_map
    random = np.random.default_rng(0)
    feed = [_sample(arg, metadata, random) for arg in signature.inputs]
    return [*feed, *(to_numpy(weights[arg.name]) for arg in signature.overridable)]


def _sample(arg: NodeArg, metadata: Mapping[str, str], random: np.random.Generator) -> Value:
    dtype = find_dtype(arg.type)
    if dtype is None:
        raise InvalidArgument(
            f"the policy FASTEST measures runs on random tensors, and input '{arg.name}' is a "
            f"{arg.type}"
        )
    return make_random_array(dtype, guessed_shape(arg, metadata), random)


def measure_in_turns(
    runs: Sequence[Callable[[Sequence[Value]], object]],
    feed: Sequence[Value],
    timer: Callable[[], float],
) -> list[float]:
    """The least seconds of each of `runs`, in turns, so that a busy moment meets all alike.

    A run that fails takes for ever. Runs after the first are timed: that one may compile.

    Raises:
        OrtLiteError: All fail.
    """
    least = [float("inf")] * len(runs)
    alive: list[int] = []
    problem: OrtLiteError | None = None
    for at, run in enumerate(runs):
        try:
            run(feed)
        except OrtLiteError as exc:
            problem = exc
        else:
            alive.append(at)
    if not alive and problem is not None:
        raise problem
    spent = 0.0
    for turn in range(MOST):
        if turn >= FEWEST and spent > SECONDS:
            break
        for at in alive:
            began = timer()
            runs[at](feed)
            seconds = timer() - began
            spent += seconds
            least[at] = min(least[at], seconds)
    return least


def _label(request: ProviderRequest) -> str:
    options = ", ".join(f"{key}={value}" for key, value in request.options.items())
    return f"{request.name} ({options})" if options else request.name


def _describe(
    candidates: Sequence[Candidate], times: Sequence[float], feed: Sequence[Value]
) -> str:
    shapes = ", ".join("x".join(map(str, np.shape(value))) or "1" for value in feed)
    measured = sorted(zip(times, (c.label for c in candidates), strict=True))
    figures = ", ".join(
        f"{label} {seconds * 1e3:.3g} ms" if seconds != float("inf") else f"{label} fails"
        for seconds, label in measured
    )
    return f"FASTEST: {figures} (least of a few runs in turns, on random inputs of {shapes})"


def _choice_of(winner: Candidate, request: LoadRequest, notes: tuple[str, ...]) -> ProviderChoice:
    default = {name: request.provider_options.get(name, {}) for name in (DEFAULT_PROVIDER,)}
    chosen = {winner.request.name: winner.request.options} if winner.request is not None else {}
    opened = {**chosen, **default}
    return ProviderChoice(names=tuple(opened), opened=opened, notes=notes)
