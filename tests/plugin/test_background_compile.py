"""session.ep_compile_in_background: answers at once, swaps once, ends at any moment."""

from __future__ import annotations

import gc
import json
import logging
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from plugin.behind import CPU, GATED, PATIENCE, check, compiling, expected, options, start
from small_models import feed, mlp, model

import ort_lite as ort
from ort_lite.ep.kernels import kernel

if TYPE_CHECKING:
    from plugin.gated_ep import Gate


def test_it_answers_before_the_compile_has_ended_and_then_runs_what_was_compiled(
    gate: Gate,
) -> None:
    with start() as session:
        assert gate.entered.wait(PATIENCE)
        check(session)
        assert session.get_providers() == [CPU]
        assert session.get_provider_options() == {CPU: {}}
        assert session.explain().node_counts() == {CPU: 3}
        assert session.explain().notes == (f"background compile compiling ({CPU} meanwhile)",)
        assert session.background_compile().state == "compiling"
        gate.opened.set()
        assert session.background_compile(None).state == "done"
        check(session)
        assert session.get_providers() == [GATED, CPU]
        assert session.explain().node_counts() == {GATED: 3}
        report = session.load_report().to_json()["background"]
        assert (report["state"], report["interim"]) == ("done", [CPU])
        assert "compile" in report["phases_s"]
        assert "background compile done" in str(session.load_report())
    assert gate.released.is_set()


def test_without_the_option_the_session_is_there_when_it_is_compiled(gate: Gate) -> None:
    gate.opened.set()
    with ort.InferenceSession(mlp().SerializeToString(), providers=[GATED]) as session:
        assert session.get_providers() == [GATED, CPU]
        assert session.background_compile().state == "off"


def test_a_run_that_has_begun_ends_on_the_plan_that_it_began_on(gate: Gate) -> None:
    inside, go_on = threading.Event(), threading.Event()

    @kernel("Held", domain="test")
    def held(info: Any) -> Any:
        def run(x: np.ndarray) -> np.ndarray:
            inside.set()
            assert go_on.wait(PATIENCE)
            return x

        return run

    chosen = options()
    chosen.register_custom_kernel(held)
    nodes = [
        helper.make_node("Held", ["x"], ["h"], domain="test"),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    proto = model(nodes, [("x", [2])], [("y", [2])])
    proto.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [2]))
    proto.opset_import.append(helper.make_opsetid("test", 1))
    x = {"x": np.array([-1, 2], np.float32)}
    with start(proto.SerializeToString(), chosen) as session, ThreadPoolExecutor(1) as pool:
        old = session._present().prepared
        running = pool.submit(session.run, None, x)
        assert inside.wait(PATIENCE)
        gate.opened.set()
        assert session.background_compile(None).state == "done"
        assert session._present().prepared is not old
        go_on.set()
        np.testing.assert_array_equal(running.result(PATIENCE)[0], [0, 2])
        # Whoever took the old plan just before the swap gets its answer from the new one.
        np.testing.assert_array_equal(old.run([x["x"]])[0], [0, 2])


def test_sixteen_threads_run_through_the_swap(gate: Gate) -> None:
    ready = threading.Barrier(17)
    seen: set[str] = set()
    with start() as session, ThreadPoolExecutor(16) as pool:

        def run() -> None:
            check(session)
            seen.update(session.get_providers())
            ready.wait(PATIENCE)
            while session.background_compile().state != "done":
                check(session)
            for _ in range(10):
                check(session)
            seen.update(session.get_providers())

        threads = [pool.submit(run) for _ in range(16)]
        ready.wait(PATIENCE)
        gate.opened.set()
        for thread in threads:
            thread.result(PATIENCE)
    assert seen == {CPU, GATED}


def test_a_compile_that_fails_is_told_and_the_session_goes_on(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    gate.error = ort.EPFail("the chip is on fire")
    with start() as session:
        gate.opened.set()
        found = session.background_compile(None)
        assert (found.state, found.error) == ("failed", gate.error)
        assert "the chip is on fire" in found.reason
        check(session)
        assert session.get_providers() == [CPU]
        assert "the chip is on fire" in str(session.explain())
    (line,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert line.startswith("model from memory: the compile in the background failed; CPUExec")
    assert gate.released.is_set()


def test_a_bug_in_an_ep_is_told_as_well(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    gate.error = ZeroDivisionError("a bug")
    with start() as session:
        gate.opened.set()
        assert session.background_compile(None).reason == "ZeroDivisionError: a bug"
        check(session)
    assert "ZeroDivisionError" in caplog.text


def test_it_can_be_canceled(gate: Gate) -> None:
    chosen = options()
    with start(None, chosen) as session:
        assert gate.entered.wait(PATIENCE)
        chosen.set_load_cancellation_flag(True)
        gate.opened.set()
        assert session.background_compile(None).state == "canceled"
        check(session)
        assert session.get_providers() == [CPU]


def test_dropping_the_session_ends_the_compile(gate: Gate) -> None:
    session = start()
    assert gate.entered.wait(PATIENCE)
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    (thread,) = compiling()
    gate.opened.set()
    thread.join(PATIENCE)
    assert gate.released.is_set()


@pytest.mark.parametrize(
    "key",
    [
        "session.disable_cpu_ep_fallback",
        "session.disable_model_compile",
        "ep.share_ep_contexts",
    ],
)
def test_options_that_contradict_it_are_an_error(gate: Gate, key: str) -> None:
    with pytest.raises(ort.InvalidArgument, match=f"Conflicting session.*{key}=1: .*Leave one"):
        start(None, options(**{key: "1"}))
    assert not gate.entered.is_set()


def test_a_model_that_nothing_else_runs_is_compiled_first(gate: Gate) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"], domain="gated.test")]
    proto = model(nodes, [("x", [2])], [("y", [2])])
    proto.opset_import.append(helper.make_opsetid("gated.test", 1))
    gate.opened.set()
    with start(proto.SerializeToString()) as session:
        found = session.background_compile()
        assert found.state == "off"
        assert found.reason.startswith("nothing can run it during the compile: ")
        assert session.get_providers() == [GATED, CPU]
        answer = session.run(None, {"x": np.array([-1, 2], np.float32)})[0]
        np.testing.assert_array_equal(answer, [0, 2])


def test_without_an_ep_that_compiles_there_is_nothing_to_do() -> None:
    with ort.InferenceSession(mlp().SerializeToString(), options(), providers=[CPU]) as session:
        found = session.background_compile(None)
    assert (found.state, found.reason) == ("off", "no execution provider of the session compiles")


def test_bound_memory_and_asynchronous_runs_go_through_the_swap(gate: Gate) -> None:
    values, place = feed(mlp()), np.zeros((2, 3), np.float32)
    got: list[np.ndarray] = []
    with start() as session:
        binding = session.io_binding()
        binding.bind_cpu_input("x", values["x"])
        binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(place))
        for state in ("compiling", "done"):
            assert session.background_compile().state == state
            place[...] = 0
            session.run_with_iobinding(binding)
            np.testing.assert_allclose(place, expected(), rtol=1e-5, atol=1e-6)
            session.run_async(["y"], values, lambda outputs, *_: got.append(outputs[0]))
            gate.opened.set()
            session.background_compile(None)
    assert len(got) == 2
    np.testing.assert_allclose(got[0], got[1], rtol=1e-5, atol=1e-6)


def test_a_profile_shows_the_compile_and_who_ran_what(gate: Gate, tmp_path: Path) -> None:
    chosen = options()
    chosen.enable_profiling = True
    chosen.profile_file_prefix = str(tmp_path / "profile")
    with start(None, chosen) as session:
        check(session)
        gate.opened.set()
        assert session.background_compile(None).state == "done"
        check(session)
        events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    assert [e["name"] for e in events].count("background_compile") == 1
    ran = [e["args"]["provider"] for e in events if e["cat"] == "Node"]
    assert (set(ran[:-1]), ran[-1]) == ({CPU}, GATED)


def test_a_process_without_threads_to_spare_goes_on_as_it_began(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with start() as session:
        assert session.background_compile(None).reason == "RuntimeError: can't start new thread"
        check(session)
    assert gate.released.is_set()
    assert "can't start new thread" in caplog.text
