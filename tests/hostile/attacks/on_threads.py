"""One session in the hands of many threads, callbacks and closers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from attacks.attack import OURS, Engine, WrongAnswerError, attack, must_fail
from attacks.on_models import X, Y, model

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 32


def together(work: Callable[[int], object]) -> list[BaseException]:
    """Run `work` in 32 threads; what they raised."""
    errors: list[BaseException] = []

    def call(number: int) -> None:
        try:
            work(number)
        except BaseException as exc:  # noqa: BLE001 - judged by the caller
            errors.append(exc)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@attack("threads: 32 run one session")
def _many(engine: Engine) -> None:
    session = engine.session(model())

    def work(number: int) -> None:
        for _ in range(20):
            found = session.run(None, {"x": X + number})[0]
            engine.compare(found, np.maximum(X + number + np.array([1, 2, -3], "f"), 0))

    for error in together(work):
        raise error


@attack("threads: 32 make sessions of one model", alone=True)
def _makers(engine: Engine) -> None:
    data = model().SerializeToString()
    for error in together(lambda _: engine.check(data, {"x": X}, Y)):
        raise error


@attack("threads: run after close", engines=OURS)
def _closed(engine: Engine) -> None:
    session = engine.session(model())
    session.close()
    session.close()
    must_fail(lambda: session.run(None, {"x": X}))


@attack("threads: closed while 32 run", alone=True, engines=OURS)
def _closed_while_running(engine: Engine) -> None:
    for _ in range(2):
        session = engine.session(model())
        begun = threading.Event()

        def work(number: int, session: Any = session, begun: threading.Event = begun) -> None:
            if number == 0:
                begun.wait()
                session.close()
                return
            for _ in range(50):
                found = session.run(None, {"x": X})[0]
                if not np.allclose(found, Y):
                    raise WrongAnswerError(str(found))
                begun.set()

        for error in together(work):
            if not isinstance(error, engine.ort.Fail):
                raise error


@attack("threads: dropped while calls of run_async go on", alone=True)
def _dropped(engine: Engine) -> None:
    done = threading.Semaphore(0)
    found: list[Any] = []

    def callback(outputs: Any, _: Any, error: str) -> None:
        found.append(error or outputs[0])
        done.release()

    session = engine.session(model())
    for _ in range(50):
        session.run_async(None, {"x": X}, callback, None)
    for _ in range(50):
        done.acquire()
    del session
    for one in found:
        engine.compare(one, Y)


@attack("threads: callbacks that raise", alone=True, engines=OURS)
def _raising(engine: Engine) -> None:
    session = engine.session(model())

    def callback(*_: Any) -> None:
        raise KeyError("mine")

    for _ in range(5):
        session.run_async(None, {"x": X}, callback, None)
    session.close()


@attack("threads: closed in a callback", alone=True, engines=OURS)
def _closed_inside(engine: Engine) -> None:
    """It would wait for itself; the error says so, and the session stays open."""
    session = engine.session(model())
    done = threading.Event()
    errors: list[Exception] = []

    def callback(*_: Any) -> None:
        try:
            session.close()
        except engine.ort.Fail as exc:
            errors.append(exc)
        finally:
            done.set()

    session.run_async(None, {"x": X}, callback, None)
    done.wait()
    if len(errors) != 1:
        raise WrongAnswerError("no error")
    engine.compare(session.run(None, {"x": X})[0], Y)
    session.close()
    must_fail(lambda: session.run(None, {"x": X}))


@attack("threads: run in a callback", alone=True)
def _run_inside(engine: Engine) -> None:
    session = engine.session(model())
    done = threading.Event()
    found: list[Any] = []

    def callback(*_: Any) -> None:
        found.extend(session.run(None, {"x": X}))
        done.set()

    session.run_async(None, {"x": X}, callback, None)
    done.wait()
    engine.compare(found[0], Y)


@attack("threads: session made in a thread that ends", alone=True)
def _made_elsewhere(engine: Engine) -> None:
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(engine.session(model())))
    thread.start()
    thread.join()
    engine.compare(made[0].run(None, {"x": X})[0], Y)


@attack("threads: progress callback that raises", alone=True, engines=("openvino", "opencl"))
def _progress(engine: Engine) -> None:
    options = engine.options()
    options.add_provider(engine.provider, {})
    compiler = engine.ort.ModelCompiler(
        options, model().SerializeToString(), embed_compiled_data_into_model=True
    )

    def fails(*_: Any) -> None:
        raise KeyError("mine")

    compiler.set_progress_func(fails)
    try:
        compiler.compile_to_bytes()
    except KeyError:  # the caller's own
        compiler.set_progress_func(lambda *_: None)
        compiler.compile_to_bytes()
        return
    raise WrongAnswerError("swallowed")


@attack("threads: sessions and calls at the exit", alone=True)
def _exit(engine: Engine) -> None:
    session = engine.session(model())
    session.run_async(None, {"x": X}, lambda *_: None, None)
    engine.kept = session  # nobody closes it; the process must end with status 0
