"""Ifs between truth values in the body of a Loop become logic; answers are onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from unit.transforms.transformed import agrees, expected, parsed, run

import ort_lite as ort
from ctx_formats.model_reader import read_model
from ort_lite.status import OrtLiteError
from ort_lite.transforms.loop_ifs import ifs_to_logic

NAME = "IfToLogic"
OPENVINO = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
ENDED = "then_branch = t () => (bool p) { p = Constant <value = bool {1}> () }"
AS_BEFORE = """else_branch = e () => (bool[1] q) {
    a = Cast <to = 7> (done) b = Add(a, none) q = Cast <to = 9> (b) }"""
"""A copy of a state, as PaddlePaddle writes it."""
USES = """
    stop = Not(choice) u = Cast <to = 7> (choice) v = Add(u, none) ended = Cast <to = 9> (v)
    k = Cast <to = 7> (stop) m = Add(k, none) go = Cast <to = 9> (m)"""


def loop(
    then: str = ENDED,
    other: str = AS_BEFORE,
    uses: str = USES,
    condition: str = "over",
    done: str = "bool[1] no = {0}",
) -> bytes:
    """Sums of x until one is above `limit`; `done` says from then on that it was."""
    name = done.split()[1]
    return parsed(f"""net (float[2] x, float[1] limit, bool[k] wide) => (float[2] s, bool[d] f)
        <int64 ten = {{10}}, bool yes = {{1}}, {done},
        int64[1] none = {{0}}, int64[1] three = {{3}}> {{
        s, f = Loop(ten, yes, x, {name}) <body = step (int64 i, bool on, float[2] t, bool[r] done)
            => (bool[g] go, float[2] next, bool[l] ended) {{
            next = Add(t, x) largest = ReduceMax(next) above = Greater(largest, limit)
            over = Squeeze(above)
            choice = If({condition}) <{then}, {other}>
            {uses} }}> }}""")


def feed(limit: float, wide: list[int] | None = None) -> dict[str, Any]:
    return {
        "x": np.array([1, 0.5], np.float32),
        "limit": np.array([limit], np.float32),
        "wide": np.array(wide or [1], np.bool_),
    }


@pytest.mark.parametrize("limit", [0.5, 3.5, 99])
@pytest.mark.parametrize("condition", ["over", "above"])
@pytest.mark.parametrize("swapped", [False, True])
def test_branches_of_a_scalar_and_a_vector(limit: float, condition: str, *, swapped: bool) -> None:
    then, other = ENDED, AS_BEFORE
    if swapped:
        then = AS_BEFORE.replace("else_branch", "then_branch")
        other = ENDED.replace("then_branch", "else_branch").replace("{1}", "{0}")
    model = loop(then, other, condition=condition)
    ran = agrees(model, feed(limit))
    assert ran.fired[NAME] == 1
    assert "If" not in ran.left
    with ort.InferenceSession(model, providers=OPENVINO) as session:
        for mine, theirs in zip(
            session.run(None, feed(limit)), expected(model, feed(limit)), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)


STAYING = {
    "a result that is a state": loop(uses="go = Not(choice) ended = Identity(choice)"),
    "a result whose rank is read": loop(
        uses=USES.replace(
            "m = Add(k, none)",
            "z = Shape(choice) w = Size(z) rank = Add(w, none) o = Add(k, none) m = Add(o, rank)",
        )
    ),
    "several elements from around": loop(
        other="else_branch = e () => (bool[o] q) { q = Not(wide) }"
    ),
    "a state that becomes several elements": loop(
        uses=USES.replace("ended = Cast <to = 9> (v)", "e = Cast <to = 9> (v) ended = And(e, wide)")
    ),
    "a state of several elements": loop(done="bool[2] no = {0, 0}"),
    "a branch that may fail": loop(
        other="else_branch = e () => (bool[1] q) { q = Gather(done, none) }"
    ),
    "a branch that reads strings": loop(
        other="""else_branch = e () => (bool[1] q) {
            a = Cast <to = 8> (done) q = Cast <to = 9> (a) }"""
    ),
    "a branch with a string": loop(
        other="""else_branch = e () => (bool[1] q) {
            a = Constant <value = string[1] {"x"}> () q = Cast <to = 9> (a) }"""
    ),
    "a branch with a string of its own": loop(
        other='else_branch = e () => (bool[1] q) <string[1] a = {"x"}> { q = Cast <to = 9> (a) }'
    ),
    "a branch of many nodes": loop(
        other="else_branch = e () => (bool[1] q0) { q8 = Not(done) "
        + " ".join(f"q{n} = Not(q{n + 1})" for n in range(7, -1, -1))
        + " }"
    ),
    "numbers": loop(
        "then_branch = t () => (int64[1] p) { p = Identity(three) }",
        "else_branch = e () => (int64[1] q) { q = Cast <to = 7> (done) }",
        "u = Mul(choice, three) ended = Cast <to = 9> (u) go = Cast <to = 9> (u)",
    ),
}


@pytest.mark.parametrize("name", STAYING)
def test_it_stays_with(name: str) -> None:
    ran = agrees(STAYING[name], feed(0.5, [0, 1]))
    assert NAME not in ran.fired
    assert "If" in ran.left


def test_a_condition_of_several_elements_is_an_error_as_before() -> None:
    model = loop(condition="wide")
    with pytest.raises(OrtLiteError, match="Reshape"):
        run(model, feed(1, [1, 0]))
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        expected(model, feed(1, [1, 0]))


@pytest.mark.parametrize(("case", "count"), [(loop(), 1), (STAYING["a branch with a string"], 0)])
def test_constants_that_are_nodes(case: bytes, count: int) -> None:
    assert ifs_to_logic(read_model(memoryview(case)).graph, {"": 17})[1] == count


def test_it_is_switched_off_by_name() -> None:
    assert NAME not in run(loop(), feed(3.5), disabled=(NAME,)).fired
