"""From a path or bytes and requests for providers to what a session runs."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.context.keys import CACHE_FOLDER_VARIABLE, CACHE_KEY
from ort_lite.model import loader
from ort_lite.providers.provider_list import begin_all, heeded_options, open_all
from ort_lite.start.opening import BACKGROUND_KEY, Opening, UncachedModel
from ort_lite.status import load_canceled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.context.payload_checks import PayloadChecks
    from ort_lite.execution.session_threads import Surroundings
    from ort_lite.execution.signature import Signature
    from ort_lite.options import SessionOptions
    from ort_lite.providers.provider_list import Fallback, Request
    from ort_lite.start.background_compile import BackgroundJob
    from ort_lite.start.load_clock import LoadClock
    from ort_lite.start.opening import ModelSource, Opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a session runs at first.

    Attributes:
        provider_options: What each EP was opened with, those that compile behind included.
        signature: What the session takes and gives.
        job: To be started once the session is there; None where nothing is compiled behind.
        no_job: Why there is none, where one was asked for.
    """

    opened: Opened
    provider_options: Mapping[str, Mapping[str, str]]
    signature: Signature
    job: BackgroundJob | None = None
    no_job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """How a session starts.

    Attributes:
        disabled: Names of transformations that are not to run.
        fallback: What to do about a provider that is not here.
        sdks_loaded: Whether the process has the EPs' SDKs: threads would take longer to start
            than what goes on beside them saves.
        sdks_held: Whether they begin to load once the model's signature is verified.
    """

    options: SessionOptions
    clock: LoadClock
    around: Surroundings
    disabled: tuple[str, ...]
    fallback: Fallback
    sdks_loaded: bool = False
    sdks_held: bool = False

    def start(self, given: object, wanted: Sequence[Request]) -> Started:
        """Read the model, open the EPs, reload or compile; whatever fails leaves nothing open.

        Raises:
            OrtLiteError: As a session.
            TypeError: `given` is neither a path nor bytes.
        """
        at_once = self.options.flag(BACKGROUND_KEY)
        if at_once:
            from ort_lite.start.background_compile import check_options  # noqa: PLC0415 - lazy: rare

            check_options(self.options)
        with ExitStack() as undo:
            source = self._source(given)
            undo.callback(source.close)
            if self.options.canceled():  # a model that cannot be read says that, as in ONNX Runtime
                raise load_canceled()
            loaded = begin_all(wanted) if self.sdks_held else self.sdks_loaded
            early = None if loaded else source.examined_early(wanted, self.disabled)
            if early is not None:
                undo.callback(early.close)
            opening = self._opening(wanted, early, undo)
            with self.around.span("session_initialization"):
                opened, job, no_job = _opened(source, opening, at_once=at_once)
            undo.callback(opened.prepared.release)
            signature = opened.prepared.signature(opened.loaded.model.graph.initializers)
            opened = replace(opened, origin=source.stamps())
            undo.pop_all()
        if early is not None:
            early.close()
        source.close(taken=opened.loaded)
        if job is None:
            opened.loaded.close()  # nothing is written any more
        return Started(
            opened=opened,
            provider_options=opening.provider_options,
            signature=signature,
            job=job,
            no_job=no_job,
        )

    def _opening(
        self, wanted: Sequence[Request], early: PayloadChecks | None, undo: ExitStack
    ) -> Opening:
        with self.clock.phase("open providers"):
            kernels = self.options.custom_kernels
            eps = open_all(wanted, fallback=self.fallback, kernels=kernels)
        for ep in eps:
            undo.callback(ep.release)
        return Opening(
            options=self.options,
            eps=eps,
            provider_options=heeded_options(wanted, eps),
            clock=self.clock,
            disabled=self.disabled,
            early=early,
        )

    def _source(self, given: object) -> ModelSource:
        """The model, to be looked for in the cache where one is wanted."""
        if CACHE_KEY not in self.options.config and CACHE_FOLDER_VARIABLE not in os.environ:
            return self._uncached(given)
        from ort_lite.model_cache.settings import bypass_reason, session_cache  # noqa: PLC0415 - lazy: rare

        settings = session_cache(self.options.config, os.environ)
        around_it = bypass_reason(self.options) if settings is not None else ""
        if settings is None or around_it:
            return self._uncached(given, around_it)
        from ort_lite.model_cache.cached_model import CachedModel  # noqa: PLC0415 - lazy: rare

        return CachedModel(settings, given, self.options, self.clock)

    def _uncached(self, given: object, around_it: str = "") -> ModelSource:
        with self.clock.phase("read model"), self.around.loading(given):
            return UncachedModel(loader.load(given, self.options), self.options, around_it)


def _opened(
    source: ModelSource, opening: Opening, *, at_once: bool
) -> tuple[Opened, BackgroundJob | None, str]:
    """What runs at first, what compiles behind it, and why nothing does."""
    if at_once:
        from ort_lite.start.background_compile import open_at_once  # noqa: PLC0415 - lazy: rare

        found = open_at_once(source, opening)
        return found.opened, found.job, found.reason
    return source.find(opening) or source.make(opening), None, ""
