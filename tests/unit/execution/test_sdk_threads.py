"""Closing a session waits for the system's end of the threads that compiled for it.

Before Python 3.13, `Thread.join` does not. Here each such thread sleeps in a destructor of
thread-specific data, as those of SDKs run: pthread_key_create(3).
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from small_models import model

import ort_lite as ort
from ort_lite.sdk_thread import SdkThread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

TASKS = Path("/proc/self/task")
LATE = 200_000
"""Microseconds between the end in Python and that in the system."""
OPENVINO = "OpenVINOExecutionProvider"
OPENCL = "OpenCLExecutionProvider"

pytestmark = pytest.mark.skipif(not TASKS.exists(), reason="no /proc/self/task here")


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """The numbers of threads that ended late."""
    libc, key = ctypes.CDLL(None), ctypes.c_uint()
    assert libc.pthread_key_create(ctypes.byref(key), libc.usleep) == 0
    numbers: set[int] = set()
    run = SdkThread.run

    def run_late(thread: SdkThread) -> None:
        assert libc.pthread_setspecific(key, ctypes.c_void_p(LATE)) == 0
        numbers.add(threading.get_native_id())
        run(thread)

    monkeypatch.setattr(SdkThread, "run", run_late)
    yield numbers
    libc.pthread_key_delete(key)


def still_there(numbers: set[int]) -> set[int]:
    return {number for number in numbers if (TASKS / str(number)).exists()}


def wait_for_python(began: Collection[int], count: int) -> None:
    """Until so many threads have begun, and ended in Python alone; fails after a minute."""
    for _ in range(6000):
        running = any(isinstance(thread, SdkThread) for thread in threading.enumerate())
        if len(began) == count and not running:
            return
        time.sleep(0.01)
    raise AssertionError("a minute has passed")


def rows(n: int) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.arange(n * 4, dtype=np.float32).reshape(n, 4)}


def session(ep: str = OPENVINO, **entries: str) -> ort.InferenceSession:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])]
    proto = model(nodes, [("x", ["n", 4])], [("y", ["n", 4])])
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    for key, value in entries.items():
        options.add_session_config_entry(f"session.{key}", value)
    return ort.InferenceSession(proto.SerializeToString(), options, providers=[ep])


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Thread.join waits for the system, too")
def test_joining_alone_does_not_wait(late: set[int]) -> None:
    thread = SdkThread(target=int)
    thread.start()
    thread.join()
    assert still_there(late)
    thread.wait_for_end()
    assert not still_there(late)
    thread.wait_for_end()  # ended once and for all


def test_a_thread_does_not_wait_for_itself() -> None:
    asked = threading.Event()

    def ask() -> None:
        thread.wait_for_end()
        asked.set()

    thread = SdkThread(target=ask)
    thread.start()
    thread.wait_for_end()
    assert asked.is_set()


def test_waiting_for_a_compile_waits_for_its_thread(late: set[int]) -> None:
    with session(ep_compile_in_background="1") as mine:
        assert mine.background_compile(None).state == "done"
        assert late
        assert not still_there(late)


def test_closing_after_a_compile_waits_for_its_thread(late: set[int]) -> None:
    with session(ep_compile_in_background="1") as mine:
        wait_for_python(late, 1)
        assert OPENVINO in mine.get_providers()
    assert not still_there(late)


def test_closing_after_a_specialized_plan_waits_for_its_thread(late: set[int]) -> None:
    with session(specialize_after_runs="1") as mine:
        for _ in range(2):
            mine.run(None, rows(2))
        wait_for_python(late, 1)
    assert not still_there(late)


@pytest.mark.skipif(not find_spec("pyopencl"), reason="pyopencl is missing")
def test_closing_after_a_compile_for_shapes_waits_for_its_thread(late: set[int]) -> None:
    with session(OPENCL, ep_compile_in_background="1") as mine:
        assert mine.background_compile(None).state == "done"
        mine.run(None, rows(2))
        wait_for_python(late, 2)
    assert not still_there(late)
