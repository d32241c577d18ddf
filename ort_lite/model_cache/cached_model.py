"""A plain model on its way into a session: out of the cache, or compiled and into it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import replace
from ort_lite.context.nodes import has_context_nodes
from ort_lite.context.target import PATH_KEY
from ort_lite.load_report import CacheOutcome
from ort_lite.model import loader
from ort_lite.model_cache.entry import Entry, key_of
from ort_lite.model_cache.explanation import miss_reason
from ort_lite.model_cache.identity import cache_identity
from ort_lite.model_cache.lock import single_flight
from ort_lite.model_cache.sources import SourceStamps, read_source
from ort_lite.model_cache.store import CacheStore
from ort_lite.opening import compile_plain, make_ready, reload_context
from ort_lite.session_log import get_logger
from ort_lite.status import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
)
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from ort_lite.load_report import LoadClock
    from ort_lite.model.loader import LoadedModel
    from ort_lite.model_cache.entry import CacheObject
    from ort_lite.model_cache.settings import CacheSettings
    from ort_lite.model_cache.sources import Source
    from ort_lite.opening import Opened, Opening
    from ort_lite.options import SessionOptions

log = get_logger(__name__)

REFUSED = (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplementedByAny)
"""What reloading an entry says that is of no use here; the model is then compiled again."""


class CachedModel:
    """One model and the cache; nothing that is wrong with the cache fails a session.

    Attributes:
        loaded: The plain model, once it had to be read.
    """

    def __init__(
        self, settings: CacheSettings, source: object, options: SessionOptions, clock: LoadClock
    ) -> None:
        """Take the model's digest, by stat where it is known, else by reading the model.

        Raises:
            OrtLiteError: The model cannot be read; as a session without a cache.
            TypeError: `source` is neither a path nor bytes.
        """
        self._settings = settings
        self._given = source
        self._options = options
        self._clock = clock
        self.store = CacheStore(settings.folder)
        self._stamps = SourceStamps(self.store.sources)
        self._weights = options.config.get(loader.WEIGHTS_FOLDER, "")
        self.loaded: LoadedModel | None = None
        self.source: Source | None = None
        self.problem = self.store.exposed()
        if self.problem:
            log.warning("the model cache is not used: %s", self.problem)
        path = _path_of(source)
        if path is not None and not self.problem:
            with clock.phase("digest"):
                self.source = self._stamps.known(path, self._weights)
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
                    self._stamps.remember(self.source, self._weights, now_ns=now)

    def _load(self) -> LoadedModel:
        with self._clock.phase("read model"):
            return loader.load(self._given, self._options)

    def plain(self) -> LoadedModel:
        """The model itself, read now if it has not been yet.

        Raises:
            OrtLiteError: It cannot be read.
        """
        if self.loaded is None:
            self.loaded = self._load()
        return self.loaded

    def find(self, opening: Opening) -> Opened | None:
        """The model out of the cache, or None."""
        self._clock = opening.clock
        if self.source is None:
            return None
        return self._hit(key_of(self._identity(opening, self.source)), opening)

    def make(self, opening: Opening) -> Opened:
        """Compile and keep; where another process does that now, wait and take its result.

        Raises:
            OrtLiteError: As a session without a cache.
        """
        self._clock = opening.clock
        source = self.source
        if source is None:
            loaded = self.plain()
            outcome = CacheOutcome(state="missed", reason=self.unfit())
            return replace(make_ready(loaded, opening), cache=outcome)
        from ort_lite.model_cache.keeping import Made, keep  # noqa: PLC0415 - not for what is a hit

        identity = self._identity(opening, source)
        made = Made(identity, source)
        key = key_of(identity)
        with single_flight(self.store.lock_path(key), opening.canceled):
            found = self._hit(key, opening)
            if found is not None:
                return found
            why = miss_reason(self._entries(), identity, self._described)
            loaded = self.plain()
            opened = compile_plain(loaded, opening)
            try:
                with self._clock.phase("keep in cache"):
                    problem = keep(self.store, self._settings.quota, opened, opening, made)
            except BaseException:
                opened.prepared.release()
                raise
        if problem:
            log.warning("%s is not kept in the model cache: %s", loaded.described, problem)
            outcome = CacheOutcome(state="missed", reason=problem, key=key)
        else:
            outcome = CacheOutcome(state="stored", reason=why, key=key)
        return replace(opened, cache=outcome)

    def cache_so_far(self) -> CacheOutcome:
        """See ModelSource: of a model that `find` has not found."""
        return CacheOutcome(state="missed", reason=self.unfit() or "it is being compiled")

    def unfit(self) -> str:
        """Why the model cannot be looked up; "" if it can."""
        if self.source is not None:
            return ""
        loaded = self.loaded
        if self.problem or loaded is None:
            return self.problem
        if has_context_nodes(loaded.model.graph):
            return "it is a compiled model already"
        return "it changed while it was read"

    def close(self, taken: LoadedModel | None = None) -> None:
        """Let go of the plain model, unless it is the one that a session has taken."""
        if self.loaded is not None and self.loaded is not taken:
            self.loaded.close()
            self.loaded = None

    def _identity(self, opening: Opening, source: Source) -> dict[str, str]:
        return cache_identity(source.digest, opening)

    @property
    def _described(self) -> str:
        path = _path_of(self._given)
        return str(path.absolute()) if path is not None else ""

    def _entries(self) -> list[Entry]:
        try:
            return self.store.sound_entries()
        except OSError:
            return []

    def _hit(self, key: str, opening: Opening) -> Opened | None:
        try:
            with self._clock.phase("look up"):
                entry = self.store.entry(key)
        except OSError as exc:
            log.warning("the model cache cannot be read: %s", exc)
            return None
        except FormatError as exc:
            self._drop(key, str(exc))
            return None
        return self._reloaded(entry, opening) if entry is not None else None

    def _reloaded(self, entry: Entry, opening: Opening) -> Opened | None:
        try:
            loaded = self._open_object(entry.model)
        except REFUSED as exc:
            self._drop(entry.key, exc.message)
            return None
        try:
            opened = reload_context(loaded, _for_entry(opening, loaded))
        except REFUSED as exc:
            loaded.close()
            self._drop(entry.key, exc.message)
            return None
        except BaseException:
            loaded.close()
            raise
        self.store.used(entry.key)
        return replace(opened, cache=CacheOutcome(state="hit", key=entry.key))

    def _open_object(self, model: CacheObject) -> LoadedModel:
        """The context model, in which every byte is what was written.

        Raises:
            OrtLiteError: One of REFUSED.
        """
        path = self.store.objects / model.name
        with self._clock.phase("read model"):
            loaded = loader.load(path, self._options)
        if blake3(loaded.data).hexdigest() != path.stem:
            loaded.close()
            raise InvalidGraph(
                f"{path} is not what was written (reason: {Reason.INTEGRITY})",
                reason=Reason.INTEGRITY,
            )
        return loaded.labeled(self._described or "model from memory")

    def _drop(self, key: str, why: str) -> None:
        log.warning(
            "what the model cache has of %s is dropped and compiled again: %s",
            self._described or "a model from memory",
            why,
        )
        try:
            self.store.drop(key)
        except OSError as exc:
            log.warning("it could not be removed from the model cache: %s", exc)


def _for_entry(opening: Opening, loaded: LoadedModel) -> Opening:
    """The session's opening, with payloads looked for in the cache and nowhere else."""
    options = opening.options.snapshot()
    options.clear_ep_context_data_read_func()
    options.add_session_config_entry(PATH_KEY, str(loaded.path))
    options.add_session_config_entry("session.require_payload_digest", "1")
    return opening.with_options(options)


def _path_of(source: object) -> Path | None:
    if not isinstance(source, str | os.PathLike):
        return None
    text = os.fspath(source)
    return Path(text) if isinstance(text, str) else None
