"""Graphs of recurrences go to the execution provider that takes their steps in less time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from opencl_devices import skip_without_cpu_first
from priced_eps import FAST, HOME, Priced

import ort_lite as ort
from ctx_formats.lean_dataclass import replace
from ort_lite.ep import RESET_BEFORE, StepCosts
from ort_lite.model import loader
from ort_lite.model.shape_inference import infer_types
from ort_lite.planning import faster_steps
from ort_lite.planning.faster_steps import compare_steps, move_steps
from ort_lite.planning.judge_placement import RUNS_PER_COMPILE, Judge
from ort_lite.planning.partitioner import assign
from ort_lite.start.plan_providers import may_move_steps

if TYPE_CHECKING:
    from ort_lite.ep import PlacementCosts
    from ort_lite.model.graph import Graph

KINDS = ("GRU", RESET_BEFORE, "LSTM", "RNN")
SLOW = replace(FAST, step_costs=dict.fromkeys(KINDS, StepCosts(step=10, rate=1_000, sequences=4)))
SWIFT = replace(FAST, step_costs=dict.fromkeys(KINDS, StepCosts(step=1, rate=10_000, tasks=2)))
HIDDEN = 32
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def recurrent_model(
    op_type: str = "GRU",
    steps: int | str = 100,
    rows: int = 1,
    *,
    both: bool = False,
    layers: int = 1,
    **attributes: int,
) -> bytes:
    """A recurrence of [steps, rows, HIDDEN] in HIDDEN values, behind an Abs."""
    random, ways, gates = np.random.default_rng(0), 2 if both else 1, GATES[op_type]
    weights, nodes = [], [helper.make_node("Abs", ["x"], ["v0"])]
    for layer in range(layers):
        for name in ("w", "r"):
            values = random.standard_normal((ways, gates * HIDDEN, HIDDEN)).astype(np.float32) / 8
            weights.append(
                helper.make_tensor(f"{name}{layer}", 1, values.shape, values.tobytes(), raw=True)
            )
        nodes.append(
            helper.make_node(
                op_type,
                [f"v{layer}", f"w{layer}", f"r{layer}"],
                [f"y{layer}"],
                hidden_size=HIDDEN,
                direction="bidirectional" if both else "forward",
                **attributes,
            )
        )
        nodes.append(
            helper.make_node("ReduceSum", [f"y{layer}", "axis"], [f"v{layer + 1}"], keepdims=0)
        )
    weights.append(helper.make_tensor("axis", TensorProto.INT64, [1], [1]))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [steps, rows, HIDDEN])
        for name in ("x", f"v{layers}")
    ]
    graph = helper.make_graph(nodes, "recurrent", ends[:1], ends[1:], weights)
    opset = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, ir_version=8, opset_imports=[opset]).SerializeToString())


def recurrent_graph(*args: Any, **kwargs: Any) -> Graph:
    source = recurrent_model(*args, **kwargs)
    typed = loader.infer_model(loader.load(source, ort.SessionOptions()).model, {})
    return loader.as_graph(infer_types(typed))


def owner(graph: Graph, here: PlacementCosts, there: PlacementCosts, taken: str) -> str:
    """The EP that gets the graph: a first one, one that takes the operators `taken`, or home."""
    every = "Abs GRU LSTM RNN ReduceSum"
    eps = [Priced("First", every, here), Priced("Other", taken, there), Priced("Home", every, HOME)]
    moved = move_steps(graph, eps, assign(graph, eps, judge=Judge(eps[-1])))
    (part,) = moved.parts
    assert part.nodes == tuple(range(len(graph.nodes)))
    return eps[part.owner].name


def test_a_graph_goes_to_the_ep_that_takes_steps_faster_and_says_so() -> None:
    graph = recurrent_graph()
    eps = [Priced("First", "Abs GRU ReduceSum", SLOW), Priced("Other", "Abs GRU ReduceSum", SWIFT)]
    eps.append(Priced("Home", "", HOME))
    moved = move_steps(graph, eps, assign(graph, eps, judge=Judge(eps[-1])))
    assert [part.owner for part in moved.parts] == [1]
    # 100 steps of 2 * 32 * 96 operations each: 10 and 6.1 us, or 1 and 0.61; 20 for the rest
    assert moved.refusals[0]["First"] == (
        "left to Other, which runs the steps of recurrences faster: about 182 us a run, "
        "and 1635 us here"
    )


@pytest.mark.parametrize("op_type", GATES)
def test_each_kind_of_recurrence_moves(op_type: str) -> None:
    assert owner(recurrent_graph(op_type), SLOW, SWIFT, f"Abs {op_type} ReduceSum") == "Other"


def test_a_gru_is_of_the_kind_that_its_reset_gate_says() -> None:
    only = replace(SLOW, step_costs={RESET_BEFORE: SLOW.step_costs["GRU"]})
    assert compare_steps(recurrent_graph(), only, SWIFT) is not None
    assert compare_steps(recurrent_graph(linear_before_reset=0), only, SWIFT) is not None
    assert compare_steps(recurrent_graph(linear_before_reset=1), only, SWIFT) is None


def test_directions_and_sequences_share_threads() -> None:
    times = {
        (rows, both): compare_steps(recurrent_graph(rows=rows, both=both), SLOW, SWIFT)
        for rows in (1, 8)
        for both in (False, True)
    }
    here, there = times[1, False].here, times[1, False].there  # type: ignore[union-attr]
    assert times[1, True].here == pytest.approx(2 * here, rel=0.05)  # type: ignore[union-attr]
    assert times[1, True].there == pytest.approx(there, rel=0.1)  # type: ignore[union-attr]
    assert times[8, False].there == pytest.approx(4 * there, rel=0.1)  # type: ignore[union-attr]
    assert times[8, True].there == pytest.approx(8 * there, rel=0.1)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rows", "both", "part"), [(1, False, 1 / 2), (1, True, 1), (8, False, 1), (8, True, 1)]
)
def test_threads_share_the_steps_of_one_sequence_from_some_size_on(
    rows: int, *, both: bool, part: float
) -> None:
    operations = 2 * HIDDEN * 3 * HIDDEN
    graph = recurrent_graph(rows=rows, both=both)
    apart = compare_steps(graph, SLOW, SWIFT)
    assert apart is not None
    for shared, expected in ((operations + 1, 1), (operations, part)):
        costs = StepCosts(step=1, rate=10_000, tasks=2, shared=shared)
        times = compare_steps(graph, SLOW, replace(SWIFT, step_costs=dict.fromkeys(KINDS, costs)))
        assert times is not None
        assert times.there - 20 == pytest.approx(expected * (apart.there - 20), rel=0.1)


@pytest.mark.parametrize(
    ("graph", "here", "there"),
    [
        (recurrent_graph(steps="n"), SLOW, SWIFT),
        (recurrent_graph(), SLOW, SLOW),
        (recurrent_graph(), SWIFT, SLOW),
        (recurrent_graph(), FAST, SWIFT),
        (recurrent_graph(), SLOW, FAST),
        (recurrent_graph(), SLOW, replace(SWIFT, launch=1_200)),
        (recurrent_graph(), SLOW, replace(SWIFT, opening=1_500 * RUNS_PER_COMPILE)),
        (recurrent_graph(layers=0), SLOW, SWIFT),
    ],
    ids=[
        "free shapes",
        "as fast",
        "slower",
        "unknown here",
        "unknown there",
        "too little",
        "opening never comes back",
        "no recurrence",
    ],
)
def test_other_graphs_stay(graph: Graph, here: PlacementCosts, there: PlacementCosts) -> None:
    assert owner(graph, here, there, "Abs GRU ReduceSum") == "First"


def test_an_ep_that_leaves_a_node_does_not_get_the_graph() -> None:
    assert owner(recurrent_graph(), SLOW, SWIFT, "GRU ReduceSum") == "First"


def session(source: bytes, threads: int = 0) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.specialize_after_runs", "4")
    return ort.InferenceSession(source, options)


def plans(source: bytes, steps: int = 400, threads: int = 0) -> list[str]:
    """Lines about plans after some runs, whose answers are onnxruntime's before and after."""
    peer = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)
    with session(source, threads) as one:
        for turn in range(8):
            x = random.standard_normal((steps, 1, HIDDEN)).astype(np.float32)
            (mine,), (theirs,) = one.run(None, {"x": x}), peer.run(None, {"x": x})
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
            if turn == 4:
                one.background_compile(None)
        return [line for line in one.explain().notes if "specialized plan" in line]


@pytest.mark.parametrize("steps", [400, "n"], ids=["known", "free"])
def test_a_session_that_runs_often_moves_to_opencl(steps: int | str) -> None:
    skip_without_cpu_first()
    if not may_move_steps(ort.SessionOptions()):
        pytest.skip("a single CPU")
    (line,) = plans(recurrent_model(steps=steps))
    assert line.startswith("specialized plan for x [400, 1, 32]: OpenCLExecutionProvider 3; ")
    assert "OpenVINOExecutionProvider: left to OpenCLExecutionProvider, which runs" in line


@pytest.mark.parametrize(
    ("steps", "threads"), [(20, 0), (400, 1)], ids=["too little to save", "a number of threads"]
)
def test_a_session_with_little_to_gain_stays(steps: int, threads: int) -> None:
    assert plans(recurrent_model(steps=steps), steps=steps, threads=threads) == []


def test_a_number_of_threads_keeps_free_shapes_where_it_holds() -> None:
    (line,) = plans(recurrent_model(steps="n"), threads=1)
    assert line.startswith("specialized plan for x [400, 1, 32]: OpenVINOExecutionProvider")
    assert "OpenCLExecutionProvider" not in line


def test_known_shapes_get_no_second_plan_where_they_run_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the device that opens is another than the one that would be faster."""
    if not may_move_steps(ort.SessionOptions()):
        pytest.skip("a single CPU")
    monkeypatch.setattr(faster_steps, "move_steps", lambda graph, eps, assignment: assignment)
    assert plans(recurrent_model(steps=400)) == [
        "no specialized plan for x [400, 1, 32]: it would run where it runs already"
    ]


def test_steps_move_with_several_cpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for cpus, expected in (({0}, False), ({0, 1}, True)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _pid, cpus=cpus: cpus, raising=False)
        assert may_move_steps(ort.SessionOptions()) is expected
