"""Which nodes stay on the default execution provider because a crossing costs more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper
from priced_eps import FAST, HOME, Priced

import ort_lite as ort
from ctx_formats.lean_dataclass import replace
from ort_lite.ep import PlacementCosts
from ort_lite.model import loader
from ort_lite.model.shape_inference import infer_types
from ort_lite.planning.expected_runs import ASSUMED_TRIPS, MOST_TRIPS, expected_runs
from ort_lite.planning.judge_placement import Judge
from ort_lite.planning.partitioner import assign
from ort_lite.planning.whole_graph import keep_whole
from ort_lite.start.placement_option import ALL, PAYS, choose_placement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.planning.partitioner import Assignment

CPU, OPENVINO = "CPUExecutionProvider", "OpenVINOExecutionProvider"
OPERATORS = "MatMul Neg Abs Shape TopK If Identity"


def divided(graph: Graph, *, accelerated: str, costs: PlacementCosts | None = FAST) -> list[str]:
    """EPs of the nodes in the order of the graph."""
    eps = [Priced("Fast", accelerated, costs), Priced("Home", OPERATORS, HOME)]
    return names(assign(graph, eps, judge=Judge(eps[-1])), eps)


def names(assignment: Assignment, eps: Sequence[ExecutionProvider]) -> list[str]:
    owners = {node: eps[part.owner].name for part in assignment.parts for node in part.nodes}
    return [owners[node] for node in sorted(owners)]


def chain(operators: str, size: int | str = 64) -> Graph:
    return resolved(chain_model(operators, size))


def resolved(model: bytes) -> Graph:
    """The graph of a model, with the types that inference finds."""
    typed = loader.infer_model(loader.load(model, ort.SessionOptions()).model, {})
    return loader.as_graph(infer_types(typed))


def chain_model(operators: str, size: int | str = 64) -> bytes:
    """`operators` one after the other on [size, size] floats; MatMul by a constant."""
    nodes, count = [], 0
    for count, operator in enumerate(operators.split(), 1):
        inputs = [f"v{count - 1}"] + (["w"] if operator == "MatMul" else [])
        nodes.append(helper.make_node(operator, inputs, [f"v{count}"]))
    side = size if isinstance(size, int) else 64
    weight = helper.make_tensor("w", TensorProto.FLOAT, [side, side], [0.01] * side * side)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, side])
        for name in ("v0", f"v{count}")
    ]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], [weight])
    opset = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, ir_version=8, opset_imports=[opset]).SerializeToString())


def test_an_island_that_saves_less_than_its_crossings_stays() -> None:
    assert divided(chain("Abs Neg Abs"), accelerated="Neg") == ["Home", "Home", "Home"]


def test_an_island_that_saves_more_leaves() -> None:
    assert divided(chain("Abs MatMul Abs"), accelerated="MatMul") == ["Home", "Fast", "Home"]


def test_partitions_are_judged_one_by_one() -> None:
    owners = divided(chain("MatMul Abs Neg Abs MatMul"), accelerated="MatMul Neg")
    assert owners == ["Fast", "Home", "Home", "Home", "Fast"]


def test_nodes_of_constants_save_nothing_since_no_run_computes_them() -> None:
    kept = 40
    nodes = [helper.make_node("Abs", ["x"], ["a"])]
    nodes += [helper.make_node("Neg", [f"w{i}"], [f"w{i + 1}"]) for i in range(kept)]
    nodes += [helper.make_node("MatMul", ["a", f"w{kept}"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xy"]
    weight = helper.make_tensor("w0", TensorProto.FLOAT, [4, 4], [1.0] * 16)
    graph = helper.make_graph(nodes, "constants", ends[:1], ends[1:], [weight])
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, ir_version=8, opset_imports=[opset]).SerializeToString()
    assert divided(resolved(model), accelerated="Neg MatMul") == ["Home"] * len(nodes)
    nodes[1].input[0] = "a"  # now every run computes them
    model = helper.make_model(
        helper.make_graph(nodes, "values", ends[:1], ends[1:]), ir_version=8, opset_imports=[opset]
    ).SerializeToString()
    assert divided(resolved(model), accelerated="Neg MatMul") == ["Home"] + ["Fast"] * (kept + 1)


def test_a_graph_that_is_one_partition_is_never_divided() -> None:
    assert divided(chain("Neg"), accelerated="Neg") == ["Fast"]


def test_an_ep_without_costs_gets_all_that_it_supports() -> None:
    owners = divided(chain("Abs Neg Abs"), accelerated="Neg", costs=None)
    assert owners == ["Home", "Fast", "Home"]


def test_nodes_that_the_default_ep_cannot_run_are_not_left_to_it() -> None:
    graph = chain("Abs Neg Abs")
    eps = [Priced("Fast", "Neg", FAST), Priced("Home", "Abs", HOME)]
    assert names(assign(graph, eps, judge=Judge(eps[1])), eps) == ["Home", "Fast", "Home"]


def test_nodes_that_the_default_ep_failed_to_compile_are_not_left_to_it() -> None:
    graph = chain("Abs Neg Abs")
    eps = [Priced("Fast", "Neg", FAST), Priced("Home", OPERATORS, HOME)]
    found = assign(graph, eps, judge=Judge(eps[1]), declined={1: {1: "no kernel"}})
    assert names(found, eps) == ["Home", "Fast", "Home"]


def test_the_reason_has_the_figures() -> None:
    eps = [Priced("Fast", "Neg", FAST), Priced("Home", OPERATORS, HOME)]
    found = assign(chain("Abs Neg Abs"), eps, judge=Judge(eps[1]))
    assert found.refusals[1]["Fast"] == (
        "left to Home: a crossing costs more than it saves "
        "(about 1 us there, 0 us here and 10 us for the crossing)"
    )


def test_of_a_default_list_an_ep_that_runs_every_node_gets_them_from_another() -> None:
    graph = chain("MatMul Neg MatMul Abs")
    eps = [Priced("First", "MatMul", FAST), Priced("Second", "MatMul Neg Abs", FAST)]
    eps.append(Priced("Home", "", HOME))
    judge = Judge(eps[-1])
    apart = assign(graph, eps, judge=judge)
    assert names(apart, eps) == ["First", "Second", "First", "Second"]
    whole = keep_whole(graph, eps, apart, judge)
    assert names(whole, eps) == ["Second"] * 4
    assert len(whole.parts) == 1
    assert whole.refusals[0]["First"] == (
        "left to Second, which runs every node: about 21 us, and 81 us in 4 partitions"
    )


def test_an_ep_that_would_take_longer_than_the_pieces_does_not_get_the_whole_graph() -> None:
    graph = chain("MatMul Neg MatMul Abs")
    slow = replace(FAST, product_rate=1_000)
    eps = [
        Priced("First", "MatMul", FAST),
        Priced("Second", "MatMul Neg Abs", slow),
        Priced("Home", "", HOME),
    ]
    judge = Judge(eps[-1])
    apart = assign(graph, eps, judge=judge)
    assert keep_whole(graph, eps, apart, judge) is apart


def test_an_ep_without_a_node_does_not_get_the_whole_graph() -> None:
    """It may have to compile again for each new set of shapes, and nothing else does."""
    graph = chain("MatMul Neg MatMul Abs")
    eps = [
        Priced("First", "MatMul", FAST),
        Priced("Second", OPERATORS, FAST),
        Priced("Home", OPERATORS, HOME),
    ]
    judge = Judge(eps[-1])
    apart = assign(graph, eps, judge=judge)
    assert names(apart, eps) == ["First", "Home", "First", "Home"]
    assert keep_whole(graph, eps, apart, judge) is apart


def test_a_free_dimension_is_assumed_alike_every_time() -> None:
    first, second = chain("Abs MatMul Abs", "n"), chain("Abs MatMul Abs", "n")
    assert divided(first, accelerated="MatMul") == divided(second, accelerated="MatMul")


def test_a_compile_comes_back_over_the_runs_of_a_loop() -> None:
    costs = PlacementCosts(
        launch=1,
        crossing=0,
        crossing_rate=1e12,
        call=0,
        step=0,
        product_rate=1e9,
        stream_rate=1e12,
        math_rate=1e9,
        compile=2_000_000,
    )
    graph = chain("Abs MatMul Abs")  # 524 us at home, and a compile of 1,000 us a run
    eps = [Priced("Fast", "MatMul", costs), Priced("Home", OPERATORS, HOME)]
    assert names(assign(graph, eps, judge=Judge(eps[1])), eps)[1] == "Home"
    assert names(assign(graph, eps, judge=Judge(eps[1], runs=8)), eps)[1] == "Fast"


def branching() -> bytes:
    """If(c): -x, else |x|."""
    floats = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])

    def branch(operator: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"{operator}_y", TensorProto.FLOAT, [4])
        node = helper.make_node(operator, ["x"], [out.name])
        return helper.make_graph([node], operator, [], [out])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs")
    )
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([node], "branching", [condition, floats], [y])
    opset = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, ir_version=8, opset_imports=[opset]).SerializeToString())


def test_a_branch_counts_half_and_an_unknown_loop_as_assumed() -> None:
    graph = resolved(branching())
    assert expected_runs(graph, 0) == 0.5
    assert ASSUMED_TRIPS > 1


def looping(trips: int) -> Graph:
    """Abs, and a Loop whose body multiplies a [64, 64] state with a constant."""
    text = f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[64, 64] x) => (float[64, 64] y) <int64 m = {{{trips}}}, bool g = {{1}}> {{
            a = Abs(x)
            y = Loop(m, g, a) <body = b (int64 i, bool c, float[64, 64] s)
                => (bool o, float[64, 64] t) {{ o = Identity(c) t = MatMul(s, s) }}>
        }}"""
    return resolved(bytes(onnx.parser.parse_model(text).SerializeToString()))


@pytest.mark.parametrize(
    ("trips", "expected"),
    [(0, 0), (-1, 0), (501, 501), (MOST_TRIPS, MOST_TRIPS), (2**63 - 1, ASSUMED_TRIPS)],
)
def test_a_loop_that_a_condition_ends_counts_as_assumed(trips: int, expected: int) -> None:
    assert expected_runs(looping(trips), 1) == expected


class PricedSession(Priced):
    """One whose bodies the session runs."""

    runs_bodies_through_session = True


@pytest.mark.parametrize(
    ("trips", "whole", "owner"),
    [(4, {"Loop"}, "Fast"), (4, set(), "Home"), (0, {"Loop"}, "Home")],
)
def test_a_loop_that_is_taken_whole_is_judged_by_its_body(
    trips: int, whole: set[str], owner: str
) -> None:
    graph = looping(trips)
    fast, home = Priced("Fast", "Loop", FAST), PricedSession("Home", f"{OPERATORS} Loop", HOME)
    fast.whole_bodies = frozenset(whole)
    assert names(assign(graph, [fast, home], judge=Judge(home)), [fast, home]) == ["Home", owner]


def session(model: bytes, placement: str | None, *eps: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    if placement is not None:
        options.add_session_config_entry("session.placement", placement)
    return ort.InferenceSession(model, options, providers=list(eps))


@pytest.mark.hw("openvino-cpu")
@pytest.mark.parametrize(("placement", "count"), [(None, 0), ("pays", 0), ("all", 2)])
def test_bodies_of_one_node_run_on_openvino_only_where_all_is_asked_for(
    placement: str | None, count: int
) -> None:
    with session(branching(), placement, OPENVINO) as ours:
        report = ours.explain()
        x = np.array([-1, 2, -3, 4], np.float32)
        for condition in (True, False):
            feed: dict[str, Any] = {"c": np.array(condition), "x": x}
            theirs = onnxruntime.InferenceSession(branching(), providers=[CPU]).run(None, feed)
            np.testing.assert_array_equal(ours.run(None, feed)[0], theirs[0])
    assert report.node_counts().get(OPENVINO, 0) == count
    left = [n for p in report.partitions for n in p.nodes if "costs more" in str(n.refusals)]
    assert len(left) == 2 - count
    assert all(
        re.fullmatch(
            r"left to the CPU EP: a crossing costs more than it saves "
            r"\(about \d+ us there, \d+ us here and \d+ us for the crossing\)",
            node.refusals[OPENVINO],
        )
        for node in left
    )


@pytest.mark.parametrize(
    ("entries", "placement"),
    [
        ({}, PAYS),
        ({"session.placement": "all"}, ALL),
        ({"ep.context_enable": "1"}, ALL),
        ({"ep.context_enable": "1", "session.placement": "pays"}, PAYS),
        ({"session.disable_cpu_ep_fallback": "1"}, ALL),
        ({"session.disable_cpu_ep_fallback": "1", "session.placement": "pays"}, ALL),
    ],
)
def test_contexts_and_sessions_without_fallback_leave_nothing(
    entries: dict[str, str], placement: str
) -> None:
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    assert choose_placement(options) == placement


def test_an_unknown_placement_is_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match=r"session.placement is 'best', expected pays or"):
        session(chain_model("Neg"), "best", CPU)
