"""A plain model on its way into a session: out of the cache, or compiled and into it."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.context.keys import TRUST_KEY
from ort_lite.context.nodes import has_context_nodes
from ort_lite.ep.interface import SupportsCompileByShape
from ort_lite.model import loader
from ort_lite.model_cache.entry import key_of
from ort_lite.model_cache.entry_reader import UNUSABLE, EntryReader
from ort_lite.model_cache.identity import cache_identity, identity_before_devices
from ort_lite.model_cache.source_digest import SourceStamps, read_source, stamped_files
from ort_lite.model_cache.store import CacheStore
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.session_log import get_logger, scope_of
from ort_lite.start.load_request import MOST_KEPT_WHOLE, NO_COMPILED_NODES, CacheOutcome
from ort_lite.start.prepare_model import compile_plain, examine_early, prepare_model
from ort_lite.status import ModelRequiresCompilation

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ctx_formats.mapped_file import FileStamp
    from ort_lite.context.payload_checks import PayloadChecks
    from ort_lite.model.fixed_inputs import FixedInputs
    from ort_lite.model.loader import LoadedModel
    from ort_lite.model_cache.entry import CacheEntry
    from ort_lite.model_cache.entry_reader import OpenEntry
    from ort_lite.model_cache.settings import CacheSettings
    from ort_lite.model_cache.source_digest import DigestedSource
    from ort_lite.model_cache.store_entry import EntryOrigin
    from ort_lite.options import SessionOptions
    from ort_lite.providers.provider_choice import ProviderChoice
    from ort_lite.providers.provider_list import ProviderRequest
    from ort_lite.start.load_request import LoadClock, LoadRequest
    from ort_lite.start.prepare_model import PreparedModel

log = get_logger(__name__)


class CachedModel:
    """One model and the cache; nothing that is wrong with the cache fails a session.

    Attributes:
        loaded: The plain model, once it had to be read.
    """

    def __init__(
        self,
        settings: CacheSettings,
        source: object,
        options: SessionOptions,
        clock: LoadClock,
        inputs: FixedInputs | None = None,
    ) -> None:
        """Take the model's digest, by stat where it is known, else by reading the model.

        Args:
            settings: Of the cache.
            source: Path or bytes of the model.
            options: The session's.
            clock: Times the phases.
            inputs: Shapes and values that the model is made ready for; None for all.

        Raises:
            OrtLiteError: The model cannot be read; as a session without a cache.
            TypeError: `source` is neither a path nor bytes.
        """
        self._settings = settings
        self._source = source
        self._options = options
        self._clock = clock
        self._inputs = inputs
        self.store = CacheStore(settings.folder, settings.secret)
        self._entries = EntryReader(self.store, options, self._description)
        self._stamps = SourceStamps(self.store.sources, settings.secret)
        self._weights = options.config.get(loader.WEIGHTS_FOLDER, "")
        self.loaded: LoadedModel | None = None
        self.source: DigestedSource | None = None
        self._request = ""
        self._guess: OpenEntry | None = None
        self.problem = self.store.exposure()
        if self.problem:
            log.warning("the model cache is not used: %s", self.problem)
        path = _path_of(source)
        # Where a signature is asked for, the model is read and its signature verified.
        if path is not None and not self.problem and TRUST_KEY not in options.config:
            with clock.phase("digest"):
                self.source = self._stamps.find_digest(path, self._weights)
        if self.source is None:
            self._read()

    def _read(self) -> None:
        now = time.time_ns()
        self.loaded = self._load()
        if self.problem or has_context_nodes(self.loaded.model.graph):
            return
        with self._clock.phase("digest"):
            self.source = read_source(self.loaded)
            if self.source is not None:
                with suppress(OSError):  # where writing fails the model is digested again
                    self.store.prepare()
                    self._stamps.remember(self.source, self._weights, now_ns=now)

    def _load(self) -> LoadedModel:
        with self._clock.phase("read model"):
            loaded = loader.load(self._source, self._options)
        if self._inputs is None:
            return loaded
        from ort_lite.start.fix_model import fix_model  # noqa: PLC0415 - lazy: rare

        return fix_model(loaded, self._inputs)

    def load_plain(self) -> LoadedModel:
        """The model itself, read now if it has not been yet.

        Raises:
            OrtLiteError: It cannot be read.
        """
        if self.loaded is None:
            self.loaded = self._load()
        return self.loaded

    def examine_early(
        self, requests: Sequence[ProviderRequest], disabled: Sequence[str]
    ) -> PayloadChecks | None:
        """See ModelSource: of the entry that a start like this one found last, by a guess."""
        if self.source is None:
            loaded = self.loaded
            if loaded is None or not has_context_nodes(loaded.model.graph):
                return None
            return examine_early(loaded, self._options)
        provider_options = {request.name: request.options for request in requests}
        digest = self.source.digest
        self._request = key_of(
            identity_before_devices(
                *(digest, self._options, provider_options, disabled, self._settings.secret),
                inputs=self._inputs,
            )
        )
        key = self.store.guess(self._request)
        try:
            self._guess = self._entries.open(key, self._clock) if key else None
        except UNUSABLE:
            return None  # it is looked up again once its key is known, and errors are reported then
        if self._guess is None:
            return None
        return examine_early(self._guess.loaded, self._guess.options(self._options))

    def load_compiled(self, request: LoadRequest) -> PreparedModel | None:
        """The model out of the cache, or None."""
        self._clock = request.clock
        if request.choice is not None and request.choice.is_default_only and not self._is_kept():
            return self._run_on_default(request)
        if self.source is None:
            return None
        key = key_of(self._identity(request, self.source))
        guess = self._guess
        if guess is not None and guess.entry.key == key:
            self._guess = None
            return self._note_hit(self._entries.reload(guess, request), request, key)
        prepared = self._entries.find(key, request)
        if prepared is not None:
            self._remember_guess(key)
        return self._note_hit(prepared, request, key)

    def _is_kept(self) -> bool:
        """Whether there is an entry of the model, or will be, although no EP compiles it."""
        return self.source is not None and self.source.size <= MOST_KEPT_WHOLE

    def _run_on_default(self, request: LoadRequest) -> PreparedModel:
        """The plain model on the default EP, which an earlier start found to run every node."""
        outcome = CacheOutcome(state="hit", reason=f"{DEFAULT_PROVIDER} runs every node")
        return replace(compile_plain(self.load_plain(), request), cache=outcome)

    def _note_hit(
        self, model: PreparedModel | None, request: LoadRequest, key: str
    ) -> PreparedModel | None:
        if model is not None:
            self._choose_used(model, request)
        return self._keep_shapes(model, key)

    def _choose_used(self, model: PreparedModel, request: LoadRequest) -> bool:
        """Have the next start open only the EPs that `model` runs on; whether it will."""
        if not request.requested or (request.choice is not None and not request.planned):
            return False
        from ort_lite.model_cache.make_choice import make_choice  # noqa: PLC0415 - lazy: rare

        choice = make_choice(model, request)
        return choice is not None and self.keep_choice(choice, request)

    def keep_choice(self, choice: ProviderChoice, request: LoadRequest) -> bool:
        """See ModelSource."""
        if self.source is None:
            return False
        from ort_lite.model_cache.make_choice import keep_choice  # noqa: PLC0415 - lazy: rare

        return keep_choice(self.store, choice, request, self.source, self._source)

    def _keep_shapes(self, model: PreparedModel | None, key: str) -> PreparedModel | None:
        """Have what `model` compiles for new shapes added to its entry; gives `model` back."""
        if (
            model is not None
            and self._settings.keeps_shapes
            and any(
                isinstance(p.compiled, SupportsCompileByShape) for p in model.prepared.partitions
            )
        ):
            from ort_lite.model_cache.kept_shapes import KeptShapes  # noqa: PLC0415 - lazy: rare

            scope = scope_of(self._options)
            KeptShapes(self.store, self._settings.quota, key, scope).watch(model.prepared)
        return model

    def _remember_guess(self, key: str) -> None:
        if self._request:
            self.store.remember_guess(self._request, key)

    def compile(self, request: LoadRequest) -> PreparedModel:
        """Compile and keep; where another process does that now, wait and take its result.

        Raises:
            OrtLiteError: As a session without a cache.
        """
        self._clock = request.clock
        source = self.source
        if source is None:
            loaded = self.load_plain()
            outcome = CacheOutcome(state="missed", reason=self.refusal_reason())
            return replace(prepare_model(loaded, request), cache=outcome)
        from ort_lite.model_cache.lock import single_flight  # noqa: PLC0415 - lazy: rare
        from ort_lite.model_cache.miss_reason import miss_reason  # noqa: PLC0415 - lazy: rare
        from ort_lite.model_cache.store_entry import EntryOrigin  # noqa: PLC0415 - lazy: rare
        from ort_lite.model_cache.superseded import superseded_keys  # noqa: PLC0415 - lazy: rare

        identity = self._identity(request, source)
        key = key_of(identity)
        with suppress(OSError):  # reported when the result cannot be stored
            self.store.prepare()
        with ExitStack() as flight:
            with self._clock.phase("wait for others"):
                flight.enter_context(single_flight(self.store.lock_path(key), request.is_canceled))
            prepared = self._entries.find(key, request)
            if prepared is not None:
                self._keep_shapes(prepared, key)
                return prepared
            known = self._known_entries()
            why = self._entries.trouble or miss_reason(known, identity, self._description)
            loaded = self.load_plain()
            model = _compile_or_explain(loaded, request, why)
            if source.files and stamped_files(loaded) != source.files:
                # It was digested, by its stamps, before it was read; this key is of other bytes.
                reason = "it changed after it was digested"
                return replace(model, cache=CacheOutcome(state="missed", reason=reason))
            superseded = superseded_keys(known, identity)
            return self._keep(model, request, EntryOrigin(identity, source), why, superseded)

    def _keep(
        self,
        model: PreparedModel,
        request: LoadRequest,
        origin: EntryOrigin,
        miss: str,
        superseded: Collection[str],
    ) -> PreparedModel:
        """Store what was compiled; `model` with the outcome, released where that is canceled."""
        from ort_lite.model_cache.store_entry import store_compiled  # noqa: PLC0415 - lazy: rare
        from ort_lite.model_cache.superseded import EvictionAfterRun  # noqa: PLC0415 - lazy: rare

        quota, key = self._settings.quota, key_of(origin.identity)
        try:
            with self._clock.phase("keep in cache"):
                problem = store_compiled(
                    self.store, quota, model, request, origin, spared=superseded
                )
        except BaseException:
            model.prepared.release()
            raise
        outcome = self._note_compile(model, request, key, miss, problem)
        after_run = EvictionAfterRun(self.store, quota, key) if superseded else None
        return replace(model, cache=outcome, after_run=None if problem else after_run)

    def _note_compile(
        self, model: PreparedModel, request: LoadRequest, key: str, why: str, problem: str
    ) -> CacheOutcome:
        """The cache's result for a model that was compiled, and kept unless there is a problem."""
        kept = self._choose_used(model, request)
        if kept and problem == NO_COMPILED_NODES:
            return CacheOutcome(state="stored", reason=f"{DEFAULT_PROVIDER} runs every node")
        if problem:
            name = model.loaded.description
            log.warning("%s is not kept in the model cache: %s", name, problem)
            return CacheOutcome(state="missed", reason=problem, key=key)
        self._remember_guess(key)
        self._keep_shapes(model, key)
        return CacheOutcome(state="stored", reason=why, key=key)

    def stamps(self) -> tuple[FileStamp, ...]:
        """See ModelSource."""
        if self.loaded is not None:
            return self.loaded.stamps
        return tuple(file.stamp for file in self.source.files) if self.source is not None else ()

    def cache_outcome(self) -> CacheOutcome:
        """See ModelSource: of a model that `load_compiled` has not found."""
        return CacheOutcome(state="missed", reason=self.refusal_reason() or "it is being compiled")

    def refusal_reason(self) -> str:
        """Why the model cannot be looked up; "" if it can."""
        if self.source is not None:
            return ""
        loaded = self.loaded
        if self.problem or loaded is None:
            return self.problem
        if has_context_nodes(loaded.model.graph):
            return "the model is compiled already"
        return "it changed while it was read"

    def close(self, taken: LoadedModel | None = None) -> None:
        """Let go of the plain model, unless it is the one that a session has taken."""
        guess, self._guess = self._guess, None
        if guess is not None:
            guess.loaded.close()
        if self.loaded is not None and self.loaded is not taken:
            self.loaded.close()
            self.loaded = None

    def _identity(self, request: LoadRequest, source: DigestedSource) -> dict[str, str]:
        return cache_identity(source.digest, request, self._settings.secret)

    @property
    def _description(self) -> str:
        path = _path_of(self._source)
        return str(path.absolute()) if path is not None else ""

    def _known_entries(self) -> list[CacheEntry]:
        try:
            return self.store.sound_entries()
        except OSError:
            return []


def _compile_or_explain(loaded: LoadedModel, request: LoadRequest, miss: str) -> PreparedModel:
    """As compile_plain; where that is forbidden the error says why the cache was of no help."""
    try:
        return compile_plain(loaded, replace(request, cached=True))
    except ModelRequiresCompilation as exc:
        raise ModelRequiresCompilation(f"{exc.message} Model cache: {miss}.") from exc


def _path_of(source: object) -> Path | None:
    if not isinstance(source, str | os.PathLike):
        return None
    text = os.fspath(source)
    return Path(text) if isinstance(text, str) else None
