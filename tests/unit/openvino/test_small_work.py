"""Small partitions and recurrences run on one thread, unless somebody chose a number."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from small_models import layers, recurrence

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
NOTE = "on one thread: more would wait for each other"


def runs_on_one_thread(proto: onnx.ModelProto, **options: str) -> bool:
    """Whether OpenVINO has no stream, once the answer is right; the notes say the same."""
    sizes = [dim.dim_value or 1 for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(sizes).astype(np.float32)
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    providers = [(OPENVINO, options)]
    with ort.InferenceSession(proto.SerializeToString(), providers=providers) as session:
        (mine,) = session.run(None, {"x": x})
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)
        (part,) = session._present().prepared.partitions
        compiled: Any = part.compiled
        (report,) = session.explain().partitions
        on_one = NOTE in report.notes
        streams = int(compiled.model.compiled.get_property("NUM_STREAMS"))
        assert on_one == (streams == 0) or (os.cpu_count() == 1 and streams == 0)
        return on_one


def chain(count: int, width: int) -> onnx.ModelProto:
    """So many products of one row, each with weights of its own."""
    random = np.random.default_rng(4)
    weights = random.standard_normal((count, width, width)).astype(np.float32) / width
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width])
        for name in ("x", f"v{count}")
    ]
    nodes[0].input[0] = "x"
    initializers = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def alternate(count: int, width: int) -> onnx.ModelProto:
    """So many nodes, MatMul of [8, width] and Tanh in turns."""
    weights = np.random.default_rng(2).standard_normal((width, width)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"])
        if i % 2 == 0
        else helper.make_node("Tanh", [f"v{i}"], [f"v{i + 1}"])
        for i in range(count)
    ]
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    graph = helper.make_graph(
        nodes,
        "alternate",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, width])],
        [numpy_helper.from_array(weights / np.float32(width**0.5 * 4), "w")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def test_little_work_runs_on_one_thread() -> None:
    assert runs_on_one_thread(layers(32))


def test_the_work_of_a_node_decides_where_there_are_many() -> None:
    assert runs_on_one_thread(alternate(160, 32))
    assert not runs_on_one_thread(alternate(160, 512))


@pytest.mark.parametrize(
    ("count", "width", "on_one"), [(7, 256, True), (8, 256, False), (40, 128, True)]
)
def test_large_weights_beyond_the_cache_of_a_core_are_read_by_all(
    count: int, width: int, *, on_one: bool
) -> None:
    assert runs_on_one_thread(chain(count, width)) == on_one


def test_a_table_that_rows_are_picked_from_is_not_read() -> None:
    proto = layers(32)
    graph = proto.graph
    graph.initializer.append(numpy_helper.from_array(np.ones((3000, 256), np.float32), "table"))
    graph.node.append(helper.make_node("ArgMax", ["x"], ["row"], axis=1, keepdims=0))
    (output,) = graph.output
    graph.node.append(helper.make_node("Gather", ["table", "row"], ["picked"], axis=0))
    graph.node.append(helper.make_node("ReduceMax", ["picked"], ["largest"], keepdims=0))
    graph.node.append(helper.make_node("Mul", [output.name, "largest"], ["z"]))
    output.name = "z"
    assert runs_on_one_thread(proto)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("sizes", [(40, 1), ("time", 1), ("time", "batch")], ids=str)
def test_steps_that_wait_for_each_other_run_on_one_thread(
    op: str, sizes: tuple[int | str, int | str]
) -> None:
    assert runs_on_one_thread(recurrence(op, 64, sizes=sizes))


def test_small_steps_of_several_sequences_run_on_one_thread() -> None:
    assert runs_on_one_thread(recurrence("LSTM", 128, sizes=("time", "batch")))
    assert runs_on_one_thread(recurrence("LSTM", 64, sizes=(40, 16)))


def test_small_nodes_behind_the_steps_do_not_ask_for_threads() -> None:
    """As in a streaming model: what calls of kernels cost, a second thread does not save."""
    proto = recurrence("GRU", 64, sizes=("time", 1))
    (output,) = proto.graph.output
    name = output.name
    for number in range(8):
        proto.graph.node.append(helper.make_node("Tanh", [name], [f"small{number}"]))
        name = f"small{number}"
    output.CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    assert runs_on_one_thread(proto)


@pytest.mark.parametrize(
    ("proto", "options"),
    [
        (layers(1024), {}),
        (layers(32, rows="batch"), {}),
        (recurrence("LSTM", 512, sizes=("time", "batch")), {}),
        (recurrence("LSTM", 256, sizes=(3, 16)), {}),
        (recurrence("GRU", 400, sizes=(40, 1)), {}),
        (recurrence("LSTM", 256, sizes=("time", 1)), {}),
        (recurrence("LSTM", 64, sizes=("time", 1)), {"num_of_threads": "2"}),
        (layers(32), {"num_of_threads": "2"}),
        (layers(32), {"num_streams": "1"}),
        (layers(32), {"load_config": '{"CPU": {"INFERENCE_NUM_THREADS": "2"}}'}),
    ],
    ids=[
        *("much work", "free shapes", "large free steps", "large steps"),
        *("large weights", "large weights of free steps", "steps and a number"),
        *("a number", "streams", "load_config"),
    ],
)
def test_other_work_runs_on_what_was_chosen(
    proto: onnx.ModelProto, options: dict[str, str]
) -> None:
    assert not runs_on_one_thread(proto, **options)


def test_the_threads_of_a_session_are_a_choice() -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    model = layers(32).SerializeToString()
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as session:
        assert all(NOTE not in part.notes for part in session.explain().partitions)


def seven() -> bytes:
    """Reshape of any input to 7 elements."""
    sizes = numpy_helper.from_array(np.array([7]), "sizes")
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "sizes"], ["y"])],
        "seven",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [7])],
        [sizes],
    )
    proto = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(proto.SerializeToString())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_of_threads": "1"},
        {"load_config": '{"CPU": {"INFERENCE_NUM_THREADS": 1}}'},
    ],
    ids=["no number", "one thread", "load_config"],
)
def test_inputs_of_another_size_are_refused_on_any_number_of_threads(
    options: dict[str, str],
) -> None:
    """On a stream of one thread OpenVINO would read seven elements of any input."""
    with ort.InferenceSession(
        seven(), providers=[(OPENVINO, options)], enable_fallback=0
    ) as session:
        check_seven(session)


def check_seven(session: ort.InferenceSession) -> None:
    """Right inputs give themselves, before and after others are refused."""
    right = np.arange(7, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(session.run(None, {"x": right})[0], right)
        with pytest.raises(ort.EPFail, match="Reshape"):
            session.run(None, {"x": right[:1]})


@pytest.mark.skipif(sys.platform != "linux", reason="binds a process to one CPU as Linux does")
def test_inputs_of_another_size_are_refused_on_one_cpu() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import test_small_work as cases, ort_lite as ort\n"
        "with ort.InferenceSession(\n"
        "    cases.seven(), providers=[cases.OPENVINO], enable_fallback=0\n"
        ") as session:\n"
        "    cases.check_seven(session)\n"
    )
    here = str(Path(__file__).parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, timeout=120)


def test_runs_at_the_same_time_do_not_mix_on_one_thread() -> None:
    proto = recurrence("LSTM", 16, sizes=("time", 1))
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((steps, 1, 16)).astype(np.float32) for steps in range(1, 9)]
    with ort.InferenceSession(proto.SerializeToString(), providers=[OPENVINO]) as session:
        assert any(NOTE in part.notes for part in session.explain().partitions)
        right = [session.run(None, {"x": x})[0] for x in inputs]
        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(lambda x: session.run(None, {"x": x})[0], inputs * 20)
            for number, answer in enumerate(answers):
                np.testing.assert_array_equal(answer, right[number % len(inputs)])
