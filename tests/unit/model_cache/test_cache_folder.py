"""The cache's folder: who may write there, and what failures and killed processes leave in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cached_starts import only_entry, start, store

from ctx_formats.removal import remove_file
from ort_lite.model_cache.eviction import LEFTOVER_SECONDS, remove_leftovers, unnamed_files
from ort_lite.model_cache.objects import ObjectWriter
from ort_lite.model_cache.store import CacheStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ort_lite.model_cache.entry import CacheEntry

FORKED = """
import os, sys
from pathlib import Path
from ort_lite.model_cache.lock import single_flight
lock = Path(sys.argv[1])
forbidden, ended = lambda: True, os.pipe()
with single_flight(lock, lambda: False) as held:
    assert held
    if not os.fork():
        os.close(ended[1])
        os.read(ended[0], 1)  # until the parent is gone
        os._exit(0)
with single_flight(lock, forbidden) as held:
    print(held)
"""


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def lasting_files(cache: Path) -> list[str]:
    """Those of entries and objects."""
    folders = (store(cache).entries_folder, store(cache).objects)
    return [path.name for folder in folders for path in folder.iterdir() if path.is_file()]


def only_size(cache: Path) -> int:
    """Bytes of one of the entries, which are of one size."""
    return store(cache).sound_entries()[0].size


def oldest(cache: Path) -> CacheEntry:
    """The entry that eviction tries first."""
    found = store(cache)
    return min(found.sound_entries(), key=lambda e: (found.last_used(e.key), e.key))


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
@pytest.mark.usefixtures("no_umask")
def test_a_new_cache_is_its_user_s_alone_whatever_the_umask(saved: Path, cache: Path) -> None:
    assert start(saved, cache)[0] == "stored"
    assert cache.stat().st_mode & 0o777 == 0o700
    assert start(saved, cache)[0] == "hit"


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
@pytest.mark.usefixtures("no_umask")
def test_a_cache_in_a_folder_of_the_user_s_own_making_stays_trusted(
    saved: Path, cache: Path
) -> None:
    cache.mkdir(mode=0o755)
    assert start(saved, cache)[0] == "stored"
    assert start(saved, cache)[0] == "hit"
    assert not any(path.stat().st_mode & 0o002 for path in cache.rglob("*"))


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
@pytest.mark.parametrize("name", ["entries", "objects", "sources"])
def test_no_folder_that_decides_what_is_loaded_may_be_everybody_s(
    saved: Path, cache: Path, name: str
) -> None:
    start(saved, cache)
    (store(cache).root / name).chmod(0o777)
    state, reason, _ = start(saved, cache)
    assert (state, "everybody can write" in reason) == ("missed", True)


def test_an_entry_that_cannot_be_committed_leaves_no_objects(saved: Path, cache: Path) -> None:
    start(saved, cache)
    key = only_entry(cache).key
    store(cache).drop(key)
    in_the_way = store(cache).entries_folder / f"{key}.json"
    in_the_way.mkdir()
    state, reason, _ = start(saved, cache)
    assert (state, in_the_way.name in reason) == ("missed", True)
    assert lasting_files(cache) == []


def test_what_killed_processes_left_goes_with_the_next_entry(saved: Path, cache: Path) -> None:
    start(saved, cache)
    names = [f"{'a' * 64}.bin", ".payload.1.tmp", f"{'b' * 64}.bin", ".payload.2.tmp"]
    for name, age in zip(names, (2, 2, 0.5, 0.5), strict=True):
        left = store(cache).objects / name
        left.write_bytes(b"half an entry")
        written = left.stat().st_mtime - age * LEFTOVER_SECONDS
        os.utime(left, (written, written))
    before = set(lasting_files(cache))
    assert start(saved, cache, ep__number="7")[0] == "stored"
    assert before - set(lasting_files(cache)) == set(names[:2])


def test_an_entry_that_cannot_be_removed_is_told_and_costs_nothing_else(
    saved: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start(saved, cache)
    old = only_entry(cache)
    in_the_way = store(cache).objects / old.model.name
    remove_file(in_the_way)
    in_the_way.mkdir()
    room = {"session__ep_context_cache_max_bytes": str(old.size + 100)}
    assert start(saved, cache, ep__number="7", **room)[0] == "stored"
    assert "may stay beyond its quota" in caplog.text
    assert start(saved, cache, ep__number="7")[0] == "hit"


@pytest.fixture
def in_use(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of files that cannot be removed, as on Windows while a session has them mapped."""
    names: set[str] = set()
    unlink = Path.unlink

    def refuse_some(self: Path, *, missing_ok: bool = False) -> None:
        if self.name in names:
            raise PermissionError(13, "a session has it mapped", str(self))
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse_some)
    return names


def test_an_object_in_use_keeps_no_other_entry(
    saved: Path, cache: Path, in_use: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    for number in "123":
        assert start(saved, cache, ep__number=number)[0] == "stored"
    size, held = only_size(cache), oldest(cache).payloads[0].name
    in_use.add(held)
    room = {"session__ep_context_cache_max_bytes": str(size + 100)}
    assert start(saved, cache, ep__number="7", **room)[0] == "stored"
    assert f"{held}" in caplog.text
    assert len(store(cache).sound_entries()) == 1
    assert [path.name for path in unnamed_files(store(cache))] == [held]
    in_use.clear()
    os.utime(store(cache).objects / held, (0, 0))
    assert start(saved, cache, ep__number="8", **room)[0] == "stored"
    assert unnamed_files(store(cache)) == []


def test_a_damaged_entry_that_stays_keeps_no_other_leftover(
    saved: Path, cache: Path, in_use: set[str]
) -> None:
    assert start(saved, cache)[0] == "stored"
    kept = store(cache)
    damaged = [kept.entries_folder / f"{letter * 64}.json" for letter in "ab"]
    for path in damaged:
        path.write_bytes(b"no entry")
    old = kept.objects / "killed.tmp"
    old.write_bytes(b"part of an object")
    os.utime(old, (0, 0))
    in_use.add(damaged[0].name)
    with pytest.raises(PermissionError, match="a session has it mapped"):
        remove_leftovers(kept, now=LEFTOVER_SECONDS + 1)
    assert [path.exists() for path in (*damaged, old)] == [True, False, False]
    in_use.clear()
    assert remove_leftovers(kept, now=LEFTOVER_SECONDS + 1) == [damaged[0].with_suffix("")]
    assert start(saved, cache)[0] == "hit"


def test_an_object_in_use_stays_if_it_is_what_would_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CacheStore(tmp_path)
    cache.prepare()
    first = ObjectWriter(cache).write_model([b"model"])
    path = cache.objects / first.name

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, "a session has it mapped", str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    assert ObjectWriter(cache).write_model([b"model"]) == first
    assert list(cache.objects.iterdir()) == [path]
    path.chmod(0o644)
    path.write_bytes(b"other")
    with pytest.raises(PermissionError, match="a session has it mapped"):
        ObjectWriter(cache).write_model([b"model"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_lock_ends_with_its_work_though_a_fork_holds_the_file(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKED, str(tmp_path / "lock")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")
