"""Looks a model up in the cache as a session would, without creating one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.keys import CACHE_KEY, FOLDER_KEY
from ort_lite.ep.interface import SupportsEpContext
from ort_lite.model.info import ModelMetadata
from ort_lite.model_cache.cached_model import CachedModel
from ort_lite.model_cache.entry import key_of
from ort_lite.model_cache.identity import cache_identity, differences
from ort_lite.model_cache.kept_choice import find_choice
from ort_lite.model_cache.miss_reason import miss_reason, nearest_entry
from ort_lite.model_cache.settings import bypass_reason
from ort_lite.model_cache.verification import object_problem
from ort_lite.providers.provider_list import (
    applied_options,
    choose_requests,
    open_all,
    read_requests,
)
from ort_lite.start.load_request import LoadClock, LoadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ctx_formats.identity import FieldDifference
    from ort_lite.model_cache.settings import CacheSettings
    from ort_lite.options import SessionOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLookup:
    """Result of looking a model up in the cache.

    Attributes:
        hit: Whether an entry is there and sound.
        reason: Why it is not a hit; "" for one.
        key: Of the entry that was looked for; "" where the model cannot be cached.
        identity: All that was looked for.
        differences: From the entry that is nearest; "" for a field that one side lacks.
    """

    hit: bool
    reason: str = ""
    key: str = ""
    identity: Mapping[str, str] | None = None
    differences: tuple[FieldDifference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "hit": self.hit,
            "reason": self.reason,
            "key": self.key,
            "identity": dict(self.identity or {}),
            "differences": [
                {"field": d.field, "cached": d.recorded, "present": d.present}
                for d in self.differences
            ],
        }


def look_up(
    model: Path,
    options: SessionOptions,
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
    settings: CacheSettings,
) -> CacheLookup:
    """Look up the entry that a session with these arguments would use.

    The EPs are opened, for their identity.

    Raises:
        OrtLiteError: The model cannot be read, an EP cannot be opened, or the user's delegate
            for the choice of devices failed.
    """
    off = options.config.get(CACHE_KEY) == "0"
    reason = f"{CACHE_KEY} is 0" if off else bypass_reason(options)
    if reason:
        return CacheLookup(hit=False, reason=f"sessions bypass the cache: {reason}")
    options = options.snapshot()
    # Of a folder that the command line names, the options know nothing.
    options.add_session_config_entry(CACHE_KEY, "1")
    options.add_session_config_entry(FOLDER_KEY, str(settings.folder))
    cached = CachedModel(settings, model, options, LoadClock())
    try:
        if cached.source is None:
            return CacheLookup(hit=False, reason=cached.refusal_reason())
        named = read_requests(providers, None)
        requests = choose_requests(
            options, named, lambda: ModelMetadata.of(cached.load_plain().model)
        )
        listed = requests
        choice = find_choice(model, options, requests, ())
        if choice is not None and choice.is_default_only:
            return CacheLookup(hit=True, reason="; ".join(choice.notes[:1]))
        if choice is None and options.selects_by_runs and not named:
            return CacheLookup(hit=False, reason="FASTEST has not measured this model here")
        if choice is not None:
            requests = choice.pick(requests)
        eps = open_all(requests)
        try:
            if not any(isinstance(ep, SupportsEpContext) for ep in eps):
                names = ", ".join(ep.name for ep in eps)
                return CacheLookup(hit=False, reason=f"no compiled model is kept by {names}")
            opened = [ep.name for ep in eps] if choice is None else choice.names
            provider_options = applied_options([*listed, *requests], opened)
            request = LoadRequest(
                options=options,
                eps=eps,
                provider_options=provider_options,
                clock=LoadClock(),
                choice=choice,
            )
            identity = cache_identity(cached.source.digest, request, settings.secret)
        finally:
            for ep in eps:
                ep.release()
        return _look_up_entry(cached, identity, str(model.absolute()))
    finally:
        cached.close()


def _look_up_entry(cached: CachedModel, identity: dict[str, str], path: str) -> CacheLookup:
    store, key = cached.store, key_of(identity)
    try:
        entry = store.entry(key)
        entries = store.sound_entries()
    except (FormatError, OSError) as exc:
        return CacheLookup(hit=False, reason=str(exc), key=key, identity=identity)
    if entry is None:
        near = nearest_entry(entries, identity, path)
        return CacheLookup(
            hit=False,
            reason=miss_reason(entries, identity, path),
            key=key,
            identity=identity,
            differences=differences(near.identity, identity) if near is not None else (),
        )
    try:
        store.require_mac(entry)
    except FormatError as exc:
        return CacheLookup(hit=False, reason=str(exc), key=key, identity=identity)
    problems = [p for p in (object_problem(store, one) for one in entry.objects) if p]
    return CacheLookup(hit=not problems, reason="; ".join(problems), key=key, identity=identity)
