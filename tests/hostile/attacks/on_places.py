"""Sessions in a process whose surroundings are odd: folders, descriptors, umask, locale, clock."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from attacks.attack import OURS, Engine, WrongAnswerError, add, attack
from attacks.on_models import X, Y, model

if os.name == "posix":
    import resource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def answers(engine: Engine, **config: str) -> None:
    """Two sessions, so that the second one meets what the first one left."""
    for _ in range(2):
        engine.check(model(), {"x": X}, Y, engine.options(**config))


def place(name: str, change: Callable[[Engine], object]) -> None:
    """A session after `change`."""

    def run(engine: Engine) -> None:
        change(engine)
        answers(engine)

    add(f"surroundings: {name}", run, alone=True)


def with_cache(name: str, change: Callable[[Path], object]) -> None:
    """A session that keeps its model in a folder that `change` has prepared."""

    def run(engine: Engine) -> None:
        folder = engine.folder / "cache"
        change(folder)
        answers(engine, session__model_cache=str(folder))

    add(f"surroundings: cache {name}", run, alone=True, engines=OURS)


def unset(name: str) -> None:
    os.environ.pop(name, None)


def gone(engine: Engine) -> None:
    folder = engine.folder / "gone"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()


def closed(*numbers: int) -> Callable[[Engine], None]:
    def change(_: Engine) -> None:
        for number in numbers:
            os.close(number)

    return change


def full_stderr(_: Engine) -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)


def few_descriptors(_: Engine) -> None:

    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))


def no_core_no_files(_: Engine) -> None:

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def no_streams(_: Engine) -> None:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]  # as under pythonw


def backwards(_: Engine) -> None:
    """A clock that goes backwards by an hour at each look."""
    start = time.time()
    state = {"now": start}

    def earlier() -> float:
        state["now"] -= 3600
        return state["now"]

    time.time = earlier
    time.time_ns = lambda: int(earlier() * 1e9)


place("HOME is unset", lambda _: unset("HOME"))
place(
    "HOME is nowhere",
    lambda _: os.environ.update(HOME="/dev/null/x", XDG_CACHE_HOME="/dev/null/x/c"),
)
place(
    "HOME is a file", lambda _: os.environ.update(HOME="/etc/passwd", XDG_CACHE_HOME="/etc/passwd")
)
place("HOME is no text", lambda _: os.environ.update(HOME="/\udcff"))
place("TMPDIR is missing", lambda _: os.environ.update(TMPDIR="/nosuch"))
place("TMPDIR is relative", lambda _: os.environ.update(TMPDIR="x"))
place("PATH is empty", lambda _: os.environ.update(PATH=""))
place("the environment is empty", lambda _: os.environ.clear())
place("LANG is C", lambda _: os.environ.update(LANG="C", LC_ALL="C"))
place("LANG is unknown", lambda _: os.environ.update(LANG="xx_YY.UTF-99", LC_ALL="xx"))
place("umask 0777", lambda _: os.umask(0o777))
place("stdin is closed", closed(0))
place("streams are None", no_streams)
place("the clock goes backwards", backwards)

if os.name == "posix":
    place("the working folder is gone", gone)
    place("stderr is full", full_stderr)
    place("few descriptors", few_descriptors)
    place("no file may grow", no_core_no_files)
    with_cache("is a symlink to nowhere", lambda folder: folder.symlink_to("/proc/nosuch/at"))
    with_cache("is /dev/full", lambda folder: folder.symlink_to("/dev/full"))
    with_cache("is /proc", lambda folder: folder.symlink_to("/proc"))

with_cache("is a file", lambda folder: folder.write_text("mine"))
with_cache("is read-only", lambda folder: folder.mkdir(mode=0o500))
with_cache("is without permissions", lambda folder: folder.mkdir(mode=0))
with_cache("is everybody's", lambda folder: (folder.mkdir(), folder.chmod(0o777)))
with_cache(
    "holds folders where files belong",
    lambda folder: [
        (folder / name / "x").mkdir(parents=True)
        for name in ("objects", "locks", "sources", "entries")
    ],
)
with_cache(
    "holds files where folders belong",
    lambda folder: (
        folder.mkdir(),
        [(folder / n).write_text("x") for n in ("objects", "locks", "sources", "entries")],
    ),
)


@attack("surroundings: cache under umask 0777", alone=True, engines=OURS)
def _umask(engine: Engine) -> None:
    os.umask(0o777)
    answers(engine, session__model_cache=str(engine.folder / "cache"))


def _full(engine: Engine) -> None:
    no_core_no_files(engine)
    answers(engine, session__model_cache=str(engine.folder / "cache"))


if os.name == "posix":
    add("surroundings: cache where no file may grow", _full, alone=True, engines=OURS)


@attack("surroundings: cache while the clock goes backwards", alone=True, engines=OURS)
def _clock(engine: Engine) -> None:
    backwards(engine)
    answers(engine, session__model_cache=str(engine.folder / "cache"))


@attack("surroundings: a model dated in the future", alone=True)
def _future(engine: Engine) -> None:
    path, config = engine.folder / "m.onnx", {}
    if engine.is_ours:
        config["session__model_cache"] = str(engine.folder / "cache")
    for sign in (1, -1, 1):
        proto = model()
        weight = np.array([1, 2, -3], np.float32) * sign
        proto.graph.initializer[0].raw_data = weight.tobytes()
        path.write_bytes(proto.SerializeToString())
        os.utime(path, (4e9, 4e9))  # the same date for each content
        wanted = np.maximum(X + weight, 0)
        engine.compare(engine.session(str(path), **config).run(None, {"x": X})[0], wanted)


def _context_to(name: str, target: str) -> None:
    def run(engine: Engine) -> None:
        config = {"ep__context_enable": "1", "ep__context_file_path": target}
        session = engine.session(model(), **config)
        engine.compare(session.run(None, {"x": X})[0], Y)
        if engine.is_ours and engine.name != "cpu":
            raise WrongAnswerError("no context is written, and nobody says so")

    add(f"surroundings: context to {name}", run, alone=True)


for _label, _target in {
    "/dev/full": "/dev/full",
    "/dev/null/x": "/dev/null/x",
    "/proc/x.onnx": "/proc/x.onnx",
    "a missing folder": "/proc/nosuch/x.onnx",
    "a folder": "/",
    "a name of 300": "/tmp/" + "n" * 300,
}.items():
    _context_to(_label, _target)


SIGNAL = signal.SIGINT if sys.platform == "win32" else signal.SIGALRM


def send_signals(seconds: float, *, again: bool = False) -> Callable[[], None]:
    """Send SIGNAL after so long, or again and again; the result stops that.

    Windows has no interval timers; Ctrl-C arrives there as from this thread.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds if again else 0)

        def stop_timer() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)

        return stop_timer
    ended = Event()

    def send() -> None:
        while not ended.wait(seconds):
            _thread.interrupt_main(SIGNAL)
            if not again:
                return

    thread = Thread(target=send)
    thread.start()

    def stop() -> None:
        ended.set()
        thread.join()

    return stop


@attack("surroundings: an alarm during runs", alone=True)
def _alarm(engine: Engine) -> None:
    seen = []
    signal.signal(SIGNAL, lambda *_: seen.append(1))
    stop = send_signals(0.001, again=True)
    try:
        session = engine.session(model())
        for _ in range(300):
            engine.compare(session.run(None, {"x": X})[0], Y)
    finally:
        stop()


class MineError(Exception):
    """What a signal handler raises."""


@attack("surroundings: a signal handler that raises", alone=True)
def _raising(engine: Engine) -> None:
    def handler(*_: Any) -> None:
        raise MineError

    signal.signal(SIGNAL, handler)
    session = engine.session(model())
    for _ in range(300):
        try:
            send_signals(0.0005)
            session.run(None, {"x": X})
            while True:  # where the run was quicker; pause() would miss a signal just before it
                time.sleep(0.001)
        except MineError:
            engine.compare(session.run(None, {"x": X})[0], Y)
