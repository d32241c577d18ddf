"""Narrow floats in float32 where an EP lacks them: where, and how near the numbers stay."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.defs
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import ort_lite as ort
from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import DataType, GraphDef
from ort_lite.model.shape_inference import infer_types
from ort_lite.transforms.insert_casts import NAME, WIDENED, insert_casts

OPENVINO = ["OpenVINOExecutionProvider"]
CPU = ["CPUExecutionProvider"]
BFLOAT16 = frozenset((DataType.BFLOAT16,))
CHAIN = """<ir_version: 8, opset_import: ["" : 17]>
g (bfloat16[2, 3] x) => (bfloat16[2, 3] z, bfloat16[2, 3] r)
  <bfloat16[3] b = {1, 2, 3}, int64[2] s = {2, 3}> {
  p = MatMul(x, w) q = Add(p, b) r = Relu(q) m = Softmax(r) z = Reshape(m, s)
}"""

DECODER = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float16[1, 1, 32] x, float16[1, 1, 8, 16] pk, float16[1, 1, 8, 16] pv, int32[1] n)
  => (float16[1, 1, 32] z, float16[1, 1, 8, 16] k, float16[1, 1, 8, 16] v)
  <int32 total = {8}> {
  a = com.microsoft.SkipSimplifiedLayerNormalization (x, x, w)
  qkv = com.microsoft.MatMulNBits <K = 32, N = 64, bits = 4, block_size = 32> (a, b, s)
  o, k, v = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1>
    (qkv, , , pk, pv, n, total)
  z = com.microsoft.MatMulNBits <K = 32, N = 32, bits = 4, block_size = 32> (o, c, t)
}"""


def chain() -> onnx.ModelProto:
    model = onnx.parser.parse_model(CHAIN)
    weight = np.random.default_rng(1).standard_normal((3, 3)).astype(ml_dtypes.bfloat16)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return model


def x() -> np.ndarray[Any, Any]:
    return np.random.default_rng(2).standard_normal((2, 3)).astype(ml_dtypes.bfloat16)


def widened(text: str, types: frozenset[int] = BFLOAT16, opset: int = 17) -> tuple[GraphDef, int]:
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    model = onnx.parser.parse_model(f"{head}\n{text}")
    typed = infer_types(read_model(memoryview(model.SerializeToString())))
    return insert_casts(typed.graph, opset, types)


def operators(graph: GraphDef) -> list[str]:
    return [node.op_type for node in graph.nodes]


def greedy() -> ort.SessionOptions:
    """Options with which an EP runs every node that it supports."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return options


def test_a_model_in_bfloat16_runs_on_an_ep_without_it() -> None:
    proto = chain()
    with ort.InferenceSession(proto.SerializeToString(), greedy(), OPENVINO) as session:
        assert session.explain().node_counts()[OPENVINO[0]] == 5
        assert session.explain().transforms[NAME] == 5
        found = session.run(None, {"x": x()})
    exact = ReferenceEvaluator(as_float32(proto)).run(None, {"x": x().astype(np.float32)})
    for mine, right in zip(found, exact, strict=True):
        assert mine.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(mine.astype(np.float32), right, rtol=2**-8, atol=1e-6)


def as_float32(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The same model in float32: what it means without rounding."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for info in (*made.graph.input, *made.graph.output):
        info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for tensor in made.graph.initializer:
        if tensor.data_type in (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16):
            array = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return made


def test_an_ep_that_has_the_type_keeps_it() -> None:
    with ort.InferenceSession(chain().SerializeToString(), providers=CPU) as session:
        assert NAME not in session.explain().transforms


NORMALISED = """<ir_version: 8, opset_import: ["" : 17]>
g (float16[1, 4, 8] x) => (float16[1, 4, 8] z) {
  a = Relu(x) b = BatchNormalization <epsilon = 0.00001> (a, scale, bias, mean, var)
  c = Clip(b, low) d = BatchNormalization <epsilon = 0.00001> (c, scale, bias, mean, var)
  z = Sub(d, d2)
}"""


def test_float16_on_openvinos_cpu_is_as_near_to_exact_as_float32() -> None:
    """OpenVINO folds statistics in float16, whose errors here grow with each normalisation."""
    model = onnx.parser.parse_model(NORMALISED)
    random = np.random.default_rng(5)
    values = {
        "scale": random.uniform(0.5, 2, 4),
        "bias": random.standard_normal(4),
        "mean": random.uniform(3, 4, 4),
        "var": random.uniform(1e-4, 1e-3, 4),
        "low": np.array(-500.0),
        "d2": random.uniform(5e3, 1e4, (1, 4, 1)),
    }
    for name, value in values.items():
        tensor = onnx.numpy_helper.from_array(np.asarray(value, np.float16), name)
        model.graph.initializer.append(tensor)
    feed = {"x": random.uniform(0, 4, (1, 4, 8)).astype(np.float16)}
    with ort.InferenceSession(model.SerializeToString(), greedy(), OPENVINO) as session:
        assert session.explain().transforms[NAME] == 5
        assert set(session.explain().node_counts()) == {OPENVINO[0]}
        (found,) = session.run(None, feed)
    (exact,) = ReferenceEvaluator(as_float32(model)).run(None, {"x": feed["x"].astype(np.float32)})
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(np.float32), exact, rtol=2**-10, atol=2**-10)


def test_each_name_is_that_of_an_operator() -> None:
    defined = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    assert WIDENED - {"SimplifiedLayerNormalization"} <= defined  # which is onnxruntime's own


def test_it_can_be_switched_off() -> None:
    with ort.InferenceSession(
        chain().SerializeToString(), providers=OPENVINO, disabled_optimizers=[NAME]
    ) as session:
        assert OPENVINO[0] not in session.explain().node_counts()


def test_a_chain_is_cast_at_its_ends_alone() -> None:
    graph, count = widened(
        "g (bfloat16[2] x) => (bfloat16[2] z) { a = Neg(x) b = Exp(a) z = Tanh(b) }"
    )
    assert (count, operators(graph)) == (3, ["Cast", "Neg", "Exp", "Tanh", "Cast"])


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("a = Cast <to = 1> (x) z = Cast <to = 16> (a)", ["Cast", "Cast"]),
        ("a = Shape(x) z = Expand(y, a)", ["Shape", "Cast", "Expand", "Cast"]),
        ("z = Mod <fmod = 1> (x, y)", ["Mod"]),
    ],
    ids=["casts_of_the_model", "what_computes_no_float", "an_operator_that_is_not_listed"],
)
def test_other_nodes_stay_as_they_are(body: str, left: list[str]) -> None:
    graph, _ = widened(f"g (bfloat16[2] x, bfloat16[2] y) => (bfloat16[2] z) {{ {body} }}")
    assert operators(graph) == left


def test_a_value_that_a_body_captures_is_cast_back() -> None:
    graph, _ = widened(
        """g (bfloat16[2] x, bool c) => (bfloat16[2] z) {
        a = Neg(x)
        z = If(c) <then_branch = t () => (bfloat16[2] p) { p = Identity(a) },
                   else_branch = e () => (bfloat16[2] q) { q = Identity(a) }>
    }"""
    )
    assert operators(graph) == ["Cast", "Neg", "Cast", "If"]
    assert graph.nodes[2].outputs == ("a",)


LOOPING = """g (int64 n, BF[2] x) => (BF[2] z) <BF[2] w = {15360, 16384}> {
  c = Constant <value = bool {1}> ()
  z = Loop(n, c, x) <body = b (int64 i, bool on, BF[2] h) => (bool go, BF[2] next) {
    go = Identity(on) a = Mul(h, w) next = Tanh(a) }>
}"""
"""Of narrow floats the parser takes the bits: 1 and 2 in float16."""


def test_bodies_compute_in_float32_too_and_keep_the_type_at_their_border() -> None:
    graph, count = widened(LOOPING.replace("BF", "bfloat16"))
    assert count == 2
    assert operators(graph) == ["Constant", "Loop"]
    body = graph.nodes[1].attributes["body"].value
    assert isinstance(body, GraphDef)
    assert operators(body) == ["Identity", "Cast", "Mul", "Tanh", "Cast"]
    assert [t.data_type for t in body.initializers.values()] == [DataType.FLOAT]


def test_a_loop_in_float16_runs_on_opencl_which_lacks_it() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>' + LOOPING.replace("BF", "float16")
    ).SerializeToString()
    opencl = "OpenCLExecutionProvider"
    feed: dict[str, Any] = {
        "n": np.array(5, np.int64),
        "x": np.array([0.5, -1.25], np.float16),
    }
    with ort.InferenceSession(model, greedy(), [opencl]) as session:
        assert session.explain().transforms[NAME] == 2
        assert session.explain().node_counts()[opencl] >= 2
        (found,) = session.run(None, feed)
    h = feed["x"].astype(np.float64)
    for _ in range(5):
        h = np.tanh(h * [1.0, 2.0])
    assert found.dtype == np.float16
    # Rounded to 11 bits once in each iteration; tanh does not make errors larger, w doubles them.
    np.testing.assert_allclose(found.astype(np.float64), h, rtol=5 * 2 * 2**-11)


def test_products_of_few_bits_are_widened_and_caches_keep_their_type() -> None:
    """A decoder as onnxruntime-genai's model builder exports it for GPUs."""
    model = onnx.parser.parse_model(DECODER)
    for name, kind, dims in (
        ("w", np.float16, [32]), ("b", np.uint8, [64, 1, 16]), ("s", np.float16, [64, 1]),
        ("c", np.uint8, [32, 1, 16]), ("t", np.float16, [32, 1]),
    ):  # fmt: skip
        value = onnx.numpy_helper.from_array(np.ones(dims, kind), name)
        model.graph.initializer.append(value)
    typed = infer_types(read_model(memoryview(model.SerializeToString())))
    graph, count = insert_casts(typed.graph, 21, frozenset((DataType.FLOAT16,)))
    assert count == 3
    assert operators(graph) == [
        *("Cast", "SkipSimplifiedLayerNormalization", "MatMulNBits", "Cast"),
        *("GroupQueryAttention", "Cast", "MatMulNBits", "Cast"),
    ]
    attention = next(node for node in graph.nodes if node.op_type == "GroupQueryAttention")
    assert attention.inputs[3:5] == ("pk", "pv")
    assert attention.outputs[1:] == ("k", "v")


def test_other_types_and_old_casts_are_left_alone() -> None:
    text = "g (bfloat16[2] x) => (bfloat16[2] z) { z = Neg(x) }"
    assert widened(text, frozenset((DataType.FLOAT16,)))[1] == 0
    half = text.replace("bfloat16", "float16")
    assert widened(half, frozenset((DataType.FLOAT16,)), opset=5)[1] == 0


def test_an_input_with_a_default_is_cast_and_not_taken_for_a_constant() -> None:
    graph, _ = widened(
        "g (bfloat16[1] x, bfloat16[1] w) => (bfloat16[1] z) <bfloat16[1] w = {2}> "
        "{ z = Add(x, w) }"
    )
    assert operators(graph) == ["Cast", "Cast", "Add", "Cast"]
