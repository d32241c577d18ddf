"""Reloads entries of the cache; a damaged entry is reported and dropped."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.model_file import digest_pieces
from ort_lite.context.keys import (
    CACHE_SECRET_KEY,
    MAP_KEY,
    MAP_OF_CACHE,
    PATH_KEY,
    PROBE_KEY,
    TRUST_KEY,
)
from ort_lite.model import loader
from ort_lite.planning.placement import NO_FALLBACK_KEY
from ort_lite.session_log import get_logger
from ort_lite.start.load_request import CacheOutcome
from ort_lite.start.prepare_model import reload_context, require_placement
from ort_lite.status import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
)
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from ort_lite.model.loader import LoadedModel
    from ort_lite.model_cache.entry import CacheEntry
    from ort_lite.model_cache.store import CacheStore
    from ort_lite.options import SessionOptions
    from ort_lite.start.load_request import LoadClock, LoadRequest
    from ort_lite.start.prepare_model import PreparedModel

log = get_logger(__name__)

REFUSED = (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplementedByAny)
"""Errors of an entry that cannot be used here; the model is then compiled again."""

UNUSABLE = (OSError, FormatError, *REFUSED)
"""Errors of an entry that cannot be opened."""


@dataclass(frozen=True, slots=True)
class OpenEntry:
    """An entry and its context model, whose payloads have not been looked at."""

    entry: CacheEntry
    loaded: LoadedModel

    def options(self, session: SessionOptions) -> SessionOptions:
        """The session's, with payloads looked for in the cache and nowhere else.

        Rules about where nodes may run are not part of the entry: `EntryReader.reload` checks them.
        """
        options = session.snapshot()
        options.clear_ep_context_data_read_func()
        options.add_session_config_entry(PATH_KEY, str(self.loaded.path))
        options.add_session_config_entry("session.require_payload_digest", "1")
        options.add_session_config_entry(NO_FALLBACK_KEY, "0")
        if MAP_KEY not in options.config:
            # Files of the cache never change; a cache with a key assumes that they might.
            keyed = CACHE_SECRET_KEY in options.config
            options.add_session_config_entry(MAP_KEY, "0" if keyed else MAP_OF_CACHE)
        return options


class EntryReader:
    """Reads entries for one session.

    Attributes:
        trouble: What was wrong with the last one that was of no use; "" so far.
    """

    def __init__(self, store: CacheStore, options: SessionOptions, model: str) -> None:
        """Read nothing yet.

        Args:
            store: Where they are.
            options: The session's.
            model: What messages call the plain model; "" for one from memory.
        """
        self.trouble = ""
        self._store = store
        self._options = options.without(TRUST_KEY)  # the entry is not what is signed
        self._model = model

    def find(self, key: str, request: LoadRequest) -> PreparedModel | None:
        """The model of that key, ready to run; None if absent or unusable."""
        try:
            entry = self.open(key, request.clock)
        except OSError as exc:
            known, self.trouble = self.trouble, f"the model cache cannot be read: {exc}"
            if known != self.trouble:  # it is asked again before it is compiled
                log.warning("%s", self.trouble)
            return None
        except (FormatError, *REFUSED) as exc:
            self._drop(key, str(exc) if isinstance(exc, FormatError) else exc.message)
            return None
        return self.reload(entry, replace(request, early=None)) if entry is not None else None

    def open(self, key: str, clock: LoadClock) -> OpenEntry | None:
        """The entry of that key with its context model, in which every byte is what was written.

        Raises:
            OSError: The cache cannot be read.
            FormatError: The entry is damaged.
            OrtLiteError: One of REFUSED; the context model is.
        """
        with clock.phase("look up"):
            entry = self._store.entry(key)
        if entry is None:
            return None
        self._store.require_mac(entry)
        path = self._store.objects / entry.model.name
        with clock.phase("read model"):
            loaded = loader.load(path, self._options)
        if digest_pieces(loaded.data.pieces()).hexdigest() != path.stem:
            loaded.close()
            raise InvalidGraph(
                f"{path} is not what was written (reason: {Reason.INTEGRITY})",
                reason=Reason.INTEGRITY,
            )
        if PROBE_KEY in self._options.config:
            loaded = replace(loaded, kept_here=self._is_ours())
        return OpenEntry(entry, loaded.with_label(self._model or "model from memory"))

    def reload(self, entry: OpenEntry, request: LoadRequest) -> PreparedModel | None:
        """The model ready to run; `entry` is its, or closed.

        Raises:
            Fail: The session forbids the placement of the entry's nodes; the entry is valid.
        """
        loaded, key = entry.loaded, entry.entry.key
        with ExitStack() as undo:
            undo.callback(loaded.close)
            try:
                options = entry.options(request.options)
                opened = reload_context(loaded, request.with_options(options))
            except REFUSED as exc:
                self._drop(key, exc.message)
                return None
            self._store.note_use(key)
            opened = require_placement(opened, request.options)
            undo.pop_all()
        return replace(opened, cache=CacheOutcome(state="hit", key=key))

    def _is_ours(self) -> bool:
        """Whether this user's sessions, or those with the cache's key, alone make entries."""
        from ort_lite.model_cache.ownership import writable_by_others  # noqa: PLC0415 - lazy: rare

        return self._store.secret is not None or not any(
            writable_by_others(folder)
            for folder in (self._store.entries_folder, self._store.objects)
        )

    def _drop(self, key: str, why: str) -> None:
        self.trouble = f"the old entry is dropped: {why}"
        log.warning(
            "the cache entry of %s is dropped, and the model is compiled again: %s",
            self._model or "a model from memory",
            why,
        )
        try:
            self._store.drop(key)
        except OSError as exc:
            log.warning("it could not be removed from the model cache: %s", exc)
