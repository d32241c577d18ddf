"""Functions that call themselves, or grow without bound when they are inlined, are refused."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import onnx.parser
import pytest

import ort_lite
from ort_lite.model.function_expansion import MAX_CALLS_DEEP, MAX_NODES
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = """<ir_version: 8, opset_import: ["" : 18, "l" : 1]>
g (float[2] x) => (float[2] y) { y = l.f0(x) }
"""


def session(*bodies: str) -> ort_lite.InferenceSession:
    """A model that calls the first of functions f0, f1, ... from a to b."""
    functions = "".join(
        f'<opset_import: ["" : 18, "l" : 1], domain: "l">\nf{n} (a) => (b) {{ {body} }}\n'
        for n, body in enumerate(bodies)
    )
    model = onnx.parser.parse_model(HEAD + functions).SerializeToString()
    return ort_lite.InferenceSession(model, providers=["CPUExecutionProvider"])


IN_A_BRANCH = """c = Constant<value = bool {0}>()
b = If(c) <then_branch = t () => (float[2] q) { q = l.f0(a) },
           else_branch = e () => (float[2] r) { r = Identity(a) }>"""


@pytest.mark.parametrize(
    ("bodies", "calls"),
    [
        (("b = l.f0(a)",), "l::f0 -> l::f0"),
        (("b = l.f1(a)", "b = l.f0(a)"), "l::f0 -> l::f1 -> l::f0"),
        ((IN_A_BRANCH,), "l::f0 -> l::f0"),
    ],
    ids=["itself", "each other", "in a branch"],
)
def test_functions_that_call_themselves_are_refused(bodies: tuple[str, ...], calls: str) -> None:
    with pytest.raises(InvalidGraph, match=f"functions call themselves: ... {calls}"):
        session(*bodies)


def twice(levels: int) -> list[str]:
    return [f"t = l.f{n + 1}(a) b = l.f{n + 1}(t)" for n in range(levels)] + ["b = Relu(a)"]


def test_functions_that_double_are_counted_before_they_are_inlined() -> None:
    with pytest.raises(InvalidGraph, match=f"has {1 << 60} nodes, at most {MAX_NODES} are taken"):
        session(*twice(60))
    with session(*twice(5)) as made:
        np.testing.assert_array_equal(made.run(None, {"x": np.array([-1, 2], "f")})[0], [0, 2])


def test_functions_inside_functions_go_so_deep_only() -> None:
    def chain(length: int) -> list[str]:
        return [f"b = l.f{n + 1}(a)" for n in range(length - 1)] + ["b = Relu(a)"]

    with session(*chain(MAX_CALLS_DEEP)) as made:
        assert made.run(None, {"x": np.array([-1, 2], "f")})[0].tolist() == [0, 2]
    with pytest.raises(InvalidGraph, match=f"nested over {MAX_CALLS_DEEP} deep"):
        session(*chain(MAX_CALLS_DEEP + 1))


def branches(levels: int) -> str:
    """`If` of an `If` of ... in a function's body."""
    text = "b = Relu(a)"
    for level in range(levels):
        text = f"""b = If(c) <then_branch = t{level} () => (float[2] b) {{ {text} }},
                              else_branch = e{level} () => (float[2] b) {{ b = Identity(a) }}>"""
    return f"c = Constant<value = bool {{1}}>() {text}"


def many(count: int) -> str:
    """`If` after `If` in a function's body."""
    names = ["a", *(f"t{i}" for i in range(count - 1)), "b"]
    return "c = Constant<value = bool {1}>() " + "".join(
        f"""{after} = If(c) <then_branch = t{i} () => (float[2] r{i}) {{ r{i} = Relu({name}) }},
                             else_branch = e{i} () => (float[2] i{i}) {{ i{i} = Identity({name}) }}>
        """
        for i, (name, after) in enumerate(pairwise(names))
    )


def calls_of(body: str) -> int:
    """How many functions Python calls to open a session; unlike time, the same on every machine."""
    count = 0

    def counting(*_: object) -> None:
        nonlocal count
        count += 1

    with session(body):  # what is done once for a process
        pass
    sys.setprofile(counting)
    try:
        session(body).close()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bodies", "size", "most"),
    [
        (many, 60, 4),
        # A level is looked at from each level around it; protobuf allows some thirty.
        (branches, 6, 9),
    ],
    ids=["many", "nested"],
)
def test_three_times_the_branches_in_a_function_cost_no_more_than(
    bodies: Callable[[int], str], size: int, most: int
) -> None:
    assert calls_of(bodies(3 * size)) < most * calls_of(bodies(size))


def test_a_body_with_an_attribute_without_a_name_is_refused() -> None:
    model = onnx.parser.parse_model(
        HEAD + '<opset_import: ["" : 18], domain: "l">\nf0 (a) => (b) { b = Elu<alpha = 2.0>(a) }'
    )
    model.functions[0].node[0].attribute[0].name = ""
    with pytest.raises(ort_lite.OrtLiteError):
        ort_lite.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
