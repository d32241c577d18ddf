"""Types of ONNX Runtime's own operators, against what onnxruntime gave for recorded cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from cpu_kernels import all_kernels
from parity.realistic.cases import all_cases

from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import TensorType
from ort_lite.model.contrib_types import CONTRIB, infer_contrib_types
from ort_lite.model.shape_inference import infer_types
from ort_lite.model.tensor_values import numpy_dtype

RECORD = Path(__file__).parents[2] / "golden" / "onnxruntime_1.31.1" / "answers.json"
ROWS: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))["cases"]
RECORDED_LATER = frozenset(
    (
        *("CropAndResize", "DynamicTimeWarping", "MurmurHash3", "QEmbedLayerNormalization"),
        *("MoE", "QMoE"),
        *("SparseToDenseMatMul", "Tokenizer", "UnfoldTensor"),
    )
)
"""Not in the record; tests/unit/cpu_contrib compares them with the installed onnxruntime."""
CASES = {
    case.name: case
    for case in all_cases()
    if case.domain == CONTRIB or case.op == "SimplifiedLayerNormalization"
}


def output_types(model: bytes) -> list[Any]:
    """Inferred alone: the model says nothing of its outputs."""
    proto = onnx.load_model_from_string(model)
    for info in proto.graph.output:
        info.ClearField("type")
    graph = infer_types(read_model(memoryview(proto.SerializeToString()))).graph
    infos = (*graph.value_info.values(), *graph.outputs)
    known = {info.name: info.type for info in infos if info.type is not None}
    return [known.get(info.name) for info in graph.outputs]


@pytest.mark.parametrize("name", CASES)
def test_an_output_has_the_type_that_onnxruntime_gave_it(name: str) -> None:
    model, _ = CASES[name].model_and_feed(CASES[name].drawn())
    for found, row in zip(output_types(model), ROWS[name]["outputs"], strict=True):
        assert isinstance(found, TensorType)
        assert numpy_dtype(found.elem_type).name == row["dtype"]
        if found.shape is not None:
            assert len(found.shape) == len(row["shape"])
            pairs = zip(found.shape, row["shape"], strict=True)
            assert all(dim == size for dim, size in pairs if isinstance(dim, int))


def test_every_kernel_of_the_domain_has_a_rule() -> None:
    recorded = {case.op for case in CASES.values()} | {"GridSample"}
    kernels = {k.op_type for k in all_kernels() if k.domain == CONTRIB}
    assert kernels - RECORDED_LATER <= recorded


@pytest.mark.parametrize("name", CASES)
def test_inputs_of_unknown_types_give_unknown_types_or_what_is_fixed(name: str) -> None:
    model, _ = CASES[name].model_and_feed(CASES[name].drawn())
    (node,) = read_model(memoryview(model)).graph.nodes
    for types in ([], [None] * len(node.inputs)):
        found = infer_contrib_types(node, types)
        assert len(found) == len(node.outputs)
    rankless = [TensorType(1, None)] * len(node.inputs)
    assert len(infer_contrib_types(node, rankless)) == len(node.outputs)
    scalars = [TensorType(1, ())] * len(node.inputs)
    assert len(infer_contrib_types(node, scalars)) == len(node.outputs)


def test_types_of_contrib_and_onnx_operators_follow_from_each_other() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[2, 3] x, float[4, 3] w) => (z) {
      a = com.microsoft.FusedMatMul <transB = 1> (x, w)
      b = Transpose(a)
      z = com.microsoft.Gelu(b)
    }"""
    (found,) = output_types(onnx.parser.parse_model(text).SerializeToString())
    assert found.shape == (4, 2)


def test_a_long_chain_of_both_kinds_has_sizes() -> None:
    """Longer than the rounds in which both kinds of inference alternate."""
    steps = "\n".join(
        f"""q{i} = QuantizeLinear(x{i}, scale, zero)
        s{i} = com.microsoft.QLinearSigmoid(q{i}, scale, zero, scale, zero)
        d{i} = DequantizeLinear(s{i}, scale, zero)
        c{i} = com.microsoft.FusedConv <pads = [1, 1, 1, 1], strides = [1, 1]> (d{i}, w)
        h{i} = HardSigmoid(c{i})
        x{i + 1} = Mul(c{i}, h{i})"""
        for i in range(40)
    )
    text = f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[2, 3, 5, 7] x0, float[3, 3, 3, 3] w) => (x40)
    <float scale = {{0.5}}, uint8 zero = {{7}}> {{
      {steps}
    }}"""
    (found,) = output_types(onnx.parser.parse_model(text).SerializeToString())
    assert found == TensorType(1, (2, 3, 5, 7))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pads": [1, 0, 2, 1], "strides": [2, 1]},
        {"dilations": [2, 1], "group": 2},
        {"strides": [3, 3]},
        {"auto_pad": "SAME_UPPER"},
    ],
    ids=["plain", "padded", "wide", "strides", "auto_pad"],
)
def test_a_fused_convolution_has_the_sizes_of_conv(fields: dict[str, Any]) -> None:
    x, w = (2, 4, 9, 11), (6, 4 // fields.get("group", 1), 3, 2)
    shapes = []
    for op, domain in (("Conv", ""), ("FusedConv", CONTRIB)):
        node = onnx.helper.make_node(op, ["x", "w"], ["y"], domain=domain, **fields)
        infos = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in (("x", x), ("w", w))]
        made = onnx.helper.make_tensor_value_info("y", 1, None)
        graph = onnx.helper.make_graph([node], "one", infos, [made])
        opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(CONTRIB, 1)]
        model = onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)
        shapes.append(output_types(model.SerializeToString())[0].shape)
    expected, (*kept, height, width) = shapes
    assert tuple(kept) == expected[:2]
    assert (height, width) == ((None, None) if "auto_pad" in fields else expected[2:])


def test_sizes_that_no_window_fits_are_not_known() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[1, 1, 2, N] x, float[1, 1, 3, 1] w) => (y) { y = com.microsoft.FusedConv(x, w) }"""
    (found,) = output_types(onnx.parser.parse_model(text).SerializeToString())
    assert found.shape == (1, 1, None, "N")
