"""Arithmetic on shapes is computed in numpy, as ONNX's suite has it, and imports no onnx."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from merged_cases import node_cases
from onnx import TensorProto, helper, numpy_helper, parser

from ctx_formats.model_reader import read_model
from eps.opencl.compile.constant_nodes import evaluate_in_numpy
from eps.opencl.compile.ir import Unsupported
from eps.opencl.compile.lower.node import NodeView, constant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from onnx import ModelProto

ROOT = Path(__file__).parents[3]
OPERATORS = (
    *("Add", "And", "Cast", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Gather"),
    *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mul", "Not", "Or"),
    *("Range", "Reshape", "Shape", "Slice", "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where"),
)
LEFT = (
    *("float8", "FLOAT8", "e4m3", "e5m2", "FLOAT4", "bfloat16", "BFLOAT16", "INT4", "INT2"),
    *("STRING", "string", "test_div_int32_trunc"),
)
"""Parts of the names of cases with types that numpy does not have, or quotients below zero."""
SHAPES = """<ir_version: 8, opset_import: ["" : 17]>
shapes (float[n, 4] x) => (float[2, m] y) <int64[1] two = {2}, int64[1] rest = {-1}> {
  dims = Shape (x)
  zero = Constant <value_int = 0> ()
  first = Gather <axis = 0> (dims, zero)
  axes = Constant <value_ints = [0]> ()
  rows = Unsqueeze (first, axes)
  half = Div (rows, two)
  whole = Mul (half, two)
  same = Equal (whole, rows)
  chosen = Where (same, two, rows)
  target = Concat <axis = 0> (chosen, rest)
  flat = Reshape (x, target)
  y = Relu (flat)
}"""


def evaluate(model: ModelProto, inputs: Sequence[Any]) -> Any:
    """The output of a model of one node, None where it is left to onnx.reference."""
    parsed = read_model(memoryview(model.SerializeToString()))
    (node,) = parsed.graph.nodes
    tensors = iter([constant(array_of(value)) for value in inputs])
    given = tuple(next(tensors) if name else None for name in node.inputs)
    opset = parsed.opset_imports[""]
    return evaluate_in_numpy(NodeView(node=node, opset=opset, inputs=given, emit=refuse))


def array_of(value: Any) -> Any:
    """The suite has some values as protobuf."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def refuse(op: object) -> None:
    raise AssertionError(f"{op} for a constant")


def test_the_suites_answers_are_found_in_numpy() -> None:
    seen, left = set(), set()
    for case in node_cases(OPERATORS):
        assert case.model is not None
        assert case.data_sets is not None
        for inputs, (output, *_) in case.data_sets:
            found = evaluate(case.model, inputs)
            if found is None:
                left.add(case.name)
                continue
            expected = array_of(output)
            assert found.dtype == expected.dtype, case.name
            np.testing.assert_array_equal(found, expected, err_msg=case.name)
            seen.add(case.model.graph.node[0].op_type)
    assert seen == set(OPERATORS)
    assert {name for name in left if not any(part in name for part in LEFT)} == set()


def one_node(operator: str, kinds: Sequence[int], opset: int = 17, **attributes: Any) -> ModelProto:
    names = [f"i{i}" for i in range(len(kinds))]
    node = helper.make_node(operator, names, ["o"], **attributes)
    inputs = [helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds, strict=True)]
    output = helper.make_tensor_value_info("o", kinds[0], None)
    graph = helper.make_graph([node], "g", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


INT, FLOAT = TensorProto.INT64, TensorProto.FLOAT


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        pytest.param(one_node("Div", [INT, INT]), [[-7], [2]], id="negative quotients"),
        pytest.param(one_node("Div", [INT, INT]), [[7], [0]], id="division by zero"),
        pytest.param(one_node("Cast", [FLOAT], to=INT), [np.float32([np.nan])], id="no integer"),
        pytest.param(one_node("Gather", [INT, INT]), [[1, 2], [5]], id="index out of range"),
        pytest.param(one_node("Add", [INT, INT]), [[1, 2], [1, 2, 3]], id="shapes do not match"),
        pytest.param(one_node("Range", [FLOAT] * 3), list(np.float32([0, 1, 0.3])), id="fractions"),
        pytest.param(one_node("Add", [INT, INT], opset=6), [[1], [2]], id="an older version"),
        pytest.param(one_node("Erf", [FLOAT]), [np.float32([1])], id="not in the table"),
    ],
)
def test_other_nodes_are_left_to_the_reference(model: ModelProto, inputs: list[Any]) -> None:
    assert evaluate(model, inputs) is None


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (
            one_node("ConstantOfShape", [INT], value=numpy_helper.from_array(np.int64([1]))),
            [[1 << 40]],
        ),
        (one_node("Expand", [INT, INT]), [[1], [1 << 20, 1 << 20]]),
    ],
)
def test_a_constant_that_is_too_large_is_refused(model: ModelProto, inputs: list[Any]) -> None:
    with pytest.raises(Unsupported, match="too large"):
        evaluate(model, inputs)


def test_arithmetic_on_shapes_imports_no_onnx(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(parser.parse_model(SHAPES).SerializeToString())
    code = f"""
import json, sys
import numpy as np
import ort_lite as ort
options = ort.SessionOptions()
options.add_session_config_entry("session.placement", "all")
session = ort.InferenceSession({str(path)!r}, options, providers=["OpenCLExecutionProvider"])
y = session.run(None, {{"x": np.arange(16, dtype=np.float32).reshape(4, 4) - 8}})[0]
devices = sorted({{p.ep for p in session.explain().partitions}})
print(json.dumps([y.tolist(), devices, sorted(sys.modules)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    answer, devices, modules = json.loads(done.stdout)
    assert answer == np.maximum(np.arange(16) - 8, 0).reshape(2, 8).tolist()
    assert devices == ["OpenCLExecutionProvider"]
    assert {"onnx", "onnx.reference"} & set(modules) == set()
