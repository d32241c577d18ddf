"""Many processes, one cache: one compiles, nobody depends on it, and a kill leaves it whole."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest
from cache_children import Children, told
from plugin.installed_site import SOURCE, Site
from small_models import mlp

from ort_lite.model_cache.eviction import LEFTOVER_SECONDS, remove_leftovers
from ort_lite.model_cache.store import CacheStore

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES = 16

NO_LOCKS = """
import fcntl
def refuse(*args):
    raise OSError(37, "No locks available")
fcntl.flock = refuse
"""

DIE_AT = """
import os, signal
from ctx_formats import atomic_write
real, count = os.{call}, [0]
def dying(*args, **kwargs):
    count[0] += 1
    if count[0] == {nth}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
if "{call}" == "replace":
    import pathlib
    os.rename = dying
os.{call} = dying
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("site"))
    made.install(SOURCE)
    return made


@pytest.fixture
def children(site: Site, tmp_path: Path) -> Children:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    return Children(site, path, tmp_path / "cache")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prelude", "count"), [("", PROCESSES), (NO_LOCKS, 4)], ids=["locks", "none"]
)
def test_many_processes_at_once(children: Children, prelude: str, count: int) -> None:
    started = [children.start(prelude) for _ in range(count)]
    answers = [told(child) for child in started]
    assert len({str(answer["answer"]) for answer in answers}) == 1
    states = [answer["cache"] for answer in answers]
    assert set(states) <= {"stored", "hit"}
    if not prelude:
        assert states.count("stored") == 1
    assert len(CacheStore(children.cache).sound_entries()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("call", "nth"), [("fsync", 1), ("fsync", 3), ("replace", 1)])
def test_a_kill_in_the_middle_leaves_a_cache_that_works(
    children: Children, call: str, nth: int
) -> None:
    killed = children.start(DIE_AT.format(call=call, nth=nth))
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    store = CacheStore(children.cache)
    assert children.run()["cache"] == "stored"
    remove_leftovers(store, now=time.time() + 2 * LEFTOVER_SECONDS)
    named = {one.name for entry in store.sound_entries() for one in entry.objects}
    assert {path.name for path in store.objects.iterdir()} == named
    assert children.run()["cache"] == "hit"


@pytest.mark.slow
def test_two_versions_of_an_ep_share_a_cache(children: Children) -> None:
    other = """
from ort_lite.providers import catalog
real = catalog.entries
def newer(*args):
    return {k: catalog.Entry(e.name, e.target, "another", "2.0") for k, e in real(*args).items()}
catalog.entries = newer
"""
    assert children.run()["cache"] == "stored"
    answer = children.run(other)
    assert answer["cache"] == "stored"
    assert "ExampleExecutionProvider.version is 'another 2.0' and was 'example_ep" in answer["why"]
    assert children.run()["cache"] == "hit"
    assert children.run(other)["cache"] == "hit"
