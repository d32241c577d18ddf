"""Constants of every ONNX element type leave a session as they are, with OpenCL in the list."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from ctx_formats.model_reader import read_model
from eps.opencl.ir import Unsupported
from eps.opencl.trace import trace
from ort_lite.model.loader import as_graph

OPENCL = "OpenCLExecutionProvider"
TYPES = [name for name, number in TensorProto.DataType.items() if number]


def two(kind: int) -> onnx.TensorProto:
    values = {TensorProto.STRING: [b"a", b"b"]}.get(kind, [1, 2])
    return helper.make_tensor("w", kind, [2], values)


def model(kind: int) -> onnx.ModelProto:
    """Constants that are outputs: as they are, out of an initializer, joined and picked."""
    nodes = [
        helper.make_node("Constant", [], ["as_it_is"], value=two(kind)),
        helper.make_node("Identity", ["w"], ["copied"]),
        helper.make_node("Concat", ["w", "as_it_is"], ["joined"], axis=0),
        helper.make_node("Gather", ["joined", "at"], ["picked"]),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, kind, None)
        for name in ("as_it_is", "copied", "joined", "picked")
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    at = numpy_helper.from_array(np.array(3), "at")
    graph = helper.make_graph(nodes, "g", [x], [*outputs, y], [two(kind), at])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


@pytest.mark.parametrize("name", TYPES)
def test_a_constant_of_any_type_is_an_output(name: str) -> None:
    kind = TensorProto.DataType.Value(name)
    right = numpy_helper.to_array(two(kind))
    if kind == TensorProto.STRING:
        right = np.array(["a", "b"], object)
    with ort.InferenceSession(model(kind).SerializeToString(), providers=[OPENCL]) as session:
        found = session.run(None, {"x": np.array([-1, 1], np.float32)})
        nodes = [n for p in session.explain().partitions for n in p.nodes]
    expected = [right, right, np.concatenate([right, right])]
    for value, one in zip(found, expected, strict=False):
        assert value.dtype == one.dtype
        assert value.tolist() == one.tolist() or name == "FLOAT8E8M0"  # has no 0, but a NaN
    assert str(found[3]) == str(right[1])
    assert {n.name: n.refusals for n in nodes if n.op_type == "Relu" and n.ep != OPENCL} == {}


def test_a_partition_that_would_give_strings_is_declined() -> None:
    graph = as_graph(read_model(memoryview(model(TensorProto.STRING).SerializeToString())))
    with pytest.raises(Unsupported, match="'as_it_is' has element type object"):
        trace(graph, {"x": (2,)})
