"""Branches and bodies of loops that use names and counts wrongly."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from attacks.on_models import X, case, info, model

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

TRUE = numpy_helper.from_array(np.array(1, np.bool_))


def branch(
    name: str, uses: str, out: str, weights: Sequence[onnx.TensorProto] = ()
) -> onnx.GraphProto:
    return helper.make_graph(
        [helper.make_node("Relu", [uses], [out])], name, [], [info(out)], list(weights)
    )


def if_model(then: onnx.GraphProto, other: onnx.GraphProto) -> onnx.ModelProto:
    return model(
        [
            helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0),
            helper.make_node("Greater", ["t", "z"], ["c"]),
            helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ],
        weights=[numpy_helper.from_array(np.array(0, np.float32), "z")],
    )


case(
    "branch captures what comes later",
    lambda: model(
        [
            helper.make_node("Constant", [], ["c"], value=TRUE),
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch("t", "later", "t_y"),
                else_branch=branch("e", "x", "e_y"),
            ),
            helper.make_node("Neg", ["y"], ["later"]),
        ],
        weights=[],
    ),
)
case(
    "branch captures what is nowhere",
    lambda: if_model(branch("t", "nosuch", "a"), branch("e", "x", "b")),
)
case(
    "branch uses the other branch's value",
    lambda: if_model(branch("t", "x", "a"), branch("e", "a", "b")),
)
case(
    "branch shadows an outer value",
    lambda: if_model(branch("t", "x", "t"), branch("e", "x", "b")),
    np.maximum(X, 0),
)
case(
    "branch shadows an outer input",
    lambda: if_model(branch("t", "t", "x"), branch("e", "x", "b")),
    np.float32(9),
)
case(
    "branches make the same name",
    lambda: if_model(branch("t", "x", "a"), branch("e", "x", "a")),
    np.maximum(X, 0),
)
case(
    "branch with an input",
    lambda: if_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["a"])], "t", [info("q")], [info("a")]),
        branch("e", "x", "b"),
    ),
)
case(
    "branch without outputs",
    lambda: if_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["a"])], "t", [], []),
        branch("e", "x", "b"),
    ),
)
case(
    "branches of different counts",
    lambda: if_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["a"])], "t", [], [info("a"), info("a")]
        ),
        branch("e", "x", "b"),
    ),
)
case(
    "If without a branch",
    lambda: model(
        [
            helper.make_node("Constant", [], ["c"], value=TRUE),
            helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "x", "a")),
        ],
        weights=[],
    ),
)
case(
    "condition of two elements",
    lambda: model(
        [
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch("t", "x", "a"),
                else_branch=branch("e", "x", "b"),
            )
        ],
        weights=[numpy_helper.from_array(np.array([True, False]), "c")],
    ),
)
case(
    "condition is not a bool",
    lambda: model(
        [
            helper.make_node(
                "If",
                ["x"],
                ["y"],
                then_branch=branch("t", "x", "a"),
                else_branch=branch("e", "x", "b"),
            )
        ],
        weights=[],
    ),
)
case(
    "initializer of a branch shadows",
    lambda: if_model(
        branch("t", "w", "a", [numpy_helper.from_array(X, "w")]),
        branch("e", "w", "b", [numpy_helper.from_array(-X, "w")]),
    ),
    np.maximum(X, 0),
)


def deep(levels: int) -> onnx.ModelProto:
    inner = branch("t0", "x", "v0")
    for level in range(1, levels):
        graph = helper.make_graph(
            [
                helper.make_node(
                    "If",
                    ["c"],
                    [f"v{level}"],
                    then_branch=inner,
                    else_branch=branch(f"e{level}", "x", f"w{level}"),
                )
            ],
            f"t{level}",
            [],
            [info(f"v{level}")],
        )
        inner = graph
    return model(
        [
            helper.make_node("Constant", [], ["c"], value=TRUE),
            helper.make_node(
                "If", ["c"], ["y"], then_branch=inner, else_branch=branch("e", "x", "z")
            ),
        ],
        weights=[],
    )


case("branches 8 deep", partial(deep, 8), np.maximum(X, 0))
case("branches 30 deep", partial(deep, 30), np.maximum(X, 0))


def loop(trips: int, *, condition: bool, body_condition: str = "c_in") -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", [body_condition], ["c_out"]),
            helper.make_node("Add", ["v", "x"], ["v_out"]),
        ],
        "body",
        [info("i", (), TensorProto.INT64), info("c_in", (), TensorProto.BOOL), info("v")],
        [info("c_out", (), TensorProto.BOOL), info("v_out")],
    )
    return model(
        [helper.make_node("Loop", ["m", "c", "x"], ["y"], body=body)],
        weights=[
            numpy_helper.from_array(np.array(trips, np.int64), "m"),
            numpy_helper.from_array(np.array(condition), "c"),
        ],
    )


case("Loop of 3 trips", lambda: loop(3, condition=True), X * 4)
case("Loop of no trips", lambda: loop(0, condition=True), X)
case("Loop of -5 trips", lambda: loop(-5, condition=True), X)
case("Loop that begins false", lambda: loop(3, condition=False), X)
