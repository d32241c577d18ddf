"""Many processes, one cache: one compiles, nobody depends on it, and a kill leaves it whole."""

from __future__ import annotations

import os
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
from ort_lite.model_cache import lock
def refuse(*args):
    raise OSError(37, "No locks available")
lock._lock = refuse
"""

FIRST = "no compiled form of this model is in the cache"

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""On Windows any signal but Ctrl-C is TerminateProcess, and the exit code its number."""
KILLED = -KILL if os.name == "posix" else KILL

DIE_AT = """
import os
from ctx_formats import atomic_write
real, count = os.{call}, [0]
def dying(*args, **kwargs):
    count[0] += 1
    if count[0] == {nth}:
        os.kill(os.getpid(), {kill})
    return real(*args, **kwargs)
if "{call}" == "replace":
    import pathlib
    os.rename = dying
os.{call} = dying
"""

FORK_AND_DIE = """
import os, signal, subprocess, sys, time
from ort_lite.model_cache import cached_model
def forked(how):
    if how == "subprocess":
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        return subprocess.Popen(sleeper, close_fds=False).pid
    if how == "multiprocessing":
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        child.start()
        return child.pid
    child = os.fork()
    if not child:
        time.sleep(600)
    return child
def dying(*args):
    print(forked("{how}"), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
cached_model.compile_plain = dying
"""

FORK_IN_THE_MIDDLE = """
import fcntl, os
from ort_lite.model_cache import cached_model, lock
real = cached_model.compile_plain
class Over(Exception):
    pass
def forking(*args):
    child = os.fork()
    if not child:
        raise Over
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    path = next(cache.glob("v1/locks/*.lock"))
    with path.open() as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return real(*args)
    raise SystemExit("the child's way out of its session let go of the parent's lock")
cached_model.compile_plain = forking
import pathlib, sys
cache = pathlib.Path(os.environ["ORT_LITE_CACHE_DIR"])
sys.excepthook = lambda kind, *_: os._exit(7 if kind is Over else 8)
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
    others = [answer["why"] for answer in answers if answer["cache"] not in ("stored", "hit")]
    assert others == []
    if not prelude:
        assert [a["why"] for a in answers if a["cache"] == "stored"] == [FIRST]
    assert len(CacheStore(children.cache).sound_entries()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("call", "nth"), [("fsync", 1), ("fsync", 3), ("replace", 1)])
def test_a_kill_in_the_middle_leaves_a_cache_that_works(
    children: Children, call: str, nth: int
) -> None:
    killed = children.start(DIE_AT.format(call=call, nth=nth, kill=int(KILL)))
    killed.communicate(timeout=120)
    assert killed.returncode == KILLED
    store = CacheStore(children.cache)
    assert children.run()["cache"] == "stored"
    remove_leftovers(store, now=time.time() + 2 * LEFTOVER_SECONDS)
    named = {one.name for entry in store.sound_entries() for one in entry.objects}
    assert {path.name for path in store.objects.iterdir()} == named
    assert children.run()["cache"] == "hit"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("how", ["fork", "multiprocessing", "subprocess"])
def test_a_process_that_a_dead_one_started_keeps_nobody_waiting(
    how: str, children: Children
) -> None:
    dead = children.start(FORK_AND_DIE.replace("{how}", how))
    assert dead.stdout is not None
    forked = int(dead.stdout.readline())
    try:
        assert dead.wait(120) == -signal.SIGKILL
        assert children.run()["cache"] == "stored"
        os.kill(forked, 0)  # it was there all the time
    finally:
        os.kill(forked, signal.SIGKILL)
        dead.communicate(timeout=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_in_the_middle_of_a_compile_leaves_the_lock_to_its_parent(
    children: Children,
) -> None:
    assert children.run(FORK_IN_THE_MIDDLE)["cache"] == "stored"


@pytest.mark.slow
def test_two_versions_of_an_ep_share_a_cache(children: Children) -> None:
    other = """
from ort_lite.providers import catalog
real = catalog.entries
def newer(*args):
    entry = catalog.ProviderEntry
    return {k: entry(e.name, e.target, "another", "2.0") for k, e in real(*args).items()}
catalog.entries = newer
"""
    assert children.run()["cache"] == "stored"
    answer = children.run(other)
    assert answer["cache"] == "stored"
    assert "ExampleExecutionProvider.version is 'another 2.0' and was 'example_ep" in answer["why"]
    assert children.run()["cache"] == "hit"
    assert children.run(other)["cache"] == "hit"
