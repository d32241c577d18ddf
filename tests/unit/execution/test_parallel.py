"""Steps that run at the same time: order, numbers, errors and memory."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.parser
import pytest
from small_models import model

import ort_lite as ort
from ort_lite.ep.kernels import KernelDef, kernel
from ort_lite.execution.parallel import Helpers, StepSchedule
from ort_lite.status import RuntimeException

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Array = np.ndarray[Any, Any]

CPU = ["CPUExecutionProvider"]
PATIENCE = 60
"""Seconds after which a test that hangs fails; none that passes waits for them."""

DIAMOND = StepSchedule([(0,), (1,), (1,), (2, 3)], [(1,), (2,), (3,), (4,)], kept=(4,))
"""Step 0, then 1 and 2, then 3; slot 0 is given."""


@pytest.fixture
def helpers() -> Iterator[Helpers]:
    with ThreadPoolExecutor(3) as pool:
        yield Helpers(pool, 3)


def test_steps_that_do_not_wait_for_each_other_run_at_once(helpers: Helpers) -> None:
    """1 and 2 meet at a barrier, which they could not in turns."""
    meeting, order = threading.Barrier(2), []

    def call(step: int, arguments: list[Any]) -> Sequence[Any]:
        if step in (1, 2):
            meeting.wait(PATIENCE)
        order.append(step)
        return [(step, *arguments)]

    env: list[Any] = ["given", None, None, None, None]
    DIAMOND.run(helpers, env, call)
    assert DIAMOND.has_choice
    assert (order[0], sorted(order[1:3]), order[3]) == (0, [1, 2], 3)
    first = (0, "given")
    assert env == [None, None, None, None, (3, (1, first), (2, first))]


def test_a_chain_has_nothing_to_run_at_once() -> None:
    assert not StepSchedule([(0,), (1,)], [(1,), (2,)]).has_choice


def test_nobody_waits_for_threads_that_are_busy_elsewhere() -> None:
    """The only helper is taken, so the calling thread does everything."""
    free = threading.Event()
    callers = []

    def call(step: int, _: list[Any]) -> Sequence[Any]:
        callers.append(threading.current_thread())
        return [step]

    with ThreadPoolExecutor(1) as pool:
        pool.submit(free.wait, PATIENCE)
        DIAMOND.run(Helpers(pool, 1), [None] * 5, call)
        free.set()
    assert callers == [threading.current_thread()] * 4


def test_a_step_that_fails_ends_the_run_and_its_error_comes_out(helpers: Helpers) -> None:
    schedule = StepSchedule([(), (), (0, 1)], [(0,), (1,), (2,)], kept=(2,))
    ran: list[int] = []

    def call(step: int, _: list[Any]) -> Sequence[Any]:
        ran.append(step)
        if step == 0:
            raise ort.EPFail("the device is gone")
        return [step]

    with pytest.raises(ort.EPFail, match="the device is gone"):
        schedule.run(helpers, [None] * 3, call)
    assert 2 not in ran


def test_of_two_steps_that_fail_the_first_in_order_is_told(helpers: Helpers) -> None:
    meeting = threading.Barrier(2)

    def call(step: int, _: list[Any]) -> Sequence[Any]:
        meeting.wait(PATIENCE)
        raise ort.EPFail(f"step {step}")

    with pytest.raises(ort.EPFail, match="step 0"):
        StepSchedule([(), ()], [(0,), (1,)], kept=(0, 1)).run(helpers, [None] * 2, call)


class _Thing:
    """A value that can be watched."""


@pytest.mark.parametrize("seed", range(20))
def test_values_are_released_at_their_last_use_and_never_before(
    helpers: Helpers, seed: int
) -> None:
    """Random graphs: every step finds what it reads, and at the end only outputs are left."""
    random = np.random.default_rng(seed)
    reads = [tuple(random.integers(0, n + 1, random.integers(1, 4))) for n in range(40)]
    makes = [(n + 1,) for n in range(40)]
    living: weakref.WeakSet[_Thing] = weakref.WeakSet()

    def call(step: int, arguments: list[Any]) -> Sequence[Any]:
        assert all(isinstance(value, _Thing) for value in arguments)
        made = _Thing()
        living.add(made)
        return [made]

    env: list[Any] = [_Thing()] + [None] * 40
    StepSchedule(reads, makes, kept=(40,)).run(helpers, env, call)
    assert env[:-1] == [None] * 40
    assert len(living) == 1


def branches(count: int, depth: int = 3) -> onnx.ModelProto:
    """x [8, 8] through `count` chains of products, then their sum."""
    random = np.random.default_rng(3)
    nodes, weights = [], {}
    for b in range(count):
        value = "x"
        for d in range(depth):
            name = f"b{b}_{d}"
            weights[f"w_{name}"] = random.standard_normal((8, 8)).astype(np.float32)
            node = onnx.helper.make_node("MatMul", [value, f"w_{name}"], [name], name=name)
            nodes.append(node)
            value = name
    ends = [f"b{b}_{depth - 1}" for b in range(count)]
    nodes.append(onnx.helper.make_node("Sum", ends, ["y"], name="sum"))
    return model(nodes, [("x", [8, 8])], [("y", [8, 8])], weights)


def parallel(threads: int = 4) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = threads
    return options


TWO_BRANCHES = """<ir_version: 8, opset_import: ["" : 17, "test" : 1]>
g (float[2] x) => (float[2] y) {
  a = test.Meet(x) b = test.Meet(x)
  y = Add(a, b)
}"""


def custom(name: str, function: Callable[..., Any]) -> KernelDef:
    return kernel(name, domain="test")(lambda info: function)


def test_branches_inside_one_cpu_partition_run_at_once() -> None:
    meeting = threading.Barrier(2)

    def meet(x: Array) -> Array:
        meeting.wait(PATIENCE)
        return x + 1

    options = parallel(2)
    options.register_custom_kernel(custom("Meet", meet))
    raw = onnx.parser.parse_model(TWO_BRANCHES).SerializeToString()
    with ort.InferenceSession(raw, options, providers=CPU) as session:
        assert len(session.explain().partitions) == 1
        (y,) = session.run(None, {"x": np.zeros(2, np.float32)})
    np.testing.assert_array_equal(y, np.full(2, 2, np.float32))


def test_terminate_stops_branches() -> None:
    run_options = ort.RunOptions()
    meeting = threading.Barrier(2)

    def meet(x: Array) -> Array:
        meeting.wait(PATIENCE)
        run_options.terminate = True
        return x

    options = parallel(2)
    options.register_custom_kernel(custom("Meet", meet))
    raw = onnx.parser.parse_model(TWO_BRANCHES).SerializeToString()
    with (
        ort.InferenceSession(raw, options, providers=CPU) as session,
        pytest.raises(ort.Fail, match="Exiting due to terminate flag being set to true"),
    ):
        session.run(None, {"x": np.zeros(2, np.float32)}, run_options)


def test_a_node_that_fails_in_a_branch_is_named() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n] x, float[m] z) => (float[k] y) { a = Exp(x) b = Neg(z) y = Add(a, b) c = Sin(a) }"""
    raw = onnx.parser.parse_model(text).SerializeToString()
    feeds = {"x": np.ones(2, np.float32), "z": np.ones(3, np.float32)}
    with (
        ort.InferenceSession(raw, parallel(), providers=CPU) as session,
        pytest.raises(RuntimeException, match="running Add"),
    ):
        session.run(None, feeds)


LOOPS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y, float[2] z) <int64 n = {50}, bool go = {1}> {
  y = Loop(n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w)
    { d = Identity(c) s = Sin(v) t = Cos(v) w = Add(s, t) }>
  z = Loop(n, go, x) <body = e (int64 i, bool c, float[2] v) => (bool d, float[2] w)
    { d = Identity(c) s = Exp(v) t = Cos(v) w = Div(t, s) }>
}"""


@pytest.mark.parametrize(
    "make",
    [lambda: branches(6), lambda: onnx.parser.parse_model(LOOPS)],
    ids=["branches", "loops"],
)
def test_sixteen_threads_get_the_numbers_of_a_sequential_run(make: Any) -> None:
    """All through three helpers; bodies run branches of their own with the same helpers."""
    proto = make()
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    raw = proto.SerializeToString()
    random = np.random.default_rng(5)
    feeds = [{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(16)]
    with ort.InferenceSession(raw, providers=CPU) as sequential:
        right = [sequential.run(None, feed) for feed in feeds]
    start = threading.Barrier(16)

    with ort.InferenceSession(raw, parallel(), providers=CPU) as session:

        def work(mine: int) -> list[Any]:
            start.wait(PATIENCE)
            return [session.run(None, feeds[mine]) for _ in range(10)]

        with ThreadPoolExecutor(16) as pool:
            for mine, answers in enumerate(pool.map(work, range(16))):
                for answer in answers:
                    np.testing.assert_array_equal(answer, right[mine])


def test_asynchronous_runs_may_run_branches_at_once() -> None:
    feed = {"x": np.eye(8, dtype=np.float32)}
    raw = branches(4).SerializeToString()
    got: list[Any] = []
    with ort.InferenceSession(raw, parallel(2), providers=CPU) as session:
        for _ in range(8):
            session.run_async(None, feed, lambda *answer: got.append(answer))
        (right,) = session.run(None, feed)
    assert [error for _, _, error in got] == [""] * 8
    for (y,), _, _ in got:
        np.testing.assert_array_equal(y, right)
