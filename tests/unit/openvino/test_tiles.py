"""Tile with computed repeats: on OpenVINO where one dimension is repeated, else on the CPU EP."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
BATCH = "s = Shape <start = 0, end = 1> (x) r = Concat <axis = 0> (s, ones)"


def parse(dims: str, repeats: str, constants: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        tiles (float[n, 3] x, float[{dims}] t) => (y) <{constants}>
        {{ {repeats} y = Tile(t, r) }}"""
    )


def session(proto: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO])


@pytest.mark.parametrize(
    ("dims", "shape"),
    [("1, 4, q, q", (1, 4, 5, 5)), ("1, q, 2, 3", (1, 1, 2, 3)), ("q, 1, h, w", (2, 1, 4, 3))],
)
def test_a_table_is_repeated_for_each_of_a_batch(dims: str, shape: tuple[int, ...]) -> None:
    """As PyTorch exports repeat(batch, 1, 1, 1)."""
    proto = parse(dims, BATCH, "int64[3] ones = {1, 1, 1}")
    right = onnxruntime.InferenceSession(proto.SerializeToString())
    with session(proto) as mine:
        mine.disable_fallback()
        owners = {
            node.op_type: part.ep for part in mine.explain().partitions for node in part.nodes
        }
        assert owners["Tile"] == OPENVINO
        for count in (1, 3, 2):
            table = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            feed = {"x": np.ones((count, 3), np.float32), "t": table}
            np.testing.assert_array_equal(mine.run(None, feed)[0], right.run(None, feed)[0])


@pytest.mark.parametrize(
    ("dims", "repeats", "constants", "why"),
    [
        ("2, 3", "r = Shape(x)", "float a = {0}", "of more than one dimension"),
        (
            "q, 3",
            "s = Shape <start = 0, end = 1> (x) m = Sub(s, one) r = Concat <axis = 0> (m, one)",
            "int64[1] one = {1}",
            "may contain a zero",
        ),
    ],
)
def test_other_computed_repeats_stay_on_the_cpu_ep(
    dims: str, repeats: str, constants: str, why: str
) -> None:
    with session(parse(dims, repeats, constants)) as mine:
        assert why in str(mine.explain())
        feed = {"x": np.ones((1, 3), np.float32), "t": np.ones((2, 3), np.float32)}
        assert mine.run(None, feed)[0].ndim == 2


def test_repeats_that_double_with_each_node_do_not_fill_the_memory() -> None:
    """60 Concats of a value with itself: 2^60 repeats, of which none is counted one by one."""
    doubled = "".join(f"c{i + 1} = Concat <axis = 0> (c{i}, c{i}) " for i in range(60))
    proto = parse("q, 3", f"c0 = Shape(x) {doubled} r = Identity(c60)", "float a = {0}")
    with session(proto) as mine:
        assert "of more than one dimension" in str(mine.explain())


@pytest.mark.parametrize(
    ("dims", "repeats", "owner"),
    [("q, 1, 4", "1, 3, 1", OPENVINO), ("q, 1, h, w", "1, 2, 2, 1", "CPUExecutionProvider")],
    ids=["one dimension", "two"],
)
def test_a_single_channel_is_repeated(dims: str, repeats: str, owner: str) -> None:
    """As Timesformer repeats the token of a class for each frame."""
    rank = repeats.count(",") + 1
    proto = parse(dims, "", f"int64[{rank}] r = {{{repeats}}}")
    right = onnxruntime.InferenceSession(proto.SerializeToString())
    with session(proto) as mine:
        owners = {
            node.op_type: part.ep for part in mine.explain().partitions for node in part.nodes
        }
        assert owners["Tile"] == owner
        for shape in ((2, 1, 4, 3), (1, 1, 4, 3), (5, 1, 4, 3)):
            table = np.random.default_rng(1).random(shape[:rank], dtype=np.float32)
            feed = {"x": np.ones((1, 3), np.float32), "t": table}
            np.testing.assert_array_equal(mine.run(None, feed)[0], right.run(None, feed)[0])


def of_heads(rest: str, heads: int) -> onnx.ModelProto:
    """A table for each of a batch, which is counted as the rows of all heads by their number."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        tiles (float[n, s, 8] x, float[1, 4, 5] t) => (y)
        <int64[1] i0 = {{0}}, int64[1] i1 = {{1}}, int64[1] i2 = {{2}}, int64[1] four = {{4}},
         int64[1] two = {{2}}, int64[1] last = {{-1}}, int64[1] count = {{{heads}}}>
        {{
            xs = Shape(x) n = Gather(xs, i0) s = Gather(xs, i1)
            f = Concat <axis = 0> (n, s, four, two)
            r = Reshape(x, f) h = Transpose <perm = [0, 2, 1, 3]> (r) hs = Shape(h)
            l = Gather(hs, i2) g = Concat <axis = 0> (last, {rest}) a = Reshape(h, g)
            rows = Shape <start = 0, end = 1> (a) b = Div(rows, count)
            k = Concat <axis = 0> (b, i1, i1) y = Tile(t, k)
        }}"""
    )


@pytest.mark.parametrize(
    ("rest", "heads", "owner"),
    [
        ("l, two", 4, OPENVINO),
        ("s, two", 2, OPENVINO),
        ("l, two", 8, "CPUExecutionProvider"),
        ("l, i1", 5, OPENVINO),
        ("l, i1", 9, "CPUExecutionProvider"),
        ("l, four", 4, "CPUExecutionProvider"),
    ],
    ids=["batch", "twice the batch", "may be none", "more rows", "too few of them", "other sizes"],
)
def test_a_table_is_repeated_as_often_as_heads_are_in_all_rows(
    rest: str, heads: int, owner: str
) -> None:
    """As DeBERTa repeats the projections of its positions."""
    proto = of_heads(rest, heads)
    right = onnxruntime.InferenceSession(proto.SerializeToString())
    with session(proto) as mine:
        owners = {
            node.op_type: part.ep for part in mine.explain().partitions for node in part.nodes
        }
        assert owners["Expand"] == owner  # what TileToExpand makes of it
        for batch in (1, 3, 2):
            table = np.random.default_rng(batch).random((1, 4, 5), dtype=np.float32)
            feed = {"x": np.ones((batch, 6, 8), np.float32), "t": table}
            np.testing.assert_array_equal(mine.run(None, feed)[0], right.run(None, feed)[0])
