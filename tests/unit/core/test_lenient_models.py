"""Models that break a rule, which onnxruntime loads all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_models import feed, mlp

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = ["CPUExecutionProvider"]


def followed_by(op: str, domain: str, **attributes: Any) -> onnx.ModelProto:
    """An MLP and one more operator, whose domain the model does not import."""
    made = mlp()
    made.graph.node.append(helper.make_node(op, ["y"], ["z"], domain=domain, **attributes))
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 3]))
    return made


def without_onnx() -> onnx.ModelProto:
    made = mlp()
    made.opset_import[0].domain = "com.microsoft"
    made.opset_import[0].version = 1
    return made


def with_a_function_named_as_an_operator() -> onnx.ModelProto:
    made = mlp()
    body = [helper.make_node("Neg", ["p"], ["q"])]
    imports = [helper.make_opsetid("", 17)]
    made.functions.append(helper.make_function("", "Relu", ["p"], ["q"], body, imports))
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: followed_by("Gelu", "com.microsoft"),
        lambda: followed_by("Binarizer", "ai.onnx.ml", threshold=0.5),
        lambda: followed_by("Scaler", "ai.onnx.ml", scale=[2.0], offset=[0.5]),
        without_onnx,
        with_a_function_named_as_an_operator,
    ],
    ids=["microsoft", "ml", "ml_scaler", "onnx", "function"],
)
def test_it_computes_as_in_onnxruntime(make: Callable[[], onnx.ModelProto]) -> None:
    data = make().SerializeToString()
    theirs = onnxruntime.InferenceSession(data, providers=CPU).run(None, feed(mlp()))
    with ort.InferenceSession(data, providers=CPU) as session:
        for mine, right in zip(session.run(None, feed(mlp())), theirs, strict=True):
            assert mine.dtype == right.dtype
            np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)
