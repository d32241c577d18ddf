"""What a soak does again and again: sessions on every road, forks, kills, a cache of many."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from small_models import feed, sandwich

import ort_lite as ort
from ort_lite.model_cache.eviction import LEFTOVER_SECONDS, remove_leftovers
from ort_lite.model_cache.store import CacheStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EPS = ("CPU", "OpenVINO", "OpenCL")
CACHE = {"session.ep_context_cache": "1", "session.ep_context_cache_dir": "cache"}
ROADS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "plain": ("m.onnx", {}),
    "context": ("c.onnx", {}),
    "embedded": ("e.onnx", {}),
    "cached": ("m.onnx", CACHE),
    "background": ("m.onnx", {"session.ep_compile_in_background": "1"}),
    "refused": ("broken.onnx", {}),
}
"""A model and entries of a session's options; no context is made on the CPU EP."""
CHILD_SECONDS = 120
"""After which a child hangs, on the slowest machine."""
OTHER_PROCESS = """
import sys, ort_lite as ort
options = ort.SessionOptions()
options.add_session_config_entry("session.placement", "all")
options.add_session_config_entry("session.ep_context_cache", "1")
options.add_session_config_entry("session.ep_context_cache_dir", "cache")
ort.InferenceSession("m.onnx", options, providers=[sys.argv[1]]).close()
"""


class WrongAnswerError(Exception):
    """A session computed something else than at first."""


def prepare(ep: str) -> None:
    """Write the models into the working folder: plain, compiled, and damaged."""
    Path("m.onnx").write_bytes(sandwich().SerializeToString())
    for name, embed in (("c.onnx", "0"), ("e.onnx", "1")):
        entries = {
            "ep.context_enable": "1",
            "ep.context_file_path": name,
            "ep.context_embed_mode": embed,
        }
        open_session("m.onnx", entries, ep).close()
    whole = Path("e.onnx" if Path("e.onnx").exists() else "m.onnx").read_bytes()
    Path("broken.onnx").write_bytes(whole[: len(whole) // 2])


def open_session(path: str, entries: Mapping[str, str], ep: str) -> ort.InferenceSession:
    """A session of one execution provider, which it does not go without."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(
        path, options, providers=[f"{ep}ExecutionProvider"], enable_fallback=0
    )


def pieces_of(ep: str) -> dict[str, Callable[[], None]]:
    """Every piece of work with one execution provider, by name."""
    with_context = Path("c.onnx").exists()
    roads = {
        road: piece
        for road, (path, entries) in ROADS.items()
        if with_context or path not in ("c.onnx", "e.onnx")
        for piece in [_session(path, entries, ep)]
    }
    return {**roads, "fork": lambda: fork(ep), "kill": lambda: kill(ep)}


def _session(path: str, entries: Mapping[str, str], ep: str) -> Callable[[], None]:
    inputs = feed(sandwich())
    first: list[np.ndarray] = []

    def piece() -> None:
        if path == "broken.onnx":
            try:
                open_session(path, entries, ep)
            except ort.OrtLiteError:
                return
            raise WrongAnswerError("a damaged model was loaded")
        with open_session(path, entries, ep) as session:
            found = session.run(None, inputs)[0]
            session.background_compile(None)
        first.append(found)
        del first[1:]
        if not np.allclose(found, first[0], atol=1e-4):
            raise WrongAnswerError(f"{path} on {ep}: {found} after {first[0]}")

    return piece


def fork(ep: str) -> None:
    """A child of this process, with a session open, makes its own or is refused."""
    with open_session("m.onnx", {}, ep):
        child = os.fork()
        if not child:
            signal.alarm(CHILD_SECONDS)  # a hang ends it, and is seen
            _in_child(ep)
        if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise WrongAnswerError(f"a forked process ended with {status}")


def _in_child(ep: str) -> None:
    code = 1
    try:
        open_session("m.onnx", {}, ep).close()
        code = 0
    except ort.OrtLiteError:
        code = 0
    finally:
        os._exit(code)


def kill(ep: str) -> None:
    """Two processes fill the cache, one is killed on its way; a session then works."""
    command = [sys.executable, "-c", OTHER_PROCESS, f"{ep}ExecutionProvider"]
    store = CacheStore(Path("cache"))
    store.clear_files()
    with (
        tempfile.TemporaryDirectory() as own,  # a process that is killed leaves what it had there
        subprocess.Popen(command, env={**os.environ, "TMPDIR": own}) as killed,
        subprocess.Popen(command) as other,
    ):
        time.sleep(random.Random().uniform(0.05, 1.5))
        killed.kill()
        if other.wait(CHILD_SECONDS):
            raise WrongAnswerError(f"a process with the cache ended with {other.returncode}")
    open_session("m.onnx", CACHE, ep).close()
    remove_leftovers(store, now=time.time() + 2 * LEFTOVER_SECONDS)
