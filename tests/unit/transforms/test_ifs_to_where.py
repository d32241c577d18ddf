"""Small branches are both computed where that costs less than leaving a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.transforms.transformed import expected, floats, parsed

import ort_lite as ort

NAME = "IfToWhere"
OPENVINO = "OpenVINOExecutionProvider"
ELSE = "else_branch = e () => (float[1, 3] q) { q = Identity(h) }"


WORK = " ".join(f"t{i} = Sin(u{i}) u{i + 1} = Sin(t{i})" for i in range(60))
"""So much that the default EP is slower, whatever an If takes."""


def text(then: str, otherwise: str = ELSE, *, head: str = "float[1, 3] x", before: str = "") -> str:
    """An If on whether the mean of some values is positive, between other nodes."""
    return f"""g ({head}) => (float[1, 3] z) {{
        u0 = Identity(x) {WORK} h = Tanh(u60) {before or "m = ReduceMean <keepdims = 1> (h)"}
        zero = Constant <value = float {{0}}> ()
        c = Greater(m, zero)
        y = If(c) <then_branch = t () => (float[1, 3] p) {{ {then} }}, {otherwise}>
        z = Exp(y)
    }}"""


def session(
    model: bytes, providers: list[str] | None = None, disabled: tuple[str, ...] = (), **config: str
) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in config.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    return ort.InferenceSession(
        model, options, providers=providers or [OPENVINO], disabled_optimizers=disabled
    )


def feeds(shape: tuple[int, ...] = (1, 3)) -> list[dict[str, Any]]:
    """One that takes the first branch, and one that does not."""
    value = np.abs(floats(*shape)) + np.float32(0.1)
    return [{"x": value}, {"x": -value}]


@pytest.mark.parametrize(
    ("then", "otherwise"),
    [
        ("p = Sigmoid(x)", ELSE),
        ("a = Neg(h) p = Relu(a)", ELSE),
        ("k = Constant <value = float {7}> () p = Mul(h, k)", ELSE),
        ("p = Neg(h)", "else_branch = e () => (float[1, 3] p) { p = Abs(h) }"),
        ("p = Log(x)", "else_branch = e () => (float[1, 3] q) { a = Neg(x) q = Log(a) }"),
    ],
    ids=["captured", "chain", "constant", "namesake", "nan"],
)
def test_each_run_gets_the_branch_that_its_condition_selects(then: str, otherwise: str) -> None:
    model = parsed(text(then, otherwise))
    with session(model) as mine:
        report = mine.explain()
        assert report.transforms[NAME] == 1
        assert [part.ep for part in report.partitions] == [OPENVINO]
        for feed in feeds():
            (output,) = mine.run(None, feed)
            np.testing.assert_allclose(output, expected(model, feed)[0], rtol=1e-5, atol=1e-6)


def test_several_results_are_chosen_each() -> None:
    model = parsed(
        """g (float[1, 3] x) => (float[1, 3] y, float[1, 2] w) {
        zero = Constant <value = float {0}> () u0 = Identity(x) WORK
        m = ReduceMean <keepdims = 1> (u60)
        c = Greater(m, zero)
        y, w = If(c) <
            then_branch = t () => (float[1, 3] p, float[1, 2] k) <float[1, 2] k = {4, 5}>
                { p = Neg(x) },
            else_branch = e () => (float[1, 3] p, float[1, 2] k) <float[1, 2] k = {6, 7}>
                { p = Abs(x) }>
    }""".replace("WORK", WORK)
    )
    with session(model) as mine:
        assert mine.explain().transforms[NAME] == 1
        for feed in feeds():
            for output, right in zip(mine.run(None, feed), expected(model, feed), strict=True):
                np.testing.assert_allclose(output, right, rtol=1e-6)


LARGE = " ".join(f"a{i} = MatMul(h{i}, w) h{i + 1} = Tanh(a{i})" for i in range(40))


@pytest.mark.parametrize(
    "graph",
    [
        text("a = Cast <to = 7> (h) p = Cast <to = 1> (a)"),  # of NaN and infinity it is undefined
        text("p = Sin(x)"),  # not among the operators that are known to have an answer
        text("p = Sigmoid(x)", head="float[n, 3] x"),
        text("p = Sigmoid(x)", before="m = ReduceMean <axes = [0], keepdims = 1> (h)"),
        text("p = Reshape(h, i)", head="float[1, 3] x, int64[2] i"),
        text(
            "h0 = Identity(h) " + LARGE + " p = Identity(h40)",
            before="m = ReduceMean(h) w = Constant <value = float[3, 3] {1,2,3,4,5,6,7,8,9}> ()",
        ),
    ],
    ids=["integers", "unlisted", "free", "three-conditions", "shape", "large"],
)
def test_other_ifs_stay(graph: str) -> None:
    with session(parsed(graph)) as mine:
        assert NAME not in mine.explain().transforms


def test_an_if_stays_where_the_default_provider_is_faster_with_all_of_it() -> None:
    with session(parsed(text("p = Sigmoid(x)").replace(WORK, "u60 = Sin(u0)"))) as mine:
        report = mine.explain()
        assert NAME not in report.transforms
        assert {part.ep for part in report.partitions} == {"CPUExecutionProvider"}


def test_an_if_stays_where_nothing_is_left_by_it_or_a_user_says_so() -> None:
    model = parsed(text("p = Sigmoid(x)"))
    for choice in (
        session(model, ["CPUExecutionProvider"]),
        session(model, session__placement="all"),
        session(model, disabled=(NAME,)),
    ):
        with choice as mine:
            assert NAME not in mine.explain().transforms
            for feed in feeds():
                np.testing.assert_allclose(
                    mine.run(None, feed)[0], expected(model, feed)[0], rtol=1e-5
                )
