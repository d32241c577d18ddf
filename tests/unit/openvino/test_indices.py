"""Indices that OpenVINO would not check: constants are looked at, others checked as it runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort
from eps.openvino.support.offer import capability
from eps.openvino.support.table import load_table
from ort_lite.ep import GraphView
from ort_lite.model import loader

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def session(op: str, indices: np.ndarray, *, constant: bool, **attributes: Any) -> Any:
    infos = [helper.make_tensor_value_info("x", 1, [3, 2])]
    constants = []
    if constant:
        constants.append(numpy_helper.from_array(indices, "i"))
    else:
        infos.append(helper.make_tensor_value_info("i", 7, indices.shape))
    node = helper.make_node(op, ["x", "i"], ["z"], **attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="z")], constants)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    data = onnx.shape_inference.infer_shapes(model).SerializeToString()
    return ort.InferenceSession(data, providers=[OPENVINO])


def feed(indices: np.ndarray, *, constant: bool) -> dict[str, np.ndarray]:
    return {"x": X} if constant else {"x": X, "i": indices}


@pytest.mark.parametrize(
    ("op", "indices", "constant"),
    [
        ("Gather", np.array([0, -3]), True),
        ("Gather", np.array([0, 2]), False),
        ("GatherND", np.array([[2, 1], [-3, 0]]), True),
    ],
    ids=["constant", "at run time", "tuples"],
)
def test_indices_in_range_are_openvino_s(op: str, indices: np.ndarray, constant: Any) -> None:
    with session(op, indices, constant=constant) as made:
        assert made.explain().node_counts() == {OPENVINO: 1}
        (found,) = made.run(None, feed(indices, constant=constant))
    wanted = X[indices] if op == "Gather" else X[tuple(indices.T)]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("op", "indices", "constant"),
    [
        ("Gather", np.array([0, 7]), True),
        ("Gather", np.array([-4]), True),
        ("GatherND", np.array([[3]]), True),
        ("GatherND", np.array([[0, 1 << 30]]), True),
    ],
    ids=["beyond", "before", "tuple beyond", "far beyond"],
)
def test_indices_that_may_be_out_of_range_are_refused_by_the_cpu_ep(
    op: str, indices: np.ndarray, constant: Any
) -> None:
    with session(op, indices, constant=constant) as made:
        assert made.explain().node_counts() == {CPU: 1}
        with pytest.raises(ort.RuntimeException, match="indices element out of data bounds"):
            made.run(None, feed(indices, constant=constant))


MASKED = """<ir_version: 8, opset_import: ["" : {opset}]>
g (float[{data}] x, bool[{mask}] k) => (float[{result}] z) {{
  p = NonZero(k) u = Transpose <perm = [1, 0]> (p) z = GatherND(x, u) }}"""
TUPLES = """<ir_version: 8, opset_import: ["" : {opset}]>
g (float[n, m, l] x, int64[{indices}] i) => (float[{result}] z) {{
  z = GatherND{batches}(x, i) }}"""


@contextmanager
def on_openvino(text: str) -> Iterator[Any]:
    """A session whose nodes are all OpenVINO's, and where they run to the end."""
    model = onnx.parser.parse_model(text).SerializeToString()
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as made:
        assert set(made.explain().node_counts()) == {OPENVINO}
        yield made


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21])
@pytest.mark.parametrize(
    ("data", "mask"),
    [("n, m", "n, m"), ("2, 3", "2, 3"), ("n, m, 4", "n, m"), ("5, 3, 4", "2, 3"), ("n", "k")],
)
def test_places_of_a_mask_are_gathered_on_openvino(data: str, mask: str, opset: int) -> None:
    result = ", ".join("abc"[: 1 + data.count(",") - mask.count(",")])
    rng = np.random.default_rng(opset)
    sizes = {"n": 2, "m": 3, "k": 2}
    shape, held = (
        [sizes.get(size) or int(size) for size in text.split(", ")] for text in (data, mask)
    )
    x = rng.normal(size=shape).astype(np.float32)
    text = MASKED.format(opset=opset, data=data, mask=mask, result=result)
    with on_openvino(text) as made:
        for share in (0.0, 0.5, 1.0):
            k = rng.random(held) < share
            (found,) = made.run(None, {"x": x, "k": k})
            np.testing.assert_array_equal(found, x[tuple(np.nonzero(k))])
        assert set(made.explain().node_counts()) == {OPENVINO}


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize(
    ("indices", "result", "batches"),
    [("a, 3", "a", 0), ("a, b, 2", "a, b, l", 0), ("3", "", 0), ("n, a, 1", "n, a, l", 1)],
    ids=["elements", "rows", "one element", "a batch"],
)
def test_every_index_in_range_is_taken_and_every_other_one_refused(
    indices: str, result: str, batches: int, opset: int
) -> None:
    text = TUPLES.format(
        opset=opset, indices=indices, result=result, batches=f" <batch_dims = {batches}> "
    )
    model = onnx.parser.parse_model(text)
    shape, rng = (2, 3, 4), np.random.default_rng(5)
    x = rng.normal(size=shape).astype(np.float32)
    sizes = {"a": 5, "b": 3, "n": 2}
    held = [sizes.get(size) or int(size) for size in indices.split(", ")]
    picked = shape[batches : batches + held[-1]]
    with on_openvino(text) as made:
        for _ in range(5):
            i = rng.integers([-size for size in picked], picked, held)
            wanted = ReferenceEvaluator(model).run(None, {"x": x, "i": i})
            np.testing.assert_array_equal(made.run(None, {"x": x, "i": i})[0], wanted[0])
        assert set(made.explain().node_counts()) == {OPENVINO}
    for axis, size in enumerate(picked):
        for wrong in (size, -size - 1, (1 << 31) - 1, -(1 << 31)):
            i = np.zeros(held, np.int64)
            i[(*(length - 1 for length in held[:-1]), axis)] = wrong
            with (
                on_openvino(text) as made,
                pytest.warns(UserWarning, match="GatherElements"),
                pytest.raises(ort.RuntimeException, match=f"idx={wrong} must be within"),
            ):
                made.run(None, {"x": x, "i": i})


def test_an_axis_may_have_more_elements_than_float32_counts() -> None:
    """The plug-in computes with float32 there, where both indices are the same number."""
    last = 1 << 24
    x = np.zeros((last + 1, 1, 1), np.float32)
    x[-1] = 7
    text = TUPLES.format(opset=17, indices="1", result="a, b", batches="")
    with on_openvino(text) as made:
        with pytest.warns(UserWarning, match="goes on with"):
            assert made.run(None, {"x": x, "i": np.array([last])})[0] == 7
        with pytest.raises(ort.RuntimeException, match=f"idx={last + 1} must be within"):
            made.run(None, {"x": x, "i": np.array([last + 1])})


def test_the_ends_of_a_long_axis_are_openvino_s() -> None:
    size = 1 << 21
    x = np.zeros((size, 1, 1), np.float32)
    x[0], x[-1] = 3, 7
    text = TUPLES.format(opset=17, indices="a, 1", result="a, b, c", batches="")
    with on_openvino(text) as made:
        (found,) = made.run(None, {"x": x, "i": np.array([[size - 1], [-size], [0], [-1]])})
        np.testing.assert_array_equal(found.ravel(), [7, 3, 3, 7])
        assert set(made.explain().node_counts()) == {OPENVINO}


@pytest.mark.parametrize("constant", [True, False])
def test_tuples_of_nothing_are_not_openvino_s(*, constant: bool) -> None:
    indices = np.zeros((2, 0), np.int64)
    with session("GatherND", indices, constant=constant) as made:
        assert made.explain().node_counts() == {CPU: 1}


def test_a_declared_shape_of_a_mask_is_not_relied_on() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n] x, int64[1] s, float[2] w) => (float[r] z) <bool[2] k, float[2] t> {
      t = Reshape(x, s) k = Cast <to = 9> (t) p = NonZero(k) u = Transpose <perm = [1, 0]> (p)
      z = GatherND(w, u) }"""
    feeds = {"x": np.ones(100_000, np.float32), "s": np.array([100_000])}
    with (
        on_openvino(text) as made,
        pytest.warns(UserWarning, match="GatherElements"),
        pytest.raises(ort.RuntimeException, match="idx=99999 must be within"),
    ):
        made.run(None, feeds | {"w": np.ones(2, np.float32)})


def test_indices_that_follow_from_shapes_are_openvino_s() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 2] x) => (float[k, 2] z) <int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}> {
      s = Shape <end = 1> (x) n = Squeeze(s) r = Range(zero, n, one) i = Unsqueeze(r, last)
      z = GatherND(x, i)
    }"""
    model = onnx.parser.parse_model(text).SerializeToString()
    with ort.InferenceSession(model, providers=[OPENVINO]) as made:
        assert made.explain().node_counts().get(CPU) is None
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], X)


@pytest.mark.parametrize(("exact", "refused"), [(True, 0), (False, 1)], ids=["CPU", "GPU"])
def test_indices_are_checked_on_cpus_alone(*, exact: bool, refused: int) -> None:
    text = MASKED.format(opset=17, data="n", mask="n", result="m")
    model = onnx.parser.parse_model(text).SerializeToString()
    graph = loader.resolve(loader.load(model, ort.SessionOptions()).model, {})
    view = GraphView(graph, frozenset(range(len(graph.nodes))))
    found = capability(view, load_table("2026.4.1"), exact=exact).refused
    assert [reason for reason in found.values() if "not checked" in reason] == (
        ["OpenVINO: indices are not checked; one may be out of range and read beyond the tensor"]
        * refused
    )


def test_a_batch_of_tuples_is_looked_at_behind_its_batch() -> None:
    indices = np.array([[1], [0], [-2]])
    with session("GatherND", indices, constant=True, batch_dims=1) as made:
        assert made.explain().node_counts() == {OPENVINO: 1}
        (found,) = made.run(None, {"x": X})
    np.testing.assert_array_equal(found, [1, 2, 4])
