"""squeezenet of ONNX's suite, judged before its softmax.

All weights of a layer of that model are equal, so that its thousand logits are one sum of 2e10,
where neighbouring float32 numbers are 2048 apart: each is rounded as the order of its terms has
it, and softmax makes 1 of the largest and 0 of its neighbour. The stored answer, a thousand times
0.001, is what one order gives; kernels choose theirs by processor and by number of threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.backend.test
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable

    Prepare = Callable[[onnx.ModelProto], Any]

EQUAL_SUMS = "test_squeezenet_cpu"
MODEL = Path(onnx.backend.test.__file__).parent / "data" / "light" / "light_squeezenet.onnx"
LOGITS = "r65"
HALF_STEP = 2.0**-24
"""The most by which a float32 operation is off, relative to its result."""


def check_equal_sums(prepare: Prepare) -> None:
    """Fail unless the logits are within the error of sums, and the answer is their softmax.

    Almost all terms are positive. So a sum of n products, in any order, is off by at most n + 1
    half steps, and a layer hands on the relative error of the one before.
    """
    model = onnx.load(MODEL)
    model.graph.output.append(
        helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, [1, 1000, 1, 1])
    )
    (name,) = {info.name for info in model.graph.input} - _initialized(model)
    x = (np.arange(3 * 224 * 224) / (3 * 224 * 224)).astype(np.float32).reshape(1, 3, 224, 224)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    _, expected = session.run(None, {name: x})
    answer, logits = prepare(model).run([x])
    bound = 2 * _terms(model) * HALF_STEP  # theirs is off, too
    assert bound < 1e-3
    np.testing.assert_allclose(logits, expected, rtol=bound)
    powers = np.exp(np.float64(logits) - np.float64(logits).max())
    np.testing.assert_allclose(answer, powers / powers.sum(), rtol=1e-5)


def _initialized(model: onnx.ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}


def _terms(model: onnx.ModelProto) -> int:
    """Operations on the way to a logit: the terms of a sum of every layer, and a bias for each."""
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes = model.graph.node
    weights = {n.output[0]: shapes[n.input[0]] for n in nodes if n.op_type == "ConstantOfShape"}
    convolutions = [n for n in nodes if n.op_type == "Conv"]
    assert len(convolutions) == 26
    window = 13 * 13  # of GlobalAveragePool
    return window + sum(int(np.prod(weights[n.input[1]][1:])) + 1 for n in convolutions)
