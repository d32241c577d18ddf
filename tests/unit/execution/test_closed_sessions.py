"""A closed session is gone at once: nothing of it waits for the garbage collector.

What does keeps a model's threads, descriptors and memory: after 300 sessions from contexts these
were 47 threads and 830 MB.
"""

from __future__ import annotations

import gc
import mmap
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from onnx import helper
from small_models import feed, model, sandwich
from system_limits import needs_posix

import ort_lite as ort
from ort_lite.ep.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ort_lite.ep.kernels import KernelInfo

EPS = ["CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider"]
USES = 20
CONTEXT = {"ep.context_enable": "1", "ep.context_file_path": "c.onnx"}
CACHE = {"session.ep_context_cache": "1", "session.ep_context_cache_dir": "cache"}
ROADS = {
    "plain": ("m.onnx", {}),
    "external": ("c.onnx", CONTEXT),
    "embedded": ("c.onnx", {**CONTEXT, "ep.context_embed_mode": "1"}),
    "cached": ("m.onnx", CACHE),
    "background": ("m.onnx", {"session.ep_compile_in_background": "1"}),
}


def use(path: str, ep: str, entries: Mapping[str, str]) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    session = ort.InferenceSession(path, options, providers=[ep])
    session.run(None, feed(sandwich()))
    session.background_compile(None)
    session.close()


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("ep", EPS)
def test_a_closed_session_leaves_nothing_to_the_collector(
    ep: str, road: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(sandwich().SerializeToString())
    opened, entries = ROADS[road]
    use("m.onnx", ep, entries)  # compiles where there is something to compile
    again = {} if opened == "c.onnx" and Path(opened).exists() else entries
    if again is entries and opened == "c.onnx":
        pytest.skip(f"{ep} keeps no contexts")
    use(opened, ep, again)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        use(opened, ep, again)
        gc.collect()
        left = {
            f"{type(one).__module__}.{type(one).__qualname__}"
            for one in gc.garbage
            if type(one).__module__.startswith("eps.") or isinstance(one, mmap.mmap | memoryview)
        }
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == set()


@needs_posix
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads under /proc")
@pytest.mark.parametrize("ep", EPS[1:])
def test_threads_and_descriptors_do_not_pile_up(
    ep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(sandwich().SerializeToString())
    use("m.onnx", ep, CONTEXT)

    def held() -> tuple[int, int]:
        threads, descriptors = Path("/proc/self/task"), Path("/proc/self/fd")
        return len(list(threads.iterdir())), len(list(descriptors.iterdir()))

    use("c.onnx", ep, {})
    before = held()
    for _ in range(USES):
        use("c.onnx", ep, {})
    for now, then in zip(held(), before, strict=True):
        assert now - then < USES // 2  # drivers and other tests start or end a thread at times


def test_a_run_that_its_session_is_closed_under_says_so() -> None:
    """It gave None for outputs whose memory was gone."""
    inside, closed = threading.Event(), threading.Event()

    def waits(info: KernelInfo) -> Callable[[Any], Any]:
        def compute(x: Any) -> Any:
            inside.set()
            closed.wait()
            return x

        return compute

    options = ort.SessionOptions()
    options.register_custom_kernel(kernel("Waits", domain="test")(waits))
    proto = model(
        [
            helper.make_node("Waits", ["x"], ["t"], domain="test"),
            helper.make_node("Neg", ["t"], ["y"]),
        ],
        [("x", [2])],
        [("y", [2])],
    )
    proto.opset_import.append(helper.make_opsetid("test", 1))
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=EPS[:1])
    errors: list[str] = []

    def run() -> None:
        try:
            session.run(None, feed(proto))
        except ort.Fail as exc:
            errors.append(exc.message)

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait()
    session.close()
    closed.set()
    thread.join()
    assert errors == ["the session was closed by another thread while it ran"]


def test_a_callback_cannot_close_the_session_that_waits_for_it() -> None:
    session = ort.InferenceSession(sandwich().SerializeToString(), providers=EPS[:1])
    errors: list[str] = []

    def callback(*_: Any) -> None:
        try:
            session.close()
        except ort.Fail as exc:
            errors.append(exc.message)

    session.run_async(None, feed(sandwich()), callback)
    session.close()
    assert len(errors) == 1
    assert "close it in another thread" in errors[0]
