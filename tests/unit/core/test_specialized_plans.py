"""Plans for input shapes that come again: their answers are onnxruntime's, whatever comes next."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort
from ort_lite.start.specialized_plans import MAX_PLANS

if TYPE_CHECKING:
    from pathlib import Path

CPU = ["CPUExecutionProvider"]
KEY = "session.specialize_after_runs"
Values = dict[str, np.ndarray[Any, Any]]

BRANCHES = """g (float[batch, size] x, int64 mode) => (float[b, s] z)
    <int64 one = {1}, int64[1] first = {0}, int64[1] two = {2}, int64[1] last = {1}> {
    flag = Equal(mode, one)
    z = If(flag) <
        then_branch = t () => (float[b, s] p) {
            shape = Shape(x)
            rows = Gather <axis = 0> (shape, first)
            pair = Equal(rows, two)
            q = If(pair) <
                then_branch = u () => (float[b, s] v) { v = Exp(x) },
                else_branch = w () => (float[b, s] k) { k = Tanh(x) }>
            p = Neg(q)
        },
        else_branch = e () => (float[b, s] r) { a = Abs(x) r = Sqrt(a) }>
}"""
PLAIN = """g (float[batch, size] x) => (float[n] z) <int64[1] all = {-1}> {
    s = Shape(x) d = Cast <to = 1> (s) n = ReduceProd <keepdims = 0> (d)
    y = Div(x, n) z = Reshape(y, all)
}"""


def model(text: str = BRANCHES) -> bytes:
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    return onnx.parser.parse_model(f"{head}\n{text}").SerializeToString()


def session(
    source: bytes | str, runs: int | str = 2, providers: list[str] | None = CPU
) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry(KEY, str(runs))
    return ort.InferenceSession(source, options, providers=providers)


def feed(rows: int, columns: int, mode: int | None = None, seed: int = 0) -> Values:
    x = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    return {"x": x} if mode is None else {"x": x, "mode": np.array(mode)}


def plans(one: ort.InferenceSession) -> list[str]:
    """The lines of `explain()` about plans, once none is being made."""
    one.background_compile(None)
    return [line for line in one.explain().notes if "specialized plan" in line]


def agrees(one: ort.InferenceSession, peer: onnxruntime.InferenceSession, values: Values) -> None:
    (mine,), (theirs,) = one.run(None, values), peer.run(None, values)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_shapes_and_flags_that_come_again_get_a_plan() -> None:
    with session(model()) as one:
        for _ in range(3):
            one.run(None, feed(2, 3, 1))
        assert plans(one) == [
            "specialized plan for x [2, 3], mode = 1: CPUExecutionProvider 2"
        ]  # Exp and Neg
        assert one.background_compile().state == "done"


def test_every_other_set_of_shapes_and_flags_is_answered_as_before() -> None:
    peer = onnxruntime.InferenceSession(model(), providers=CPU)
    cases = [(2, 3, 1), (3, 3, 1), (2, 3, 0), (2, 4, 1), (1, 1, 7), (0, 3, 1), (5, 2, 0)]
    with session(model()) as one:
        for turn in range(6):
            for case in cases:
                agrees(one, peer, feed(*case, seed=turn))
            one.background_compile(None)
        assert len(plans(one)) == MAX_PLANS


def test_shape_arithmetic_is_constant_in_a_plan() -> None:
    source = model(PLAIN)
    peer = onnxruntime.InferenceSession(source, providers=CPU)
    with session(source) as one:
        for turn in range(4):
            agrees(one, peer, feed(2, 5, seed=turn))
            agrees(one, peer, feed(4, 3, seed=turn))
            one.background_compile(None)
        assert plans(one) == [
            "specialized plan for x [2, 5]: CPUExecutionProvider 2",
            "specialized plan for x [4, 3]: CPUExecutionProvider 2",
        ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("g (float[2, 3] x) => (float[2, 3] z) { z = Exp(x) }", feed(2, 3)),
        (
            "g (float[n, m] x) => (float[n, m] z) "
            "{ s = Shape(x) r = RandomUniformLike(x) z = Mul(x, r) }",
            feed(2, 3),
        ),
        ("g (float[n, m] x) => (float[n, m] z) { y = Exp(x) z = Neg(y) }", feed(2, 3)),
    ],
    ids=["fixed shapes", "random numbers", "nothing to simplify"],
)
def test_a_model_that_gains_nothing_has_no_plan(text: str, values: Values) -> None:
    with session(model(text)) as one:
        for _ in range(4):
            one.run(None, values)
        assert not any(line.startswith("specialized plan") for line in plans(one))


def test_it_can_be_switched_off() -> None:
    with session(model(), runs=0) as one:
        for _ in range(4):
            one.run(None, feed(2, 3, 1))
        assert (plans(one), one.background_compile().state) == ([], "off")


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "", "9999999999"])
def test_a_wrong_number_of_runs_is_refused(text: str) -> None:
    with pytest.raises(ort.InvalidArgument, match=f"{KEY} is '{text}', expected a number of runs"):
        session(model(), runs=text)


def test_files_that_have_changed_make_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model())
    with session(str(path)) as one:
        expected = one.run(None, feed(2, 3, 1))[0]
        path.unlink()
        path.write_bytes(model(BRANCHES.replace("Exp", "Abs")))
        for _ in range(4):
            np.testing.assert_array_equal(one.run(None, feed(2, 3, 1))[0], expected)
        (line,) = plans(one)
        assert line.endswith("the model's files have changed since the session was made")


def test_a_model_file_that_is_gone_makes_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model())
    with session(str(path)) as one:
        path.unlink()
        expected = one.run(None, feed(2, 3, 1))[0]
        for _ in range(4):
            np.testing.assert_array_equal(one.run(None, feed(2, 3, 1))[0], expected)
        assert "NoSuchFile" in plans(one)[0]


def test_many_threads_get_the_same_answers() -> None:
    peer = onnxruntime.InferenceSession(model(), providers=CPU)
    cases = [feed(2, 3, 1), feed(3, 3, 1), feed(2, 3, 0)]
    right = [peer.run(None, case)[0] for case in cases]
    wrong: list[str] = []

    def run(one: ort.InferenceSession) -> None:
        for turn in range(60):
            case = turn % len(cases)
            mine = one.run(None, cases[case])[0]
            if not np.allclose(mine, right[case], rtol=1e-5, atol=1e-6):
                wrong.append(f"{case}: {mine}")

    with session(model(), runs=8) as one:
        threads = [threading.Thread(target=run, args=(one,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(9):  # what a busy thread did not get round to
            for case in cases:
                one.run(None, case)
            one.background_compile(None)
        assert (wrong, len(plans(one))) == ([], 3)


def test_a_session_may_close_while_a_plan_is_made() -> None:
    one = session(model())
    for _ in range(2):
        one.run(None, feed(2, 3, 1))
    one.close()
    with pytest.raises(ort.Fail, match="the session is closed"):
        one.run(None, feed(2, 3, 1))


def test_other_providers_start_to_count_again() -> None:
    with session(model()) as one:
        for _ in range(3):
            one.run(None, feed(2, 3, 1))
        assert len(plans(one)) == 1
        one.set_providers(CPU)
        assert plans(one) == []
        np.testing.assert_allclose(
            one.run(None, feed(2, 3, 1))[0], -np.exp(feed(2, 3, 1)["x"]), rtol=1e-6
        )


def test_memory_of_plans_is_reported() -> None:
    with session(model()) as one:
        before = len(one.memory_report().devices)
        for _ in range(3):
            one.run(None, feed(2, 3, 1))
        plans(one)
        assert len(one.memory_report().devices) == before + 1


def test_a_forked_process_goes_on_without_plans() -> None:
    """As ort_lite.forks has it: threads of SDKs are not in the child, and a lock may be held."""
    with session(model()) as one:
        for _ in range(3):
            one.run(None, feed(2, 3, 1))
        assert len(plans(one)) == 1
        specialized: Any = one._specialized
        specialized._lock.acquire()
        held = specialized.lose_threads()
        assert len(held) == 1
        for _ in range(4):
            (mine,) = one.run(None, feed(2, 3, 1))
            np.testing.assert_allclose(mine, -np.exp(feed(2, 3, 1)["x"]), rtol=1e-6)
        assert plans(one) == []
        for plan in held.values():
            plan.model.release()
