"""Loops that read only constants become constants; answers are onnxruntime's."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from unit.transforms.transformed import CPU, Ran, agrees, expected, floats, parsed, run

import ort_lite as ort
from ort_lite.planning.optimization import MAX_CONSTANT_KEY

NAME = "LoopFolding"
CONSTANTS = (
    "int64 rank = {2}, int64 i0 = {0}, int64 i1 = {1}, int64[1] minus = {-1}, int64[1] v1 = {1}, "
    "int64[1] two = {2}, int64[2] sizes = {3, 4}, int64[2] strides = {5, 2}, bool yes = {1}, "
    "int64[1] window = {12}"
)
STEP = """
    k1 = Sub(rank, i) k = Sub(k1, i1) axis = Reshape(k, minus)
    size = Gather(sizes, axis) after = Slice(sizes, axis, two) stride = Gather(strides, axis)
    wide = Expand(t, after) last = Squeeze(size) steps = Range(i0, last, i1)
    offsets = Mul(steps, stride) first = Equal(i, i0)
    shape = If(first) <
        then_branch = a () => (int64[m] sa) { sa = Identity(size) },
        else_branch = b () => (int64[m] sb) {
            ones = ConcatFromSequence <axis = 0> (seq) sb = Concat <axis = 0> (size, ones) }>
    turned = Reshape(offsets, shape) next = Add(wide, turned)
    more = SequenceInsert(seq, v1) go = Identity(on)"""
"""PyTorch's `as_strided`: one axis of indices in each iteration, the last first."""


def strided(step: str = STEP, trips: str = "rank", rest: str = "") -> str:
    """x[5 * i + 2 * j] for i < 3 and j < 4."""
    return f"""g (float[n] x, int64 late) => (float[r, s] y) <{CONSTANTS}> {{
        empty = SequenceEmpty <dtype = 7> () {rest}
        indices, rows = Loop({trips}, , i0, empty) <body = each
            (int64 i, bool on, int64 t, seq(int64[1]) seq)
            => (bool go, int64 next, seq(int64[1]) more) {{ {step} }}>
        y = Gather(x, indices) }}"""


FEED = {"x": floats(20), "late": np.array(2, np.int64)}


def test_indices_that_a_loop_makes_of_constants_are_made_once() -> None:
    ran = agrees(parsed(strided()), FEED)
    np.testing.assert_array_equal(
        ran.outputs[0], FEED["x"][5 * np.arange(3)[:, None] + 2 * np.arange(4)]
    )
    assert (ran.fired[NAME], ran.left) == (1, ["Gather"])


def test_a_loop_whose_trips_follow_from_known_sizes_is_folded() -> None:
    rest = "taken = Slice(sizes, minus, two) every = Shape(sizes) n = Squeeze(every)"
    ran = agrees(parsed(strided(trips="n", rest=rest)), FEED)
    assert (ran.fired[NAME], ran.left) == (1, ["Gather"])


def test_what_comes_of_one_loop_lets_the_next_be_folded() -> None:
    text = """g (float[2] x) => (float[2] y) <int64 two = {2}, int64 one = {1}, bool yes = {1}> {
        a = Loop(two, yes, one) <body = f (int64 i, bool on, int64 t) => (bool on, int64 u) {
            u = Add(t, two) }>
        b = Loop(a, yes, one) <body = h (int64 j, bool go, int64 v) => (bool go, int64 w) {
            w = Add(v, a) }>
        c = Cast <to = 1> (b) y = Mul(x, c) }"""
    ran = agrees(parsed(text), {"x": floats(2)})
    assert (ran.fired[NAME], ran.left) == (2, ["Mul"])


RANDOM = STEP.replace(
    "offsets = Mul(steps, stride)",
    "e = Cast <to = 1> (steps) r = RandomUniformLike <low = 0.0, high = 0.5> (e)"
    " z = Cast <to = 7> (r) q = Add(steps, z) offsets = Mul(q, stride)",
)
INNER = STEP.replace(
    "offsets = Mul(steps, stride)",
    """q = Loop(i1, , steps) <body = in (int64 l, bool m, int64[d] f) => (bool m2, int64[d] g) {
        m2 = Identity(m) g = Identity(f) }>
    offsets = Mul(q, stride)""",
)


@pytest.mark.parametrize(
    "text",
    [
        strided(trips="late"),
        strided(STEP.replace("Equal(i, i0)", "Equal(i, none)"), rest="none = Sub(late, rank)"),
        strided(RANDOM),
        strided(INNER),
    ],
    ids=["trips of an input", "a captured value", "random", "a loop inside"],
)
def test_other_loops_stay(text: str) -> None:
    assert stays(agrees(parsed(text), FEED))


def stays(ran: Ran) -> bool:
    return NAME not in ran.fired and "Loop" in ran.left


COUNTED = """g (float[2] x) => (OUTPUTS) <int64 n = {TRIPS}, float[2] w = {2, 3}, bool yes = {1}> {
    s, all = Loop(n, yes, w) <body = b (int64 i, bool on, float[2] t)
        => (bool on, float[2] u, float[SIZE] r) { u = Add(t, w) r = Expand(t, to) }>
    y = ReduceMax <keepdims = 0> (all) z = Add(x, s) }"""


def counted(trips: int = 3, size: str = "2", outputs: str = "float y, float[2] z") -> str:
    text = COUNTED.replace("TRIPS", str(trips)).replace("SIZE", f"{size}, 2")
    head = f"int64[2] to = {{{size}, 2}}, "
    return text.replace("<int64 n", f"<{head}int64 n").replace("OUTPUTS", outputs)


def test_scanned_outputs_are_folded_as_well() -> None:
    ran = agrees(parsed(counted()), {"x": floats(2)})
    assert (ran.fired[NAME], ran.left) == (1, ["ReduceMax", "Add"])


@pytest.mark.parametrize(
    "text",
    [
        counted(trips=65),
        counted(trips=64, size="40000"),
        counted(outputs="float y, float[2] z, float[2] s"),
    ],
    ids=["many trips", "20 MB", "an output of the graph"],
)
def test_what_is_long_large_or_an_output_stays(text: str) -> None:
    assert stays(agrees(parsed(text), {"x": floats(2)}))


def test_a_sequence_that_is_read_stays() -> None:
    text = strided().replace("y = Gather", "z = ConcatFromSequence <axis = 0> (rows) y = Gather")
    assert stays(agrees(parsed(text.replace("=> (float[r, s] y)", "=> (y, int64[m] z)")), FEED))


def test_constants_larger_than_the_session_allows_stay() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry(MAX_CONSTANT_KEY, "47")
    with ort.InferenceSession(parsed(counted()), options, providers=CPU) as session:
        assert NAME not in session.explain().transforms
    options.add_session_config_entry(MAX_CONSTANT_KEY, "48")
    with ort.InferenceSession(parsed(counted()), options, providers=CPU) as session:
        assert session.explain().transforms[NAME] == 1


def test_a_loop_whose_results_are_declared_otherwise_stays() -> None:
    model = onnx.load_from_string(parsed(counted()))
    model.graph.value_info.append(
        onnx.helper.make_tensor_value_info("all", onnx.TensorProto.FLOAT, [7, 2, 2])
    )
    assert NAME not in run(model.SerializeToString(), {"x": floats(2)}).fired


def test_what_a_caller_may_override_stays() -> None:
    model = onnx.load_from_string(parsed(counted()))
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [2]))
    data, feed = model.SerializeToString(), {"x": floats(2), "w": floats(2, seed=4)}
    assert stays(agrees(data, feed))
    model.ir_version = 3  # below 4 an initializer is a constant, and has to be an input
    del feed["w"]
    for tensor in model.graph.initializer:
        if tensor.name != "w":
            model.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    assert agrees(model.SerializeToString(), feed).fired[NAME] == 1


def test_a_loop_that_fails_stays_and_fails_in_the_run() -> None:
    """`Reshape` to a size that its values do not have."""
    text = strided(STEP.replace("Mul(steps, stride)", "Reshape(steps, window)"))
    with pytest.raises(ort.OrtLiteError, match="Reshape"):
        run(parsed(text), FEED)


def test_the_transformation_can_be_disabled() -> None:
    model = parsed(counted())
    ran = run(model, {"x": floats(2)}, disabled=(NAME,))
    assert stays(ran)
    for mine, theirs in zip(ran.outputs, expected(model, {"x": floats(2)}), strict=True):
        np.testing.assert_array_equal(mine, theirs)
