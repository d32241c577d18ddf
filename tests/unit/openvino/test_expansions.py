"""ConstantOfShape and Expand to shapes that may contain a zero: the CPU EP computes them."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
CONSTANTS = "int64[1] four = {4}, int64[1] two = {2}, int64[1] zero = {0}, float half = {0.5}"


def model(body: str) -> bytes:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[r, 4] x, int64[1] p) => (float[m, n] y) <{CONSTANTS}> {{ {body} }}"""
    )
    return proto.SerializeToString()


def start(data: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(data, options, providers=[OPENVINO])


def nodes_of(session: ort.InferenceSession, provider: str) -> set[str]:
    parts = (part for part in session.explain().partitions if part.ep == provider)
    return {node.op_type for part in parts for node in part.nodes}


@pytest.mark.parametrize(
    "body",
    [
        "s = Concat<axis = 0>(p, four) c = ConstantOfShape(s) e = Add(c, half) "
        "t = ReduceSum<keepdims = 1>(x) y = Mul(e, t)",
        "s = Concat<axis = 0>(p, four) e = Expand(half, s) t = ReduceSum<keepdims = 1>(x) "
        "y = Mul(e, t)",
        "d = Sub(two, p) s = Concat<axis = 0>(d, four) c = ConstantOfShape(s) y = Add(c, half)",
    ],
    ids=["filled", "expanded", "difference"],
)
def test_a_computed_shape_with_a_zero_gives_no_elements(body: str) -> None:
    data = model(body)
    with start(data) as session:
        session.disable_fallback()
        assert nodes_of(session, CPU) & {"ConstantOfShape", "Expand"}
        for size in (1, 0, 2, 0):
            feed = {"x": np.ones((3, 4), np.float32), "p": np.array([size])}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            (result,) = session.run(None, feed)
            assert result.shape == right.shape
            np.testing.assert_array_equal(result, right)


@pytest.mark.parametrize(
    "body",
    [
        "s = Shape(x) c = ConstantOfShape(s) e = Add(c, half) y = Add(x, e)",
        "s = Shape(x) r = Gather(s, zero) t = Add(r, r) u = Concat<axis = 0>(t, four) "
        "e = Expand(half, u) q = Concat<axis = 0>(x, x) y = Mul(q, e)",
        "s = Shape(x) m = Mul(s, two) k = Max(m, p) e = Expand(half, k) t = ReduceSum(x) "
        "y = Mul(e, t)",
    ],
    ids=["shape", "sum", "largest"],
)
def test_shapes_without_a_zero_stay_on_openvino(body: str) -> None:
    data = model(body)
    with start(data) as session:
        assert not nodes_of(session, CPU)
        feed = {"x": np.ones((3, 4), np.float32), "p": np.array([2])}
        feed = {info.name: feed[info.name] for info in session.get_inputs()}
        (right,) = onnxruntime.InferenceSession(data).run(None, feed)
        np.testing.assert_array_equal(session.run(None, feed)[0], right)


def test_sizes_that_multiply_themselves_are_looked_at_once() -> None:
    """60 products of a value with itself, which would be 2^60 operands one by one."""
    products = "".join(f"q{i + 1} = Mul(q{i}, q{i}) " for i in range(60))
    body = f"q0 = Identity(p) {products} s = Concat<axis = 0>(q60, four) y = Expand(half, s)"
    with start(model(body)) as session:
        assert "Expand" in nodes_of(session, CPU)


def test_unique_elements_of_no_element_are_none() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[r, 4] x, int64[1] p) => (float[m] y) <int64[1] zero = {0}> {
        t = Slice(x, zero, p, zero) y = Unique(t) }"""
    )
    data = proto.SerializeToString()
    with start(data) as session:
        for size in (2, 0, 1):
            feed = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "p": np.array([size])}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            np.testing.assert_array_equal(session.run(None, feed)[0], right)


def test_a_value_without_elements_that_is_padded_is_openvinos() -> None:
    """Masks of one element less than the text, padded in front, as in Funnel transformers."""
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[3, n] x) => (float[n, n] y)
        <int64[1] one = {1}, int64[4] pads = {1, 1, 0, 0}> {
            t = Transpose<perm = [1, 0]>(x) z = MatMul(t, x) s = Shape(x)
            l = Gather(s, one) d = Sub(l, one) both = Concat<axis = 0>(d, d)
            c = ConstantOfShape<value = float[1] {1.0}>(both) p = Pad(c, pads) y = Add(z, p)
        }"""
    )
    data = proto.SerializeToString()
    with start(data) as session:
        session.disable_fallback()
        assert not nodes_of(session, CPU)
        for size in (1, 5, 1, 3, 7, 1):
            feed = {"x": np.arange(3 * size, dtype=np.float32).reshape(3, size)}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            (result,) = session.run(None, feed)
            np.testing.assert_array_equal(result, right)


def reshaped(body: str) -> bytes:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[1, 1, 4] x, int64[1] p) => (float[m, n] y)
        <int64[1] one = {{1}}, int64[1] four = {{4}}, int64[1] less = {{-1}},
         int64[3] cube = {{-1, 1, 4}}, int64[2] flat = {{-1, 4}}, float half = {{0.5}}>
        {{ s = Concat<axis = 0>(p, one, four) e = Expand(x, s) {body} }}"""
    )
    return proto.SerializeToString()


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("r = Reshape(e, flat) y = Add(r, half)", False),
        ("r = Reshape(e, flat) b = Reshape(r, cube) c = Add(b, half) y = Reshape(c, flat)", True),
        ("r = Reshape(e, cube) c = Add(r, half) y = Reshape(c, flat)", True),
    ],
    ids=["to another rank", "there and back", "to the same rank"],
)
def test_an_expansion_that_is_reshaped_has_right_elements(body: str, *, stays: bool) -> None:
    """As in Swin of free shapes: windows of an image, as many as a division says."""
    data = reshaped(body)
    with start(data) as session:
        session.disable_fallback()
        assert ("Expand" in nodes_of(session, CPU)) is stays
        for size in (2, 0, 1, 0, 3):
            feed = {"x": np.ones((1, 1, 4), np.float32), "p": np.array([size])}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            (result,) = session.run(None, feed)
            assert result.shape == right.shape
            np.testing.assert_array_equal(result, right)


def test_indices_of_as_many_ones_as_a_run_says_are_openvinos() -> None:
    """PyTorch's older arange."""
    data = model(
        "c = ConstantOfShape<value = int64[1] {1}>(p) i = NonZero(c) f = Cast<to = 1>(i) "
        "t = Transpose<perm = [1, 0]>(f) s = ReduceSum<keepdims = 0>(x) y = Mul(t, s)"
    )
    with start(data) as session:
        session.disable_fallback()
        assert not nodes_of(session, CPU)
        for size in (2, 0, 1, 0, 3):
            feed = {"x": np.ones((1, 4), np.float32), "p": np.array([size])}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            (result,) = session.run(None, feed)
            assert result.shape == right.shape
            np.testing.assert_array_equal(result, right)


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("r = Slice(c, none, two, one) y = Reshape(r, flat)", False),
        ("r = Slice(c, none, all, one) y = Add(r, half)", True),
        ("r = Slice(c, none, two, one) s2 = Shape(r) e = Expand(half, s2) y = Mul(r, e)", True),
    ],
    ids=["of a part", "of everything", "and an elementwise node"],
)
def test_a_filled_value_that_is_sliced_has_right_elements(body: str, *, stays: bool) -> None:
    """As in Longformer of free shapes: windows that are cut out of zeros."""
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (int64[1] p) => (float[m, n] y)
        <int64[1] one = {{1}}, int64[1] four = {{4}}, int64[1] none = {{0}}, int64[1] two = {{2}},
         int64[1] all = {{9223372036854775807}}, int64[1] flat = {{-1}}, float half = {{0.5}}>
        {{ s = Concat<axis = 0>(p, four) c = ConstantOfShape<value = float[1] {{2.0}}>(s)
           {body} }}"""
    )
    data = proto.SerializeToString()
    with start(data) as session:
        assert ("ConstantOfShape" in nodes_of(session, CPU)) is stays
        for size in (2, 0, 1, 0, 3):
            feed = {"p": np.array([size])}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            (result,) = session.run(None, feed)
            assert result.shape == right.shape
            np.testing.assert_array_equal(result, right)


def test_rows_are_scattered_into_as_many_as_a_run_says() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[r, 4] x, int64[1] p) => (float[m, 4] y)
        <int64[1] four = {4}, int64[1] zero = {0}, int64 none = {0}, int64 step = {1},
         int64[1] one = {1}, float half = {0.5}> {
            s = Concat<axis = 0>(p, four) c = ConstantOfShape<value = float[1] {2.0}>(s)
            n = Squeeze(p, zero) i = Range(none, n, step) k = Unsqueeze(i, one)
            u = Slice(x, zero, p, zero) t = ScatterND(c, k, u) y = Add(t, half)
        }"""
    )
    data = proto.SerializeToString()
    with start(data) as session:
        assert "ConstantOfShape" not in nodes_of(session, CPU)
        for size in (2, 0, 1, 0, 3):
            feed = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "p": np.array([size])}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            (result,) = session.run(None, feed)
            assert result.shape == right.shape
            np.testing.assert_array_equal(result, right)
