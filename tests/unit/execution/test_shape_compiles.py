"""session.ep_compile_in_background with shapes that are known when a run brings them."""

from __future__ import annotations

import logging
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
import shaped_ep
from onnx import helper
from shaped_ep import NAME, PATIENCE, Gate
from small_models import model

import ort_lite as ort
from ort_lite.start.shape_compiles import MAX_WAITING

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU = "CPUExecutionProvider"
OPENCL = "OpenCLExecutionProvider"
KEY = "session.ep_compile_in_background"


def growing() -> bytes:
    """y = relu(x) + x over a free dimension."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])]
    made: bytes = model(nodes, [("x", ["n", 4])], [("y", ["n", 4])]).SerializeToString()
    return made


def start(ep: str = NAME) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry(KEY, "1")
    return ort.InferenceSession(growing(), options, providers=[ep])


def check(session: ort.InferenceSession, rows: int) -> None:
    x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
    theirs = onnxruntime.InferenceSession(growing(), providers=[CPU]).run(None, {"x": x})
    np.testing.assert_allclose(session.run(None, {"x": x})[0], theirs[0], rtol=1e-6)


def compiled(session: ort.InferenceSession) -> None:
    """Until the model is compiled; for no shapes yet."""
    assert session.background_compile(PATIENCE).state == "done"
    assert session.get_providers() == [NAME, CPU]


@pytest.fixture
def gate() -> Iterator[Gate]:
    """What compiles for shapes wait for; no thread of theirs outlives it."""
    shaped_ep.FACTORY.gate = made = Gate()
    ort.register_execution_provider_library("shaped", "shaped_ep:FACTORY")
    yield made
    made.opened.set()
    for thread in threading.enumerate():
        if thread.name == "ort_lite-background-compile":
            thread.join(PATIENCE)
    ort.unregister_execution_provider_library("shaped")


def test_new_shapes_are_answered_at_once_and_compiled_behind(gate: Gate) -> None:
    with start() as session:
        compiled(session)
        check(session, 3)
        assert gate.entered.wait(PATIENCE)
        assert (gate.tried, gate.ran) == ([((3, 4),)], [])
        now = session.background_compile()
        assert (now.state, now.interim) == ("compiling", (CPU,))
        check(session, 3)
        assert gate.tried == [((3, 4),)]  # asked for once
        gate.opened.set()
        assert session.background_compile(None).state == "done"
        check(session, 3)
        assert gate.ran == [((3, 4),)]
        assert session.explain().node_counts() == {NAME: 2}
    assert gate.released.is_set()


def test_shapes_that_are_compiled_run_there_while_others_are_not(gate: Gate) -> None:
    gate.opened.set()
    with start() as session:
        compiled(session)
        check(session, 1)
        assert session.background_compile(None).state == "done"
        gate.opened.clear()
        check(session, 2)
        check(session, 1)
        assert gate.ran == [((1, 4),)]


def test_a_compile_that_fails_is_told_once_and_runs_go_on(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    gate.error = ort.EPFail("the device is gone")
    gate.opened.set()
    with start() as session:
        compiled(session)
        check(session, 5)
        told = session.background_compile(None)
        assert (told.state, told.error) == ("failed", gate.error)
        assert "the device is gone" in told.reason
        check(session, 5)
        assert session.background_compile(None).state == "failed"
        assert gate.tried == [((5, 4),)]
    lines = [r for r in caplog.records if r.levelno == logging.WARNING and "failed" in r.message]
    assert len(lines) == 1
    assert "[(5, 4)]" in lines[0].getMessage()


def test_closing_does_not_wait_for_a_compile(gate: Gate) -> None:
    session = start()
    compiled(session)
    check(session, 2)
    check(session, 3)
    assert gate.entered.wait(PATIENCE)
    session.close()
    assert gate.released.is_set()
    assert not gate.opened.is_set()
    gate.opened.set()
    for thread in threading.enumerate():
        if thread.name == "ort_lite-background-compile":
            thread.join(PATIENCE)
    assert gate.tried == [((2, 4),)]  # what waited for its turn is not begun


def test_shapes_beyond_the_bound_are_asked_for_by_a_later_run(gate: Gate) -> None:
    with start() as session:
        compiled(session)
        check(session, 1)
        assert gate.entered.wait(PATIENCE)
        for rows in range(2, MAX_WAITING + 4):
            check(session, rows)
        gate.opened.set()
        assert session.background_compile(None).state == "done"
        assert len(gate.tried) == MAX_WAITING + 1
        check(session, MAX_WAITING + 3)
        assert session.background_compile(None).state == "done"
        assert gate.tried[-1] == ((MAX_WAITING + 3, 4),)
        assert gate.ran == []


def test_without_the_option_a_run_compiles(gate: Gate) -> None:
    gate.opened.set()
    with ort.InferenceSession(growing(), providers=[NAME]) as session:
        check(session, 2)
        assert gate.ran == [((2, 4),)]


@pytest.mark.skipif(not find_spec("pyopencl"), reason="pyopencl is missing")
def test_opencl_answers_new_shapes_at_once() -> None:
    with start(OPENCL) as session:
        assert session.background_compile(None).state == "done"
        assert session.explain().node_counts() == {OPENCL: 2}
        assert "none yet" in str(session.explain())
        check(session, 3)
        assert session.background_compile(None).state == "done"
        assert "1 of at most" in str(session.explain())
        assert "x[3, 4]" in str(session.explain())
        check(session, 3)
