"""Programs for shapes met while running: the model cache keeps them for the next start."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from blake3 import blake3
from cached_starts import only_entry, options, store
from onnx import helper
from opencl_devices import device_names
from small_models import model
from system_limits import needs_removal_while_open

import ort_lite as ort
from eps.opencl.runtime import program
from ort_lite.model_cache import kept_shapes
from ort_lite.model_cache.verification import problems

if TYPE_CHECKING:
    from pathlib import Path

OPENCL = "OpenCLExecutionProvider"
DEVICES = device_names()
SIDE = 64


def product() -> bytes:
    """A product of free rows."""
    weights = np.random.default_rng(3).standard_normal((SIDE, SIDE)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    shape = ["rows", SIDE]
    return model(nodes, [("x", shape)], [("y", shape)], {"w": weights}).SerializeToString()


def rows(n: int) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.random.default_rng(n).standard_normal((n, SIDE)).astype(np.float32)}


def run(
    cache: Path, *counts: int, device: str = DEVICES[0], most: int = 8, **entries: str
) -> tuple[str, str]:
    """Runs each number of rows in a session of its own; the cache's answer, and the programs."""
    right = onnxruntime.InferenceSession(product(), providers=["CPUExecutionProvider"])
    providers = [(OPENCL, {"device": device, "max_variants": str(most)})]
    with ort.InferenceSession(product(), options(cache, **entries), providers=providers) as session:
        for n in counts:
            np.testing.assert_allclose(
                session.run(["y"], rows(n))[0], right.run(["y"], rows(n))[0], rtol=1e-4, atol=1e-4
            )
        found = session.load_report().cache.state, session.explain().partitions[0].notes[0]
    wait_until_kept()
    return found


def wait_until_kept() -> None:
    for thread in threading.enumerate():
        if thread.name == "ort_lite-keep-shapes":
            thread.join()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def forbid_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*arguments: Any) -> Any:
        raise AssertionError(f"built after all: {arguments}")

    monkeypatch.setattr(program, "build", build)


@pytest.mark.parametrize("device", DEVICES)
def test_the_next_start_has_the_programs_of_this_one(
    cache: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(cache, 3, 5, device=device)[0] == "stored"
    forbid_builds(monkeypatch)
    state, notes = run(cache, 5, 3, device=device)
    assert state == "hit"
    assert notes.count("(reloaded)") == 2, notes
    assert not list(problems(store(cache)))


def test_programs_add_up_over_sessions_and_the_oldest_go(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in (2, 3, 4):
        run(cache, n, most=2)
    forbid_builds(monkeypatch)
    _, notes = run(cache, 3, 4, most=2)
    assert f"x[3, {SIDE}] (reloaded)" in notes
    assert "x[2," not in notes


def test_sessions_that_are_open_at_once_add_to_each_other(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(cache)
    providers = [(OPENCL, {"device": DEVICES[0], "max_variants": "8"})]
    with (
        ort.InferenceSession(product(), options(cache), providers=providers) as one,
        ort.InferenceSession(product(), options(cache), providers=providers) as other,
    ):
        one.run(None, rows(2))
        wait_until_kept()
        other.run(None, rows(7))
        wait_until_kept()
    forbid_builds(monkeypatch)
    assert run(cache, 2, 7)[1].count("(reloaded)") == 2


def test_a_process_that_ends_after_its_first_run_keeps_what_it_compiled(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.onnx").write_bytes(product())
    program = f"""
import numpy as np
import ort_lite as ort
options = ort.SessionOptions()
options.add_session_config_entry("session.ep_context_cache", "1")
options.add_session_config_entry("session.placement", "all")
options.add_session_config_entry("session.ep_context_cache_dir", {str(cache)!r})
providers = [({OPENCL!r}, {{"device": {DEVICES[0]!r}, "max_variants": "8"}})]
session = ort.InferenceSession({str(tmp_path / "m.onnx")!r}, options, providers=providers)
session.run(None, {{"x": np.ones((6, {SIDE}), np.float32)}})
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    forbid_builds(monkeypatch)
    state, notes = run(cache, 6)
    assert (state, f"x[6, {SIDE}] (reloaded)" in notes) == ("hit", True), notes


def test_an_entry_made_with_a_key_stays_so(cache: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(blake3(b"one").hexdigest())
    secret.chmod(0o600)
    key = {"session__ep_context_cache_key": str(secret)}
    run(cache, 3, **key)
    state, notes = run(cache, 3, **key)
    assert (state, notes.count("(reloaded)")) == ("hit", 1)


def test_the_option_keeps_the_entry_as_it_was_compiled(cache: Path) -> None:
    off = {"session__ep_context_cache_shapes": "0"}
    run(cache, 3, **off)
    state, notes = run(cache, 3, **off)
    assert (state, notes.count("(reloaded)")) == ("hit", 0)
    with pytest.raises(ort.InvalidArgument, match=r"session\.ep_context_cache_shapes is 'x'"):
        run(cache, session__ep_context_cache_shapes="x")


@pytest.mark.parametrize(
    ("limit", "said"), [("entry", "not written again for new shapes"), ("quota", "quota")]
)
def test_a_large_entry_stays_as_it_is(
    cache: Path,
    limit: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run(cache)
    before = only_entry(cache)
    entries = {}
    if limit == "entry":
        monkeypatch.setattr(kept_shapes, "MAX_REWRITTEN", before.size - 1)
    else:
        entries = {"session__ep_context_cache_max_bytes": str(before.size - 1)}
    with caplog.at_level(logging.INFO, "ort_lite"):
        run(cache, 3, **entries)
    assert said in caplog.text
    assert only_entry(cache) == before
    assert len(list(store(cache).objects.iterdir())) == len(before.objects)


@needs_removal_while_open
def test_a_damaged_payload_is_not_written_again(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The session goes on; the next start finds the damage and compiles."""
    run(cache)
    providers = [(OPENCL, {"device": DEVICES[0], "max_variants": "8"})]
    with ort.InferenceSession(product(), options(cache), providers=providers) as session:
        payload = store(cache).objects / only_entry(cache).payloads[0].name
        damaged = bytearray(payload.read_bytes())
        damaged[-5000] ^= 1
        payload.chmod(0o644)
        payload.unlink()
        payload.write_bytes(damaged)
        session.run(None, rows(3))
        wait_until_kept()
        session.run(None, rows(3))
    assert "programs for new shapes are not kept in the model cache" in caplog.text
    assert run(cache, 3)[0] == "stored"


@needs_removal_while_open
def test_an_entry_that_is_gone_is_not_made_again(cache: Path) -> None:
    run(cache)
    providers = [(OPENCL, {"device": DEVICES[0], "max_variants": "8"})]
    with ort.InferenceSession(product(), options(cache), providers=providers) as session:
        store(cache).clear_files()
        session.run(None, rows(3))
        wait_until_kept()
    assert store(cache).entry_keys() == []
    assert not list(store(cache).objects.iterdir())
