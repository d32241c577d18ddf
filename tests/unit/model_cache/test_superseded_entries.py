"""Entries for an old driver stay until the new one's have run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cached_starts import options, start, store
from small_models import feed, sandwich

import ort_lite as ort
from eps.opencl.runtime.identity import read_identity
from ort_lite.model_cache.superseded import superseded_keys

if TYPE_CHECKING:
    from pathlib import Path

OPENCL = "OpenCLExecutionProvider"


@pytest.fixture
def old_entry(saved: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Key of an entry for the driver before the update."""
    assert start(saved, cache, [OPENCL])[0] == "stored"
    (entry,) = store(cache).sound_entries()
    monkeypatch.setattr(
        "eps.opencl.provider.read_identity",
        lambda device: replace(read_identity(device), driver_version="updated"),
    )
    return entry.key


def quota_of_one(cache: Path) -> dict[str, str]:
    size = sum(path.stat().st_size for path in store(cache).objects.iterdir())
    return {"session__ep_context_cache_max_bytes": str(size + 100)}


@pytest.mark.parametrize("background", ["0", "1"])
def test_an_entry_for_the_old_driver_stays_until_the_new_one_has_run(
    saved: Path, cache: Path, old_entry: str, background: str
) -> None:
    chosen = options(cache, **quota_of_one(cache), session__ep_compile_in_background=background)
    with ort.InferenceSession(saved, chosen, providers=[OPENCL]) as session:
        if background == "1":
            session.run(None, feed(sandwich()))  # on the CPU EP, which proves nothing
            assert session.background_compile(None).state == "done"
        keys = set(store(cache).entry_keys())
        assert len(keys) == 2
        session.run(None, feed(sandwich()))
        assert set(store(cache).entry_keys()) == keys - {old_entry}


def test_an_entry_with_other_options_is_not_spared(saved: Path, cache: Path) -> None:
    start(saved, cache, [OPENCL])
    (entry,) = store(cache).sound_entries()
    room = quota_of_one(cache)
    with ort.InferenceSession(saved, options(cache, **room, ep__number="2"), providers=[OPENCL]):
        assert entry.key not in store(cache).entry_keys()


def test_only_the_environment_may_differ(saved: Path, cache: Path) -> None:
    start(saved, cache, [OPENCL])
    (entry,) = store(cache).sound_entries()
    identity = dict(entry.identity)
    for field, is_spared in {
        f"{OPENCL}.driver_version": True,
        f"{OPENCL}.version": True,
        "producer": True,
        f"{OPENCL}.option.precision": False,
        "dimension.n": False,
        "config.ep.number": False,
        "model": False,
        "providers": False,
    }.items():
        keys = superseded_keys([entry], {**identity, field: "another"})
        assert (keys == (entry.key,)) == is_spared, field
    assert superseded_keys([entry], identity) == ()
