"""Contexts of models in which nothing may be selected: they answer as onnxruntime does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort
from ctx_formats.model_reader import read_model
from ort_lite.model.loader import resolve
from ort_lite.planning.data_sizes import may_be_empty_inside, values_by_selection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPENVINO = "OpenVINOExecutionProvider"
DEFAULT = "CPUExecutionProvider"
PROVIDERS = [OPENVINO, "OpenCLExecutionProvider"]

BOXES = """
    selected = NonMaxSuppression(boxes, scores, most, overlap, threshold)
    column = Gather <axis = 1> (selected, two)
    index = Squeeze(column, one)
    rows = Reshape(boxes, by_four)
    found = Gather <axis = 0> (rows, index)
"""
"""The boxes [n, 4] whose score is above 0.5; n depends on the data."""


def detector(end: str, *outputs: str) -> onnx.ModelProto:
    """A model of boxes [1, 6, 4] and scores [1, 1, 6], to `outputs` made by `end` from `found`."""
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        detector (float[1, 6, 4] boxes, float[1, 1, 6] scores) => ({", ".join(outputs)})
        <int64 most = {{5}}, float overlap = {{0.5}}, float threshold = {{0.5}},
         int64[1] one = {{1}}, int64[1] two = {{2}}, int64[2] by_four = {{-1, 4}},
         float[4, 2] weights = {{1, 2, 3, 4, 5, 6, 7, 8}}>
        {{ {BOXES} {end} }}"""
    )
    for info in proto.graph.output:
        info.type.tensor_type.ClearField("shape")
    return proto


def feed(best: float) -> dict[str, np.ndarray]:
    """Six boxes that do not overlap, of scores from 0.2 `best` to `best`."""
    corners = np.arange(6, dtype=np.float32).reshape(6, 1) * 2
    boxes = np.concatenate([corners, corners, corners + 1, corners + 1], axis=1)
    scores = np.linspace(0.2, 1, 6, dtype=np.float32) * np.float32(best)
    return {"boxes": boxes[None], "scores": scores[None, None]}


def answer(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    outputs: list[Any] = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    return outputs


def assert_right(session: ort.InferenceSession, proto: onnx.ModelProto) -> None:
    session.disable_fallback()
    for best in (1.0, 0.4, 0.8):  # 3 boxes, none, 2
        outputs, right = session.run(None, feed(best)), answer(proto, feed(best))
        for output, expected in zip(outputs, right, strict=True):
            assert (output.shape, output.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(output, expected, rtol=1e-5)


def context_of(proto: onnx.ModelProto, provider: str, folder: Path) -> Path:
    path = folder / "detector_ctx.onnx"
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(path))
    ort.InferenceSession(proto.SerializeToString(), options, providers=[provider]).close()
    return path


def compiled_by_api(proto: onnx.ModelProto, provider: str, folder: Path) -> Path:
    options = ort.SessionOptions()
    options.add_provider(provider, {})
    path = folder / "detector_ctx.onnx"
    ort.ModelCompiler(options, proto.SerializeToString()).compile_to_file(str(path))
    return path


SUMS = "y = MatMul(found, weights) total = ReduceSum(found) root = Sqrt(total) size = Shape(found)"
"""An output with elements where there are no boxes."""


@pytest.mark.parametrize("make", [context_of, compiled_by_api])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_context_answers_where_nothing_is_selected(
    make: Callable[[onnx.ModelProto, str, Path], Path], provider: str, tmp_path: Path
) -> None:
    proto = detector(SUMS, "float y", "float root", "int64 size")
    with ort.InferenceSession(make(proto, provider, tmp_path), providers=[provider]) as session:
        assert_right(session, proto)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_start_from_the_cache_answers_where_nothing_is_selected(
    provider: str, tmp_path: Path
) -> None:
    proto = detector(SUMS, "float y", "float root", "int64 size")
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))
    for _ in range(2):
        with ort.InferenceSession(
            proto.SerializeToString(), options, providers=[provider]
        ) as session:
            assert_right(session, proto)
            cache = session.load_report().cache
    assert cache is not None
    assert cache.state == "hit"


def test_a_context_keeps_what_follows_from_names(tmp_path: Path) -> None:
    """Without boxes, n of the product [n, 2] is the n of the boxes: 0."""
    text = "product = MatMul(found, weights) text = Cast <to = 8> (product)"
    proto = detector(f"{text} y = Cast <to = 1> (text)", "float y")
    path = context_of(proto, OPENVINO, tmp_path)
    with ort.InferenceSession(path, providers=[OPENVINO]) as session:
        assert_right(session, proto)
        origins = {part.origin: part.ep for part in session.explain().partitions}
    assert origins["context"] == OPENVINO
    operators = [node.op_type for node in onnx.load(path).graph.node]
    assert set(operators) == {"NonMaxSuppression", "EPContext", "Cast"}


BEGINNING = {
    "a constant": "",
    "a selection": "nothing = NonZero(flags) rows = Transpose <perm = [1, 0]> (nothing) "
    "start = Cast <to = 1> (rows)",
}
"""Nodes that make a Loop's first state, which has no elements."""


@pytest.mark.parametrize("first", BEGINNING)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_context_answers_where_a_state_begins_without_elements(
    provider: str, first: str, tmp_path: Path
) -> None:
    """As the keypoints of a detector, which a Loop appends to each other."""
    start = "" if BEGINNING[first] else "float[0, 1] start = {},"
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        appending (int64 trips, float[1, 1] x, float[2] flags) => (float[n, 1] y)
        <{start} bool go = {{1}}>
        {{
            {BEGINNING[first]}
            y = Loop(trips, go, start) <body = body (
                int64 i, bool on, float[k, 1] state
            ) => (bool still, float[j, 1] next) {{
                still = Identity(on)
                sum = ReduceSum(state)
                row = Add(sum, x)
                next = Concat <axis = 0> (state, row)
            }}>
        }}"""
    )
    with ort.InferenceSession(context_of(proto, provider, tmp_path), providers=[provider]) as s:
        s.disable_fallback()
        for trips in (3, 0, 2):
            inputs = {
                "trips": np.array(trips),
                "x": np.ones((1, 1), np.float32),
                "flags": np.zeros(2, np.float32),
            }
            (expected,) = answer(proto, inputs)
            np.testing.assert_array_equal(s.run(None, inputs)[0], expected)


def test_a_plain_session_leaves_the_nodes_where_they_are() -> None:
    proto = detector(SUMS, "float y", "float root", "int64 size")
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO]) as session:
        assert_right(session, proto)
        own = [part for part in session.explain().partitions if part.ep == DEFAULT]
    assert [node.op_type for part in own for node in part.nodes] == ["NonMaxSuppression"]


def test_the_reason_names_the_value(tmp_path: Path) -> None:
    proto = detector(SUMS, "float y", "float root", "int64 size")
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "detector_ctx.onnx"))
    with ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO]) as session:
        text = str(session.explain())
    assert "'selected' has no elements where nothing is selected" in text


@pytest.mark.parametrize(
    ("body", "selected"),
    [
        ("i = NonZero(x) y = Cast<to = 1>(i)", {"i", "y"}),
        ("i = NonZero(x) s = Shape(i) y = Cast<to = 1>(s)", {"i"}),
        ("c = Cast<to = 9>(x) z = Compress(x, c) y = ReduceSum<keepdims = 0>(z)", {"z"}),
        (
            "i = NonZero(x) t = Transpose(i) g = GatherND(x, t) e = Exp(g) y = ScatterND(x, t, e)",
            {"i", "t", "g", "e"},
        ),
        ("s = Shape(x) d = Sub(s, s) e = Expand(x, d) y = Exp(e)", {"e", "y"}),
        ("s = Shape(x) e = Expand(x, s) y = Exp(e)", set()),
        ("y = Relu(x)", set()),
    ],
)
def test_values_whose_size_the_data_decides_are_followed(body: str, selected: set[str]) -> None:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        few (float[m] x) => (float y) {{ {body} }}"""
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    graph = resolve(read_model(memoryview(proto.SerializeToString())), {})
    assert values_by_selection(graph) == selected


def test_a_run_without_boxes_takes_no_other_node_along() -> None:
    """What does not depend on the boxes is in a partition of its own, which every run computes."""
    proto = detector(f"{SUMS} flat = Reshape(boxes, by_four) other = Gemm(flat, weights)")
    outputs = [("y", None), ("root", None), ("size", None), ("other", [6, 2])]
    for name, shape in outputs:
        kind = onnx.TensorProto.INT64 if name == "size" else onnx.TensorProto.FLOAT
        proto.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(proto.SerializeToString(), options, providers=[OPENVINO]) as session:
        assert_right(session, proto)
        parts = [
            {node.op_type for node in part.nodes}
            for part in session.explain().partitions
            if part.ep == OPENVINO
        ]
    assert {"Reshape", "Gemm"} in parts


@pytest.mark.parametrize(
    ("body", "first", "is_empty"),
    [
        ("t = Add(s, x)", "x", False),
        (
            "a = NonZero(s) b = Shape(a) d = Cast <to = 1> (b) e = ReduceSum(d) t = Add(s, e)",
            "x",
            True,
        ),
        ("t = Concat <axis = 0> (s, x)", "nothing", True),
        (
            "z = Constant <value_ints = [0]> () a = Slice(x, z, z) t = Concat <axis = 0> (a, x)",
            "x",
            True,
        ),
        (
            "t = If(c) <then_branch = p () => (float[2, 3] q) { a = NonZero(s) b = Shape(a) "
            "d = Cast <to = 1> (b) e = ReduceSum(d) q = Add(s, e) }, "
            "else_branch = p () => (float[2, 3] r) { r = Neg(s) }>",
            "x",
            True,
        ),
    ],
)
def test_values_without_elements_in_a_body_are_seen(
    body: str, first: str, *, is_empty: bool
) -> None:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[2, 3] x) => (float[p, 3] y)
        <int64 m = {{4}}, bool g = {{1}}, float[0, 3] nothing = {{}}> {{
            y = Loop(m, g, {first}) <body = b (int64 i, bool c, float[k, 3] s)
                => (bool o, float[l, 3] t) {{ o = Identity(c) {body} }}>
        }}"""
    )
    graph = resolve(read_model(memoryview(proto.SerializeToString())), {})
    assert may_be_empty_inside(graph, 0) is is_empty
