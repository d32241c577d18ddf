"""A model in onnx's text form, run with all transformations, and by onnxruntime with none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import ort_lite as ort

CPU = ["CPUExecutionProvider"]
Values = dict[str, np.ndarray[Any, Any]]
ALL = ort.GraphOptimizationLevel.ORT_ENABLE_ALL


@dataclass(frozen=True, slots=True)
class Ran:
    fired: dict[str, int]
    left: list[str]
    outputs: list[Any]


def parsed(text: str, *, opset: int = 17, ir: int = 8) -> bytes:
    """The graph `text` as a model; com.microsoft is imported."""
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    return onnx.parser.parse_model(f"{head}\n{text}").SerializeToString()


def run(
    model: bytes,
    feed: Values,
    level: ort.GraphOptimizationLevel = ALL,
    disabled: tuple[str, ...] = (),
) -> Ran:
    """In ort_lite on the CPU EP."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    with ort.InferenceSession(
        model, options, providers=CPU, disabled_optimizers=disabled
    ) as session:
        report = session.explain()
        nodes = [node.op_type for part in report.partitions for node in part.nodes]
        return Ran(report.transforms, nodes, session.run(None, feed))


def expected(model: bytes, feed: Values) -> list[Any]:
    """onnxruntime's answers without its optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=CPU).run(None, feed)


def agrees(model: bytes, feed: Values, rtol: float = 1e-6) -> Ran:
    """What ort_lite did, whose numbers are onnxruntime's."""
    ran = run(model, feed)
    for mine, theirs in zip(ran.outputs, expected(model, feed), strict=True):
        assert mine.dtype == theirs.dtype
        largest = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0))
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * largest)
    return ran


def floats(*shape: int, seed: int = 3) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
