"""RunOptions, asynchronous runs, several threads, threads of EPs, parallel partitions."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx.parser
import pytest
from small_models import branching, feed, mlp, sandwich

import ort_lite as ort

CPU = ["CPUExecutionProvider"]
OPENVINO = ["OpenVINOExecutionProvider"]
PATIENCE = 60
"""Seconds after which a test that hangs fails; none that passes waits for them."""

ENDLESS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1] x) => (float[1] y) <int64 n = {1000000000000}, bool go = {1}> {
  y = Loop(n, go, x) <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w)
    { d = Identity(c) w = Neg(v) }>
}"""


class Fed:
    """An input that says when it is taken."""

    def __init__(self) -> None:
        self.taken = threading.Event()

    def numpy(self) -> np.ndarray[Any, Any]:
        self.taken.set()
        return np.ones(1, np.float32)


def test_a_run_is_stopped_by_another_thread() -> None:
    model = onnx.parser.parse_model(ENDLESS).SerializeToString()
    session = ort.InferenceSession(model, providers=CPU)
    run_options, fed = ort.RunOptions(), Fed()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, None, {"x": fed}, run_options)
        assert fed.taken.wait(PATIENCE)
        run_options.terminate = True
        with pytest.raises(ort.Fail, match="Exiting due to terminate flag being set to true"):
            running.result(PATIENCE)


def test_terminate_stops_one_run_and_not_the_session() -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=OPENVINO)
    run_options = ort.RunOptions()
    run_options.terminate = True
    with pytest.raises(ort.Fail, match="terminate"):
        session.run(None, feed(mlp()), run_options)
    run_options.terminate = False
    assert session.run(None, feed(mlp()), run_options)[0].shape == (2, 3)


def test_a_run_is_tagged_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=CPU)
    run_options = ort.RunOptions()
    run_options.logid = "seventh"
    with caplog.at_level(logging.DEBUG, "ort_lite"):
        session.run(None, feed(mlp()), run_options)
    assert "[seventh] the run of <InferenceSession" in caplog.text


def test_the_placement_line_carries_the_session_s_tag_and_can_be_silenced(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ort.SessionOptions()
    options.logid = "mine"
    model = sandwich().SerializeToString()
    ort.InferenceSession(model, options, providers=OPENVINO).close()
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert record.getMessage().startswith("[mine] model from memory: 1 of 3 nodes run on CPU")
    assert "TopK x1" in record.getMessage()
    caplog.clear()
    options.log_severity_level = 3
    ort.InferenceSession(model, options, providers=OPENVINO).close()
    assert [r for r in caplog.records if r.levelno == logging.WARNING] == []
    assert capsys.readouterr().out == ""


def test_an_asynchronous_run_gives_its_results_to_the_callback() -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=CPU)
    got: list[Any] = []
    come = threading.Event()

    def callback(outputs: list[Any], user_data: object, error: str) -> None:
        got.extend((outputs, user_data, error, threading.current_thread()))
        come.set()

    session.run_async(["y"], feed(mlp()), callback, "mine")
    assert come.wait(PATIENCE)
    assert got[1:3] == ["mine", ""]
    assert got[3] is not threading.current_thread()
    np.testing.assert_array_equal(got[0][0], session.run(None, feed(mlp()))[0])


def test_an_asynchronous_run_that_fails_says_so_to_the_callback() -> None:
    got: list[Any] = []
    with ort.InferenceSession(mlp().SerializeToString(), providers=CPU) as session:
        session.run_async(None, {"x": np.zeros((2, 9), np.float32)}, lambda *a: got.append(a))
    ((outputs, user_data, error),) = got
    assert (outputs, user_data) == ([], None)
    assert "Got invalid dimensions for input: x" in error
    with pytest.raises(ort.Fail, match="closed"):
        session.run_async(None, feed(mlp()), lambda *_: None)


def test_a_callback_hears_of_errors_of_any_kind_and_its_own_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    got: list[str] = []

    def callback(_outputs: object, _user_data: object, error: str) -> None:
        got.append(error)
        raise RuntimeError("nobody home")

    with ort.InferenceSession(mlp().SerializeToString(), providers=CPU) as session:
        session.run_async(None, {"x": object()}, callback)
    assert len(got) == 1
    assert "Actual: (object)" in got[0]
    assert "nobody home" in caplog.text


@pytest.mark.parametrize("providers", [CPU, OPENVINO], ids=["cpu", "openvino"])
@pytest.mark.parametrize("make", [mlp, branching, sandwich], ids=lambda make: make.__name__)
def test_sixteen_threads_share_a_session(make: Any, providers: list[str]) -> None:
    """Each its own input, all at once; every answer is that of a run alone."""
    proto = make()
    options = ort.SessionOptions()
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=providers)
    feeds = [feed(proto, seed) for seed in range(16)]
    alone = [session.run(None, values)[0] for values in feeds]
    start = threading.Barrier(16)

    def work(mine: int) -> list[np.ndarray[Any, Any]]:
        start.wait(PATIENCE)
        run_options = ort.RunOptions() if mine % 2 else None
        return [session.run(None, feeds[mine], run_options)[0] for _ in range(40)]

    with ThreadPoolExecutor(16) as pool:
        for mine, results in enumerate(pool.map(work, range(16))):
            for result in results:
                np.testing.assert_array_equal(result, alone[mine])


TWO_WAYS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x, float[2, 3] w) => (float[2, 3] y, float[2, 3] z) <int64[1] k = {3}> {
  a = Exp(x) y = Relu(a)
  z, i = TopK(w, k)
}"""


def test_partitions_of_two_eps_run_in_parallel_with_the_same_numbers() -> None:
    model = onnx.parser.parse_model(TWO_WAYS).SerializeToString()
    values = {"x": np.ones((2, 3), np.float32), "w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    options = ort.SessionOptions()
    sequential = ort.InferenceSession(model, options, providers=OPENVINO).run(None, values)
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 2
    with ort.InferenceSession(model, options, providers=OPENVINO) as session:
        for mine, other in zip(session.run(None, values), sequential, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_intra_op_threads_reach_the_eps_that_can_heed_them() -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    with ort.InferenceSession(mlp().SerializeToString(), options, providers=OPENVINO) as session:
        assert session.get_provider_options()[OPENVINO[0]]["num_of_threads"] == "1"
        partition: Any = session._present().prepared.partitions[0].compiled
        assert partition.model.property("NUM_STREAMS") == "0"  # the caller's thread
    own = [(OPENVINO[0], {"num_of_threads": "2"})]
    with ort.InferenceSession(mlp().SerializeToString(), options, providers=own) as session:
        assert session.get_provider_options()[OPENVINO[0]]["num_of_threads"] == "2"


@pytest.mark.parametrize("name", ["intra_op_num_threads", "inter_op_num_threads"])
def test_a_negative_number_of_threads_is_refused(name: str) -> None:
    options = ort.SessionOptions()
    setattr(options, name, -1)
    with pytest.raises(ort.InvalidArgument, match=f"{name} is -1"):
        ort.InferenceSession(mlp().SerializeToString(), options, providers=CPU)
