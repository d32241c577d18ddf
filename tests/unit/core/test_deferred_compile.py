"""session.ep_compile_after_runs: the default execution provider answers before others compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from small_models import feed, mlp, model

import ort_lite as ort
from ort_lite.start import deferred_compile, prepare_model
from ort_lite.start.deferred_compile import MOST_RUNS, WorkOfRun
from ort_lite.start.load_request import DEFERRED_COMPILE
from ort_lite.start.load_session import SessionLoader
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ort_lite.model.loader import LoadedModel
    from ort_lite.start.load_request import LoadRequest
    from ort_lite.start.prepare_model import PreparedModel

CPU, OPENVINO, OPENCL = (f"{name}ExecutionProvider" for name in ("CPU", "OpenVINO", "OpenCL"))
ALL = [OPENVINO, OPENCL, CPU]
KEY = "session.ep_compile_after_runs"
CHILD = """
import json, sys
import numpy as np
import ort_lite as ort

def has_sdk():
    with open("/proc/self/maps") as maps:
        return any(name in line for line in maps for name in ("openvino", "OpenCL"))

options = ort.SessionOptions()
options.add_session_config_entry("session.ep_compile_after_runs", "auto")
session = ort.InferenceSession(sys.argv[1], options)
before = session.get_providers(), list(session.get_provider_options())
sdk = []
for _ in range(int(sys.argv[2]) + 1):
    (answer,) = session.run(None, {"x": np.ones((2, 4), np.float32)})
    sdk.append(has_sdk())
after = session.get_providers(), list(session.get_provider_options())
print(json.dumps({"sdk": sdk, "before": before, "after": after, "answer": answer.tolist()}))
"""


FORKED = """
import os, sys
import numpy as np
import ort_lite as ort

options = ort.SessionOptions()
options.add_session_config_entry("session.ep_compile_after_runs", "auto")
session = ort.InferenceSession(sys.argv[1], options)
feed = {"x": np.ones((2, 4), np.float32)}
(first,) = session.run(None, feed)
child = os.fork()
for _ in range(int(sys.argv[2]) + 1):
    (answer,) = session.run(None, feed)
wrong = not np.allclose(answer, first, rtol=1e-5)
if child:
    wrong += os.waitpid(child, 0)[1]
part, = session.explain().partitions
assert part.ep == "OpenVINOExecutionProvider", part
sys.stdout.flush()
os._exit(wrong)
"""


def options(**entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    for name, value in entries.items():
        made.add_session_config_entry(name.replace("__", "."), value)
    return made


def with_runs(text: str = "auto") -> ort.SessionOptions:
    return options(session__ep_compile_after_runs=text)


def used(session: ort.InferenceSession) -> set[str]:
    """Names of the execution providers that a run goes to now."""
    return {part.ep.name for part in session._present().prepared.partitions}


def runs_until_compiled(session: ort.InferenceSession, values: dict[str, np.ndarray]) -> int:
    """How many runs the default execution provider answers, of at most twenty."""
    for count in range(20):
        session.run(None, values)
        if used(session) != {CPU}:
            return count
    return 20


def check(session: ort.InferenceSession, proto: onnx.ModelProto) -> None:
    """Compare a run with onnxruntime's."""
    values = feed(proto)
    peer = onnxruntime.InferenceSession(proto.SerializeToString(), providers=[CPU])
    for mine, theirs in zip(session.run(None, values), peer.run(None, values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_the_first_answers_load_no_sdk(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(mlp(), path)
    command = [sys.executable, "-c", CHILD, str(path), str(MOST_RUNS)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["sdk"] == [False] * MOST_RUNS + [True]
    assert found["before"] == found["after"] == [ALL, ALL]
    peer = onnxruntime.InferenceSession(path, providers=[CPU])
    (expected,) = peer.run(None, {"x": np.ones((2, 4), np.float32)})
    np.testing.assert_allclose(found["answer"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("runs", "expected"), [("0", 0), ("1", 1), ("3", 3), ("auto", MOST_RUNS), (None, 0)]
)
def test_the_entry_says_how_many_runs_are_answered_first(runs: str | None, expected: int) -> None:
    made = options() if runs is None else with_runs(runs)
    with ort.InferenceSession(mlp().SerializeToString(), made) as session:
        assert used(session) == ({CPU} if expected else {OPENVINO})
        assert runs_until_compiled(session, feed(mlp())) == expected
        check(session, mlp())


def test_fewer_runs_are_answered_where_they_take_long() -> None:
    assert WorkOfRun(20_000, 1).runs_before_compile() == MOST_RUNS
    assert WorkOfRun(60_000, 1).runs_before_compile() == 3
    assert WorkOfRun(300_000, 1).runs_before_compile() == 1
    assert WorkOfRun(0, 0).runs_before_compile() == MOST_RUNS


def test_providers_that_are_named_or_chosen_compile_at_once() -> None:
    source = mlp().SerializeToString()
    with ort.InferenceSession(source, with_runs(), providers=[OPENVINO]) as session:
        assert used(session) == {OPENVINO}
    made = with_runs()
    made.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    with ort.InferenceSession(source, made) as session:
        assert session._state.deferred is None
    made = with_runs()
    made.add_provider(OPENVINO, {})
    with ort.InferenceSession(source, made) as session:
        assert used(session) == {OPENVINO}


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "1000000000", ""])
def test_what_is_no_number_of_runs_is_refused(text: str) -> None:
    with pytest.raises(ort.InvalidArgument, match=f"{KEY} is '{text}', expected a number of runs"):
        ort.InferenceSession(
            mlp().SerializeToString(), options(session__ep_compile_after_runs=text)
        )


def with_profile(made: ort.SessionOptions) -> None:
    made.enable_profiling = True


def with_entry(key: str, value: str) -> Callable[[ort.SessionOptions], None]:
    return lambda made: made.add_session_config_entry(key, value)


@pytest.mark.parametrize(
    "ask",
    [
        with_profile,
        with_entry("session.ep_context_cache", "1"),
        with_entry("ep.context_enable", "1"),
        with_entry("session.disable_cpu_ep_fallback", "1"),
        with_entry("session.placement", "all"),
        with_entry("session.ep_context_fallback", "compile"),
    ],
    ids=["profile", "cache", "context", "no fallback", "all", "context fallback"],
)
def test_who_asks_for_more_than_answers_waits_for_the_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[ort.SessionOptions], None]
) -> None:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.onnx"
    onnx.save(mlp(), path)
    made = with_runs()
    ask(made)
    with ort.InferenceSession(path, made) as session:
        assert used(session) == {OPENVINO}


def test_an_optimized_model_is_that_of_all_providers(tmp_path: Path) -> None:
    made = with_runs()
    made.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    with ort.InferenceSession(mlp().SerializeToString(), made) as session:
        assert used(session) == {OPENVINO}
    assert (tmp_path / "optimized.onnx").exists()


def noisy() -> onnx.ModelProto:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["n"], seed=1.0),
        helper.make_node("Add", ["x", "n"], ["y"]),
    ]
    return model(nodes, [("x", [2, 4])], [("y", [2, 4])])


def test_nodes_that_draw_numbers_do_not_move() -> None:
    with ort.InferenceSession(noisy().SerializeToString(), with_runs()) as session:
        assert session._state.deferred is None


@pytest.mark.parametrize("limit", ["MOST_WORK", "MOST_WEIGHTS"])
def test_what_is_too_large_compiles_at_once(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(deferred_compile, limit, 0)
    with ort.InferenceSession(mlp().SerializeToString(), with_runs()) as session:
        assert used(session) == {OPENVINO}


def test_a_large_feed_compiles_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = mlp("n")
    with ort.InferenceSession(proto.SerializeToString(), with_runs()) as session:
        assert session._state.deferred is not None
        work = session._state.deferred._work
        monkeypatch.setattr(deferred_compile, "MOST_WORK", 100 * work.microseconds)
        rows = 100 * work.elements // 4
        session.run(None, {"x": np.zeros((rows, 4), np.float32)})
        assert used(session) == {CPU}
        session.run(None, {"x": np.zeros((rows + 1, 4), np.float32)})
        assert used(session) == {OPENVINO}


def test_an_image_counts_less_than_the_maps_inside() -> None:
    """The estimate of an image's network is for maps of 32 by 32, an eighth of the image."""
    weights = {"w": np.ones((3, 3, 1, 1), np.float32)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    conv = model(nodes, [("x", [1, 3, "h", "w"])], [("y", [1, 3, "h", "w"])], weights)
    with ort.InferenceSession(conv.SerializeToString(), with_runs()) as session:
        assert session._state.deferred is not None
        assert session._state.deferred._work.elements == 3 * 256 * 256


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.explain(),
        lambda session: session.memory_report(),
        lambda session: session.get_input_memory_infos(),
        lambda session: session.get_output_memory_infos(),
        lambda session: session.get_input_epdevices(),
        lambda session: session.device_memories(),
        lambda session: session.io_binding().bind_output("y"),
    ],
    ids=["explain", "memory", "inputs", "outputs", "devices", "memories", "binding"],
)
def test_a_question_about_placement_compiles(ask: Callable[[ort.InferenceSession], Any]) -> None:
    with ort.InferenceSession(mlp().SerializeToString(), with_runs()) as session:
        assert used(session) == {CPU}
        ask(session)
        assert used(session) == {OPENVINO}


def test_questions_about_the_model_compile_nothing() -> None:
    with ort.InferenceSession(mlp().SerializeToString(), with_runs()) as session:
        session.get_inputs(), session.get_outputs(), session.get_modelmeta(), repr(session)
        session.get_providers(), session.get_provider_options(), session.get_session_options()
        assert session.background_compile().state == "off"
        assert DEFERRED_COMPILE not in session.load_report().phases
        assert used(session) == {CPU}
        session.explain()
        assert session.load_report().phases[DEFERRED_COMPILE] > 0


def test_runs_that_fail_do_not_count() -> None:
    made = with_runs("1")
    with ort.InferenceSession(mlp().SerializeToString(), made) as session:
        for _ in range(3):
            with pytest.raises(ort.InvalidArgument):
                session.run(None, {"x": np.zeros((3, 3, 3), np.float32)})
        session.run(None, feed(mlp()))
        assert used(session) == {CPU}


def test_a_compile_that_fails_leaves_the_default_provider(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ort.EPFail("the SDK is broken")

    made = with_runs("1")
    with ort.InferenceSession(mlp().SerializeToString(), made) as session:
        monkeypatch.setattr(SessionLoader, "load_from", fail)
        for _ in range(4):
            check(session, mlp())
        assert used(session) == {CPU}
        assert session.get_providers() == [CPU]
        assert any("the SDK is broken" in note for note in session.explain().notes)
    assert caplog.text.count("the SDK is broken") == 1


def test_many_threads_meet_the_compile() -> None:
    made = with_runs("3")
    with (
        ort.InferenceSession(mlp().SerializeToString(), made) as session,
        ThreadPoolExecutor(4) as pool,
    ):
        for running in [pool.submit(check, session, mlp()) for _ in range(24)]:
            running.result(60)
        assert used(session) == {OPENVINO}


def test_the_first_graph_is_released() -> None:
    made = with_runs("1")
    with ort.InferenceSession(mlp().SerializeToString(), made) as session:
        first = session._present().prepared
        assert runs_until_compiled(session, feed(mlp())) == 1
        with pytest.raises(ort.EPFail, match="was released"):
            first.partitions[0].compiled.run([np.zeros((2, 4), np.float32)])


def test_a_session_closes_before_it_has_compiled(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(mlp(), path)
    session = ort.InferenceSession(path, with_runs())
    source = session._state.deferred.source  # type: ignore[union-attr]
    closed = []
    source.load_plain().external.close = lambda: closed.append(True)  # type: ignore[method-assign]
    session.close()
    assert closed
    with pytest.raises(ort.Fail, match="the session is closed"):
        session.run(None, feed(mlp()))


def test_a_file_that_is_replaced_in_the_meantime_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(mlp(), path)
    made = with_runs("1")
    with ort.InferenceSession(path, made) as session:
        check(session, mlp())
        path.write_bytes(b"no model")
        check(session, mlp())
        assert used(session) == {OPENVINO}


def test_other_providers_begin_anew() -> None:
    with ort.InferenceSession(mlp().SerializeToString(), with_runs("2")) as session:
        session.set_providers([OPENVINO])
        assert used(session) == {OPENVINO}
        session.set_providers()
        assert runs_until_compiled(session, feed(mlp())) == 2


@pytest.mark.parametrize("looked_through", [deferred_compile.LOOKED_THROUGH, 0])
def test_a_context_model_is_reloaded_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_through: int
) -> None:
    """Also where its nodes lie behind the bytes that are searched for them."""
    monkeypatch.setattr(deferred_compile, "LOOKED_THROUGH", looked_through)
    context = tmp_path / "ctx.onnx"
    made = options(ep__context_enable="1", ep__context_embed_mode="1")
    made.add_session_config_entry("ep.context_file_path", str(context))
    ort.InferenceSession(mlp().SerializeToString(), made).close()
    for source in (context, context.read_bytes()):
        with ort.InferenceSession(source, with_runs()) as session:
            assert used(session) == {OPENVINO}
            check(session, mlp())


def test_what_the_default_provider_does_not_run_compiles_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compile_model = prepare_model.compile_model

    def refuse_alone(loaded: LoadedModel, request: LoadRequest, *rest: Any) -> PreparedModel:
        if len(request.eps) == 1:
            raise NotImplementedByAny("nothing runs it")
        return compile_model(loaded, request, *rest)

    monkeypatch.setattr(prepare_model, "compile_model", refuse_alone)
    with ort.InferenceSession(mlp().SerializeToString(), with_runs()) as session:
        assert used(session) == {OPENVINO}
        check(session, mlp())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_both_processes_compile_after_a_fork(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(mlp(), path)
    command = [sys.executable, "-c", FORKED, str(path), str(MOST_RUNS)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
