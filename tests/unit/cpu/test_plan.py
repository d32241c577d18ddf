from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.parser
import pytest
from unit.cpu.single_node import node_plan, resolver, run_node

import ort_lite
from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import Attribute, AttributeType, GraphDef, Node, ValueInfo
from eps.cpu.compile_graph import GraphCompiler, NodeRefused, constants_of
from ort_lite.ep.kernels import KernelDef, kernel
from ort_lite.model.graph import Graph
from ort_lite.status import EPFail, RuntimeException

if TYPE_CHECKING:
    from eps.cpu.plan import Plan

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def graph_of(text: str) -> Graph:
    header = '<ir_version: 10, opset_import: ["" : 18, "test" : 1]>\n'
    raw = onnx.parser.parse_model(header + text).SerializeToString()
    read = read_model(memoryview(raw))
    return Graph(read.graph, read.opset_imports)


def plan_of(text: str, *custom: KernelDef) -> Plan:
    return GraphCompiler(graph_of(text), resolver(custom)).compile()


def test_an_output_that_is_an_input_is_a_copy() -> None:
    plan = plan_of("g (float[2,3] x) => (float[2,3] y) { y = Identity (x) }")
    (y,) = plan.run([X])
    assert not np.shares_memory(X, y)
    np.testing.assert_array_equal(y, X)


def test_an_output_that_is_a_view_of_an_input_is_a_copy_in_order() -> None:
    plan = plan_of("g (float[2,3] x) => (float[3,2] y) { y = Transpose (x) }")
    (y,) = plan.run([X])
    assert not np.shares_memory(X, y)
    assert y.flags.c_contiguous
    np.testing.assert_array_equal(y, X.T)


def test_an_output_that_is_a_constant_is_a_copy_that_may_be_written() -> None:
    plan = plan_of("g () => (float[2] y) { y = Constant <value_floats = [1.0, 2.0]> () }")
    (y,) = plan.run([])
    y[:] = 7
    np.testing.assert_array_equal(plan.run([])[0], [1, 2])


def test_two_outputs_of_one_value_do_not_share_memory() -> None:
    plan = plan_of("""g (float[2,3] x) => (float[2,3] y, float[6] z) {
        y = Relu (x)
        s = Constant <value_ints = [6]> ()
        z = Reshape (y, s)
    }""")
    y, z = plan.run([X])
    assert not np.shares_memory(y, z)


def test_sequence_elements_do_not_share_memory_with_inputs_or_each_other() -> None:
    plan = plan_of("g (float[2,3] x) => (seq(float[2,3]) s) { s = SequenceConstruct (x, x) }")
    ((first, second),) = plan.run([X])
    assert not np.shares_memory(first, X)
    assert not np.shares_memory(first, second)


def test_a_later_run_does_not_change_earlier_results() -> None:
    plan = plan_of("g (float[2,3] x) => (float[2,3] y) { y = Add (x, x) }")
    (first,) = plan.run([X])
    kept = first.copy()
    plan.run([X + 1])
    np.testing.assert_array_equal(first, kept)


def test_a_value_is_released_after_its_last_use() -> None:
    made: list[weakref.ref[Any]] = []
    alive: list[bool] = []

    def make(x: Any) -> Any:
        result = x + 1
        made.append(weakref.ref(result))
        return result

    def look(x: Any) -> Any:
        alive.append(made[-1]() is not None)
        return x + 1

    plan = plan_of(
        """g (float[2,3] x) => (float[2,3] y) {
            a = test.Make (x)
            b = Neg (a)
            y = test.Look (b)
        }""",
        kernel("Make", domain="test")(lambda info: make),
        kernel("Look", domain="test")(lambda info: look),
    )
    plan.run([X])
    assert alive == [False]


def test_an_unused_output_is_not_kept() -> None:
    made: list[weakref.ref[Any]] = []

    def two(x: Any) -> Any:
        extra = x + 2
        made.append(weakref.ref(extra))
        return x + 1, extra

    plan = plan_of(
        """g (float[2,3] x) => (float[2,3] y) {
            a, unused = test.Two (x)
            y = Neg (a)
        }""",
        kernel("Two", domain="test")(lambda info: two),
    )
    plan.run([X])
    assert made[0]() is None


def test_nodes_of_constants_are_computed_once() -> None:
    calls = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return x + 1

    plan = plan_of(
        """g (float[2] x) => (float[2] y) {
            c = Constant <value_floats = [1.0, 2.0]> ()
            d = test.Count (c)
            y = Add (x, d)
        }""",
        kernel("Count", domain="test")(lambda info: counted),
    )
    for _ in range(3):
        np.testing.assert_array_equal(plan.run([np.zeros(2, np.float32)])[0], [2, 3])
    assert len(calls) == 1


def test_a_constant_node_that_fails_fails_only_where_it_is_run() -> None:
    plan = plan_of("""g (bool c, float[2] x) => (float[n] y) {
        y = If (c) <
            then_branch = t () => (float[n] p) { p = Identity (x) },
            else_branch = e () => (float[n] q) {
                a = Constant <value_floats = [1.0, 2.0]> ()
                b = Constant <value_floats = [1.0, 2.0, 3.0]> ()
                q = Add (a, b)
            }>
    }""")
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(plan.run([np.array(1, np.bool_), x])[0], x)
    with pytest.raises(RuntimeException, match="while running Add node"):
        plan.run([np.array(0, np.bool_), x])


def test_random_nodes_are_drawn_by_every_run() -> None:
    plan = plan_of("g () => (float[9] y) { y = RandomNormal <shape = [9]> () }")
    assert plan.run([])[0].tolist() != plan.run([])[0].tolist()


def test_a_failing_node_names_itself_and_what_it_was_given() -> None:
    with pytest.raises(RuntimeException) as caught:
        run_node("Add", X, np.ones(4, np.float32))
    assert caught.value.message == (
        "Non-zero status code returned while running Add node. Name:'n' Status Message: "
        "operands could not be broadcast together with shapes (2,3) (4,)  "
        "(inputs: tensor(float) [2, 3], tensor(float) [4])"
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failing_node_in_a_body_names_the_way_to_it() -> None:
    plan = plan_of("""g (int64 n, float[2] x) => (float[2] y) {
        y = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
            d = Identity (c)
            w = Constant <value_floats = [1.0, 2.0, 3.0]> ()
            t = Mul (s, w)
        }>
    }""")
    with pytest.raises(RuntimeException) as caught:
        plan.run([np.array(1), np.ones(2, np.float32)])
    assert caught.value.message.startswith(
        "Non-zero status code returned while running Loop node. Name:'' Status Message: "
        "Non-zero status code returned while running Mul node. Name:''"
    )


def test_threads_run_one_plan_at_once() -> None:
    plan = plan_of("""g (float[2,3] x) => (float[2,3] y) {
        a = Exp (x)
        b = Neg (a)
        y = Add (a, b)
    }""")
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda i: plan.run([X * np.float32(i / 200)])[0], range(200)))
    assert not np.any(results)


def test_inputs_of_the_wrong_number_are_refused() -> None:
    plan = node_plan("Relu", [X])
    with pytest.raises(EPFail, match="2 inputs, 1 are needed"):
        plan.run([X, X])
    plan.release()
    with pytest.raises(EPFail, match="this partition was released"):
        plan.run([X])


def test_scalars_stay_arrays() -> None:
    result = run_node("Add", np.array(1, np.float32), np.array(2, np.float32))
    assert isinstance(result, np.ndarray)
    assert result.shape == ()


def test_overflow_and_division_by_zero_warn_nobody() -> None:
    big = np.full(2, 3e38, np.float32)
    assert np.isinf(run_node("Mul", big, big)).all()
    assert np.isnan(run_node("Div", np.zeros(2, np.float32), np.zeros(2, np.float32))).all()


def test_bodies_nested_too_deep_are_refused() -> None:
    result = (ValueInfo("y"),)
    flat = GraphDef(name="g", nodes=(Node("Relu", ("x",), ("y",)),), inputs=(), outputs=result)
    inner = flat
    for _ in range(70):
        branches = {
            "then_branch": Attribute("then_branch", AttributeType.GRAPH, inner),
            "else_branch": Attribute("else_branch", AttributeType.GRAPH, flat),
        }
        node = Node("If", ("c",), ("y",), attributes=branches)
        inner = GraphDef(name="g", nodes=(node,), inputs=(), outputs=result)
    outer = replace(inner, inputs=(ValueInfo("c"), ValueInfo("x")))
    with pytest.raises(ort_lite.NotImplemented, match="nested more than 64 deep"):
        GraphCompiler(Graph(outer, {"": 18}), resolver()).compile()


def test_a_node_that_nothing_takes_is_named_by_its_index() -> None:
    declining = kernel("Odd", domain="test")(lambda info: None)
    with pytest.raises(NodeRefused, match="its kernels take none of its attributes") as caught:
        plan_of(
            """g (float[2,3] x) => (float[2,3] y) {
                a = Neg (x)
                y = test.Odd (a)
            }""",
            declining,
        )
    assert caught.value.index == 1


@pytest.mark.parametrize("shift", range(4))
def test_constants_are_aligned_wherever_they_lie_in_the_file(shift: int) -> None:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1.5, 2.5}> { y = Add (x, w) }"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    proto.graph.initializer[0].raw_data = np.array([1.5, 2.5], np.float32).tobytes()
    del proto.graph.initializer[0].float_data[:]
    proto.producer_name = "p" * (shift + 1)  # moves all that follows
    read = read_model(memoryview(proto.SerializeToString()))
    (w,) = constants_of(Graph(read.graph, read.opset_imports)).values()
    assert w.flags.aligned
    assert not w.flags.writeable
    np.testing.assert_array_equal(w, np.array([1.5, 2.5], np.float32))
