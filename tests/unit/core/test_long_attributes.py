"""Lists of a forest: part of a partition's name, and of no inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import Model, TensorType
from ort_lite.model.graph import Graph
from ort_lite.model.long_attributes import without_long_lists
from ort_lite.model.shape_inference import infer_types
from ort_lite.planning.naming import metadef_id

MANY, LABELS = 1000, 100


def forest(*, in_a_branch: bool = False, **changes: Any) -> Model:
    """A classifier by one tree of many leaves, all on the true side of a chain."""
    inner = list(range(MANY))
    attributes: dict[str, Any] = {
        "nodes_treeids": [0] * (2 * MANY + 1),
        "nodes_nodeids": list(range(2 * MANY + 1)),
        "nodes_modes": ["BRANCH_LEQ"] * MANY + ["LEAF"] * (MANY + 1),
        "nodes_featureids": [0] * (2 * MANY + 1),
        "nodes_values": [n / 8 for n in inner] + [0.0] * (MANY + 1),
        "nodes_truenodeids": [MANY + n for n in inner] + [0] * (MANY + 1),
        "nodes_falsenodeids": [n + 1 for n in inner[:-1]] + [2 * MANY] + [0] * (MANY + 1),
        "class_treeids": [0] * (MANY + 1),
        "class_nodeids": list(range(MANY, 2 * MANY + 1)),
        "class_ids": [n % LABELS for n in range(MANY + 1)],
        "class_weights": [1.0] * (MANY + 1),
        "classlabels_strings": [f"label {n}" for n in range(LABELS)],
    }
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "score"], domain="ai.onnx.ml",
        **{**attributes, **changes},
    )  # fmt: skip
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("label", "score")]
    nodes = [node]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1])]
    if in_a_branch:
        body = helper.make_graph(nodes, "body", [], outputs)
        nodes = [helper.make_node("If", ["c"], ["l", "s"], then_branch=body, else_branch=body)]
        outputs = [helper.make_empty_tensor_value_info(name) for name in ("l", "s")]
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return read_model(
        memoryview(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    )


def name_of(model: Model) -> str:
    return metadef_id(Graph(model.graph, {"": 21, "ai.onnx.ml": 3}), {})


@pytest.mark.parametrize("in_a_branch", [False, True])
def test_inference_reads_labels_and_no_nodes(*, in_a_branch: bool) -> None:
    model = forest(in_a_branch=in_a_branch)
    short = Model(**{**_fields(model), "graph": without_long_lists(model.graph)})
    assert len(model_bytes(short)) < len(model_bytes(model)) / 10
    inferred = infer_types(model, strict=True)
    label, score = inferred.graph.outputs
    assert label.type == TensorType(TensorProto.STRING, ("n",))
    assert isinstance(score.type, TensorType)
    assert score.type.elem_type == TensorProto.FLOAT
    assert score.type.shape is not None
    assert score.type.shape[1] == LABELS
    assert model_bytes(infer_types(model)).count(b"BRANCH_LEQ") >= MANY


def _fields(model: Model) -> dict[str, Any]:
    return {name: getattr(model, name) for name in type(model).__slots__}


def test_every_item_of_a_long_list_is_in_the_name() -> None:
    names = {name_of(forest())}
    weights = [1.0] * (MANY + 1)
    for change in (
        {"class_weights": [*weights[:-1], 2.0]},
        {"class_weights": [*weights[:-1], 0.0]},
        {"class_weights": [*weights[:-1], -0.0]},
        {"class_weights": [*weights[:-1], float(np.float32("nan"))]},
        {"class_ids": [1] + [n % LABELS for n in range(1, MANY + 1)]},
        {"classlabels_strings": ["ab", "c"] * (LABELS // 2)},
        {"classlabels_strings": ["a", "bc"] * (LABELS // 2)},
    ):
        names.add(name_of(forest(**change)))
    assert len(names) == 8
    assert name_of(forest()) in names
