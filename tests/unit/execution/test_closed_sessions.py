"""A closed session is gone at once: nothing of it waits for the garbage collector.

What does keeps a model's threads, descriptors and memory: after 300 sessions from contexts these
were 47 threads and 830 MB.
"""

from __future__ import annotations

import gc
import mmap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from small_models import feed, sandwich

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Mapping

EPS = ["CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider"]
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
    for _ in range(20):
        use("c.onnx", ep, {})
    after = held()
    assert after[0] <= before[0]
    assert after[1] <= before[1]
