"""Bodies of one partition are run without the steps around it, and answer as before."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import ort_lite
from ort_lite.planning.lone_bodies import LoneBody, choose_runnable

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER = '<ir_version: 8, opset_import: ["": 17]>\n'
X = np.arange(6, dtype=np.float32).reshape(2, 3)

SWAPPED = """main (float[2,3] x, float[n,2,3] all)
    => (float[2,3] last, float[k,2,3] sums, float[k,2,3] twice) {
    last, sums, twice = Scan <num_scan_inputs = 1, body = b (float[2,3] state, float[2,3] one)
        => (float[2,3] next, float[2,3] sum, float[2,3] double) {
        double = Add (one, one)
        sum = Add (state, one)
        next = Sub (sum, x)
    }> (x, all)
}"""
PASSED = """main (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) {
    y, z = If (c) <
        then_branch = t () => (float[2,3] p, float[2,3] q) { p = Identity (x) q = Identity (p) },
        else_branch = e () => (float[2,3] r, float[2,3] s) { r = Neg (x) s = Identity (r) }>
}"""
GROWING = """main (int64 n, float[m,500] x) => (float[p,500] whole, float[k,500] ends) {
    one = Constant <value = int64[1] {1}> ()
    zero = Constant <value = int64[1] {0}> ()
    yes = Constant <value = bool {1}> ()
    whole, ends = Loop (n, yes, x) <body = b (int64 i, bool c, float[q,500] state)
        => (bool go, float[r,500] next, float[500] end) {
        go = Identity (c)
        first = Slice (state, zero, one, zero)
        next = Concat <axis = 0> (state, first)
        top = Slice (next, zero, one, zero)
        end = Squeeze (top, zero)
    }>
}"""


def session_of(
    text: str, options: ort_lite.SessionOptions | None = None
) -> ort_lite.InferenceSession:
    """A session on the CPU EP."""
    model = onnx.parser.parse_model(HEADER + text).SerializeToString()
    return ort_lite.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def reference_answers(text: str, feed: Mapping[str, Any]) -> list[Any]:
    """The answers of onnx.reference."""
    return list(ReferenceEvaluator(onnx.parser.parse_model(HEADER + text)).run(None, dict(feed)))


FEEDS: dict[str, tuple[str, dict[str, Any]]] = {
    "outputs in another order": (SWAPPED, {"x": X, "all": np.stack([X, X * 2, X * 3])}),
    "then": (PASSED, {"x": X, "c": np.ones((), bool)}),
    "else": (PASSED, {"x": X, "c": np.zeros((), bool)}),
    "growing state": (GROWING, {"n": np.array(5), "x": np.ones((1, 500), np.float32)}),
}


@pytest.mark.parametrize("name", FEEDS)
def test_answers_are_those_of_the_reference(name: str) -> None:
    text, feed = FEEDS[name]
    session = session_of(text)
    for _ in range(2):
        answers = session.run(None, feed)
        for value, expected in zip(answers, reference_answers(text, feed), strict=True):
            np.testing.assert_array_equal(value, expected, strict=True)


@pytest.mark.parametrize("name", FEEDS)
def test_a_profile_has_the_nodes_of_bodies(name: str, tmp_path: Path) -> None:
    """A profiled run goes step by step, and gives the same."""
    text, feed = FEEDS[name]
    options = ort_lite.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = session_of(text, options)
    for value, expected in zip(session.run(None, feed), reference_answers(text, feed), strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)
    records = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    inner = {"then": "Identity", "else": "Neg", "growing state": "Concat"}.get(name, "Sub")
    assert inner in {one["args"].get("op_name") for one in records if one["cat"] == "Node"}


@pytest.mark.parametrize("name", ["then", "else"])
def test_outputs_that_pass_through_a_body_are_the_callers_own(name: str) -> None:
    text, feed = FEEDS[name]
    mine = feed["x"].copy()
    first, second = session_of(text).run(None, {**feed, "x": mine})
    second_before = second.copy()
    first += 100
    np.testing.assert_array_equal(mine, feed["x"])
    np.testing.assert_array_equal(second, second_before)


def test_parts_of_a_growing_state_do_not_keep_all_of_it() -> None:
    """Of 400 states the last has 0.8 MB, and all together have 160 MB."""
    session = session_of(GROWING)
    feed = {"n": np.array(400), "x": np.ones((1, 500), np.float32)}
    tracemalloc.start()
    try:
        whole, ends = session.run(None, feed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert whole.shape == (401, 500)
    assert ends.shape == (400, 500)
    assert peak < 16 << 20


def test_a_body_of_one_partition_is_called_directly() -> None:
    session = session_of(SWAPPED)
    (part,) = session._present().prepared.partitions
    (body,) = part.bodies.values()
    (only,) = body.partitions
    chosen = choose_runnable(body, body.graph, only.compiled, only.inputs, only.outputs)
    assert isinstance(chosen, LoneBody)


def test_a_body_without_nodes_is_run_by_the_session() -> None:
    """Its outputs are values from outside, which no partition makes."""
    text = """main (float[2,3] x, bool c) => (float[2,3] y) {
        d = Add (x, x)
        y = If (c) <
            then_branch = t () => (float[2,3] d) { },
            else_branch = e () => (float[2,3] q) { q = Neg (x) }>
    }"""
    for flag in (True, False):
        (answer,) = session_of(text).run(None, {"x": X, "c": np.array(flag)})
        np.testing.assert_array_equal(answer, X + X if flag else -X)
