"""One com.microsoft node in onnxruntime and on the CPU EP."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(11)


def f32(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def i8(*shape: int) -> Array:
    """Seven bits: with eight, onnxruntime's sums saturate on CPUs without VNNI."""
    return RANDOM.integers(-64, 64, shape).astype(np.int8)


def scale(value: float = 0.02) -> Array:
    return np.array(value, np.float32)


def both(
    op: str,
    inputs: list[Array | None],
    outputs: int = 1,
    *,
    domain: str = "com.microsoft",
    constants: tuple[int, ...] = (),
    **attributes: Any,
) -> tuple[list[Array], list[Array]]:
    """A one-node model through onnxruntime and through the CPU EP; `constants` are initializers."""
    names = ["" if value is None else f"i{n}" for n, value in enumerate(inputs)]
    node = helper.make_node(
        op, names, [f"o{n}" for n in range(outputs)], domain=domain, **attributes
    )
    given = {n: v for n, v in zip(names, inputs, strict=True) if v is not None}
    kept = {names[i] for i in constants}
    feed = {n: v for n, v in given.items() if n not in kept}
    infos = [helper.make_tensor_value_info(n, _onnx_type(v), v.shape) for n, v in feed.items()]
    results = [
        helper.make_tensor_value_info(f"o{n}", TensorProto.UNDEFINED, None) for n in range(outputs)
    ]
    graph = helper.make_graph(
        [node], "g", infos, results, [numpy_helper.from_array(given[n], n) for n in sorted(kept)]
    )
    for info in graph.output:
        info.ClearField("type")
    made = helper.make_model(
        graph,
        opset_imports=[
            helper.make_opsetid("", 17),
            helper.make_opsetid("com.microsoft", 1),
            helper.make_opsetid("ai.onnx.ml", 3),
        ],
        ir_version=10,
    )
    data = made.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    theirs = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    mine = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    return mine.run(None, feed), theirs.run(None, feed)


def _onnx_type(value: Array) -> int:
    if value.dtype == object:
        return TensorProto.STRING
    return int(helper.np_dtype_to_tensor_dtype(value.dtype))


def agree(op: str, inputs: list[Array | None], outputs: int = 1, **attributes: Any) -> None:
    mine, theirs = both(op, inputs, outputs, **attributes)
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-5)


def steps_agree(op: str, inputs: list[Array | None], **attributes: Any) -> None:
    """Quantised results may differ by one step where a sum lies between two."""
    (mine,), (theirs,) = both(op, inputs, **attributes)
    assert mine.dtype == theirs.dtype
    assert np.abs(mine.astype(int) - theirs.astype(int)).max() <= 1
