"""Constants of every ONNX element type leave a session as they are, with OpenCL in the list."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from ctx_formats.model_reader import read_model
from eps.opencl.compile.ir import Unsupported
from eps.opencl.compile.lower_graph import lower_graph
from ort_lite.model.loader import as_graph

OPENCL = "OpenCLExecutionProvider"
OPSET = 25
"""The first in which Constant, Identity, Reshape and Squeeze take nearly every type."""
TYPES = [name for name, number in TensorProto.DataType.items() if number]
(CONSTANT,) = onnx.defs.get_schema("Constant", OPSET).type_constraints


def two(kind: int) -> onnx.TensorProto:
    values = {TensorProto.STRING: [b"a", b"b"]}.get(kind, [1, 2])
    return helper.make_tensor("w", kind, [2], values)


def model(kind: int) -> onnx.ModelProto:
    """Constants that are outputs: as they are, out of an initializer, reshape_view and a scalar."""
    nodes = [
        helper.make_node("Constant", [], ["as_it_is"], value=two(kind)),
        helper.make_node("Identity", ["w"], ["copied"]),
        helper.make_node("Reshape", ["w", "shape"], ["standing"]),
        helper.make_node("Squeeze", ["one"], ["scalar"]),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, kind, None)
        for name in ("as_it_is", "copied", "standing", "scalar")
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    shape = numpy_helper.from_array(np.array([2, 1]), "shape")
    one = helper.make_tensor("one", kind, [1], [b"b"] if kind == TensorProto.STRING else [2])
    graph = helper.make_graph(nodes, "g", [x], [*outputs, y], [two(kind), shape, one])
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=13)


@pytest.mark.parametrize("name", TYPES)
def test_a_constant_of_any_type_is_an_output(name: str) -> None:
    kind = TensorProto.DataType.Value(name)
    right = numpy_helper.to_array(two(kind))
    if kind == TensorProto.STRING:
        right = np.array(["a", "b"], object)
    proto = model(kind).SerializeToString()
    if f"tensor({name.lower()})" not in CONSTANT.allowed_type_strs:
        with pytest.raises(ort.InvalidGraph, match="unsupported type"):
            ort.InferenceSession(proto, providers=[OPENCL])
        return
    greedy = ort.SessionOptions()
    greedy.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(proto, greedy, providers=[OPENCL]) as session:
        found = session.run(None, {"x": np.array([-1, 1], np.float32)})
        nodes = [n for p in session.explain().partitions for n in p.nodes]
    expected = [right, right, right.reshape(2, 1)]
    for value, one in zip(found, expected, strict=False):
        assert value.dtype == one.dtype
        assert value.tolist() == one.tolist() or name == "FLOAT8E8M0"  # has no 0, but a NaN
    assert str(found[3]) == str(right[1])
    assert {n.name: n.refusals for n in nodes if n.op_type == "Relu" and n.ep != OPENCL} == {}


def test_a_partition_that_would_give_strings_is_declined() -> None:
    graph = as_graph(read_model(memoryview(model(TensorProto.STRING).SerializeToString())))
    with pytest.raises(Unsupported, match="'as_it_is' has element type object"):
        lower_graph(graph, {"x": (2,)})
