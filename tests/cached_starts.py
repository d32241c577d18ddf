"""Sessions that use a model cache, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from small_models import feed, sandwich

import ort_lite as ort
from ort_lite.model_cache.store import CacheStore

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.model_cache.entry import CacheEntry

OPENVINO = "OpenVINOExecutionProvider"


def options(cache: Path, **entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_session_config_entry("session.ep_context_cache", "1")
    # The models are too small to pay on a device, and are to be compiled nevertheless.
    made.add_session_config_entry("session.placement", "all")
    made.add_session_config_entry("session.ep_context_cache_dir", str(cache))
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    return made


def start(
    source: Any, cache: Path, providers: Any = (OPENVINO,), **entries: str
) -> tuple[str, str, list[np.ndarray]]:
    """State and reason of the cache, and the answer."""
    with ort.InferenceSession(source, options(cache, **entries), providers=providers) as session:
        answer = session.run(None, feed(sandwich()))
        found = session.load_report().cache
    return found.state, found.reason, answer


def same(left: list[np.ndarray], right: list[np.ndarray]) -> None:
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


def store(cache: Path) -> CacheStore:
    return CacheStore(cache)


def only_entry(cache: Path) -> CacheEntry:
    (entry,) = store(cache).sound_entries()
    return entry
