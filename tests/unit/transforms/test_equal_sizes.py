"""Ifs that compare sizes which are equal in every run; answers are onnxruntime's."""

from __future__ import annotations

import pytest
from unit.transforms.transformed import Ran, Values, agrees, floats, parsed

NAME = "EqualSizes"
CONSTANTS = (
    "int64 i1 = {1}, int64[1] v0 = {0}, int64[1] v1 = {1}, int64[1] v2 = {2}, int64[1] v3 = {3}, "
    "int64[1] last = {-1}, int64[1] back = {-2}, int64[1] four = {4}, float[8, 8] w = {WEIGHTS}, "
    "float[8] bias = {1, 2, 3, 4, 5, 6, 7, 8}"
).replace("WEIGHTS", ", ".join(str(n % 5 - 2) for n in range(64)))
IF = """ d = Not(c) y = If(d) <
    then_branch = t () => (o1) { o1 = Unsqueeze(q, v0) },
    else_branch = e () => (o2) { o2 = Neg(q) }>"""
"""A condition that is false where the sizes are equal; the branches differ in rank."""


def heads(name: str, source: str) -> str:
    """`source`, [n, s, 8], by heads, as PyTorch exports view(n, s, 4, -1) and its permutation."""
    return f"""
        {name}m = MatMul({source}, w) {name}p = Add({name}m, bias)
        {name}s = Shape({name}p) {name}n = Gather({name}s, v0) {name}l = Gather({name}s, v1)
        {name}f = Concat <axis = 0> ({name}n, {name}l, four, last)
        {name}r = Reshape({name}p, {name}f) {name}t = Transpose <perm = [0, 2, 1, 3]> ({name}r)
        {name}z = Shape({name}t) {name}u = Gather({name}z, v2) {name}d = Gather({name}z, v3)
        {name}g = Concat <axis = 0> (last, {name}u, {name}d) {name} = Reshape({name}t, {name}g)
    """


def length(name: str, source: str) -> str:
    """The size of the last axis but one, as size(-2)."""
    return f"""{name}a = Shape({source}) {name}b = Slice({name}a, back, last, v0)
        {name} = Squeeze({name}b, v0) """


def compared(body: str, feed: Values, inputs: str = "float[n, s, 8] x") -> Ran:
    return agrees(parsed(f"g ({inputs}) => (y) <{CONSTANTS}> {{ {body} {IF} }}"), feed, 1e-5)


X = {"x": floats(2, 3, 8)}
QUERIES_AND_KEYS = heads("q", "x") + heads("k", "x") + length("a", "q") + length("b", "k")


def test_as_many_queries_as_keys_of_any_length() -> None:
    """As DeBERTa's attention asks before it computes positions."""
    ran = compared(QUERIES_AND_KEYS + "c = Equal(a, b)", X)
    assert (ran.fired[NAME], ran.fired["IfInlining"], "If" in ran.left) == (1, 1, False)


@pytest.mark.parametrize(
    "body",
    [
        "r = Relu(x) q = Slice(r, v0, four, v2) k = Slice(x, v2, four, v2)",
        "q, k = Split <axis = 2> (x)",
        "r = Transpose <perm = [2, 1, 0]> (x) q = Relu(r) k = Add(x, bias)",
        "e = Exp(x) q = Cast <to = 11> (e) k = Mul(x, x)",
    ],
    ids=["Slice", "Split", "Transpose", "Cast"],
)
def test_sizes_are_followed_through(body: str) -> None:
    ran = compared(body + " " + length("a", "q") + length("b", "k") + "c = Equal(a, b)", X)
    assert (ran.fired.get(NAME), "If" in ran.left) == (1, False)


@pytest.mark.parametrize("lengths", [(3, 3), (3, 4)])
def test_lengths_of_two_inputs_may_differ_even_under_one_name(lengths: tuple[int, int]) -> None:
    feed = {"x": floats(2, lengths[0], 8), "z": floats(2, lengths[1], 8)}
    body = heads("q", "x") + heads("k", "z") + length("a", "q") + length("b", "k")
    inputs = "float[n, s, 8] x, float[n, s, 8] z"
    ran = compared(body + "c = Equal(a, b)", feed, inputs)
    assert (NAME in ran.fired, "If" in ran.left) == (False, True)


@pytest.mark.parametrize(("axes", "rows"), [((1, 2), 3), ((1, 2), 8), ((0, 1), 3), ((0, 1), 2)])
def test_other_sizes_are_left_to_the_run(axes: tuple[int, int], rows: int) -> None:
    """Of different axes, whether they are equal in this run or not."""
    body = f"""q = Exp(x) sa = Shape(q) a = Gather(sa, v{axes[0]}) b = Gather(sa, v{axes[1]})
        c0 = Equal(a, b) c = Squeeze(c0) """
    ran = compared(body, {"x": floats(2, rows, 8)})
    assert (NAME in ran.fired, "If" in ran.left) == (False, True)


def test_a_second_if_behind_the_first_comes_out_too() -> None:
    """Its sizes are those of a result of the first, of any rank until then."""
    body = f"""
        {QUERIES_AND_KEYS} c = Equal(a, b) {IF.replace("y = If", "h = If")}
        {length("e", "h")} {length("f", "q")} cc = Equal(e, f) dd = Not(cc)
        y = If(dd) <then_branch = t2 () => (o3) {{ o3 = Exp(h) }},
                    else_branch = e2 () => (o4) {{ o4 = Abs(h) }}>"""
    ran = agrees(parsed(f"g (float[n, s, 8] x) => (y) <{CONSTANTS}> {{ {body} }}"), X, 1e-5)
    assert (ran.fired[NAME], ran.fired["IfInlining"], "If" in ran.left) == (2, 2, False)


def test_a_comparison_that_no_if_reads_stays() -> None:
    text = f"""g (float[n, s, 8] x) => (c) <{CONSTANTS}> {{
        q = Exp(x) {length("a", "x")} {length("b", "q")} c = Equal(a, b) }}"""
    ran = agrees(parsed(text), X)
    assert (NAME in ran.fired, "Equal" in ran.left) == (False, True)
    assert ran.outputs[0].tolist() is True


def test_sizes_of_quantised_values_are_those_of_the_values() -> None:
    """As quantize_static leaves them between a projection and the heads."""
    body = (
        """r = Relu(x) p = QuantizeLinear(r, sc, zp) q = DequantizeLinear(p, sc, zp) k = Exp(r)"""
    )
    text = f"""g (float[n, s, 8] x) => (y) <{CONSTANTS}, float sc = {{0.5}}, uint8 zp = {{3}}> {{
        {body} {length("a", "q")} {length("b", "k")} c = Equal(a, b) {IF} }}"""
    ran = agrees(parsed(text), X)
    assert (ran.fired.get(NAME), "If" in ran.left) == (1, False)


SQUEEZED = """
    p = MatMul(x, w)
    full = Shape(p) rank = Shape(full) a0 = Mod(last, rank) end = Add(a0, v1)
    head = Slice(full, v0, a0) tail = Slice(full, end, rank)
    sizes = Concat <axis = 0> (head, four, v2, v1) r = Reshape(p, sizes)
    {between} s = Shape(m) g = Gather(s, last) c = Equal(g, v1)
    h = If(c) <then_branch = t () => (o1) {{ o1 = Squeeze(m, last) }},
               else_branch = e () => (o2) {{ o2 = Identity(m) }}>
    y = Neg(h)"""
"""`unflatten` and `squeeze` as PyTorch exports them: the rank hangs on a size."""


@pytest.mark.parametrize(
    ("between", "shape"),
    [
        ("m = Exp(r)", (2, 4, 2)),
        ("m = Transpose <perm = [0, 1, 3, 2]> (r)", (2, 4, 1, 2)),
    ],
    ids=["one", "another size"],
)
def test_a_squeeze_that_asks_for_the_size_is_settled(between: str, shape: tuple[int, ...]) -> None:
    """As in torch.nn.MultiheadAttention, whatever the other sizes are."""
    body = SQUEEZED.format(between=between)
    model = parsed(f"g (float[n, 8] x) => (y) <{CONSTANTS}> {{ {body} }}")
    ran = agrees(model, {"x": floats(2, 8)}, 1e-5)
    assert ran.outputs[0].shape == shape
    assert (ran.fired.get(NAME), ran.fired.get("IfInlining"), "If" in ran.left) == (1, 1, False)
