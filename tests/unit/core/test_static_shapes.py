"""Shapes inside a model from shapes of its inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from small_models import mlp, model

import ort_lite as ort
from ctx_formats.model_reader import read_model
from ort_lite.ep import Graph, infer_static_shapes
from ort_lite.model.loader import resolve


def resolved(proto: onnx.ModelProto, **sizes: int) -> Graph:
    return resolve(read_model(memoryview(proto.SerializeToString())), sizes)


def two_inputs() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    return model([node], [("a", ["n", "k"]), ("b", ["k", "m"])], [("y", ["n", "m"])])


def unknown_rank() -> onnx.ModelProto:
    """`u` has the shape that an absolute value says, which onnx's inference does not follow."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Abs", ["s"], ["ss"]),
        helper.make_node("Slice", ["ss", "zero", "one"], ["e"]),
        helper.make_node("Slice", ["ss", "zero", "e"], ["t"]),
        helper.make_node("Expand", ["c", "t"], ["u"]),
        helper.make_node("Relu", ["u"], ["v"]),
        helper.make_node("Neg", ["v"], ["y"]),
    ]
    weights = {
        "zero": np.array([0], np.int64), "one": np.array([1], np.int64), "c": np.ones(1, "f4"),
    }  # fmt: skip
    return model(nodes, [("x", ["n", 3])], [("y", None)], weights)


def test_sizes_reach_what_is_computed_from_the_inputs() -> None:
    found = infer_static_shapes(resolved(mlp("rows")), {"x": [5, 4]})
    assert {name: found[name] for name in ("x", "xw", "sum", "y")} == {
        "x": (5, 4), "xw": (5, 3), "sum": (5, 3), "y": (5, 3),
    }  # fmt: skip


def test_a_name_of_a_dimension_has_its_size_everywhere() -> None:
    found = infer_static_shapes(resolved(two_inputs()), {"a": [2, 7]})
    assert found["a"] == (2, 7)
    assert "y" not in found
    assert infer_static_shapes(resolved(two_inputs()), {"a": [2, 7], "b": [7, 5]})["y"] == (2, 5)


def test_a_free_dimension_stays_free() -> None:
    found = infer_static_shapes(resolved(two_inputs()), {"a": [2, None], "b": [None, 5]})
    assert found["y"] == (2, 5)
    assert "a" not in found


def test_a_value_inside_counts_where_inference_finds_nothing() -> None:
    graph = resolved(unknown_rank())
    assert "v" not in infer_static_shapes(graph, {"x": [4, 3]})
    assert infer_static_shapes(graph, {"x": [4, 3], "u": [4, 3]})["v"] == (4, 3)


def test_a_name_with_two_sizes_names_no_dimension() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    proto = model([node], [("x", ["?", "?"])], [("y", ["?", "?"])])
    assert infer_static_shapes(resolved(proto), {"x": [2, 7]})["y"] == (2, 7)


def test_a_shape_has_the_inputs_rank() -> None:
    with pytest.raises(ort.InvalidArgument, match="a gets 3 dimensions, the model has 2"):
        infer_static_shapes(resolved(two_inputs()), {"a": [1, 2, 7]})


def test_types_of_contrib_operators_pass_through_each_other() -> None:
    """The second LSTM's input has its shape only once the first one's output has one."""
    names = [f"{part}{i}" for i in (0, 1) for part in ("w", "r", "ws", "wz", "rs", "rz")]
    shapes = {"w": (1, 4, 12), "r": (1, 3, 12)}
    weights = {
        name: np.ones(shapes.get(name[:-1], (1,)), "f4" if name[1] == "s" else np.int8)
        for name in names
    }
    weights["w1"] = np.ones((1, 3, 12), np.int8)
    weights["flat"] = np.array([0, 0, -1], np.int64)

    def lstm(i: int, x: str) -> onnx.NodeProto:
        inputs = [x, f"w{i}", f"r{i}", "", "", "", "", "", *names[6 * i + 2 : 6 * i + 6]]
        return helper.make_node(
            "DynamicQuantizeLSTM", inputs, [f"y{i}"], domain="com.microsoft", hidden_size=3
        )

    nodes = [
        lstm(0, "x"),
        helper.make_node("Transpose", ["y0"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["turned", "flat"], ["x1"]),
        lstm(1, "x1"),
    ]
    inputs, outputs = [("x", ["seq", "batch", 4])], [("y1", None)]
    proto = model(nodes, inputs, outputs, weights, contrib=True)
    value_type = resolved(proto, seq=16, batch=2).type_of("y1")
    assert getattr(value_type, "shape", None) == (16, 1, 2, 3)
    assert infer_static_shapes(resolved(proto), {"x": [16, 2, 4]})["y1"] == (16, 1, 2, 3)
