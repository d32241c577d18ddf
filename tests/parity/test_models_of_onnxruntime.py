"""Real models as ONNX Runtime's optimizer and quantiser leave them, on the CPU EP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnxruntime import GraphOptimizationLevel as Level
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CPU = "CPUExecutionProvider"
Values = dict[str, np.ndarray[Any, Any]]


class OneFeed(CalibrationDataReader):
    """Calibrates with the feed that is run afterwards."""

    def __init__(self, values: Values) -> None:
        self._left = [values]

    def get_next(self) -> Values | None:
        return self._left.pop() if self._left else None


def optimised(source: Path, target: Path, level: Any) -> Path:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(source, options, providers=[CPU])
    return target


def quantised(source: Path, target: Path, how: str, values: Values) -> Path:
    """`reduce_range`: without VNNI onnxruntime's sums of 8-bit products saturate."""
    if how == "dynamic":
        quantize_dynamic(source, target, reduce_range=True)
        return target
    kind = QuantFormat.QDQ if how == "qdq" else QuantFormat.QOperator
    quantize_static(
        str(source),
        str(target),
        OneFeed(values),
        quant_format=kind,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        reduce_range=True,
    )
    return target


def compare(path: Path, values: Values, share: float) -> set[str]:
    """Fail unless both give the same numbers; operators of com.microsoft that were there."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = Level.ORT_DISABLE_ALL
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(path, options, providers=[CPU]).run(None, values)
    with ort.InferenceSession(path, providers=[CPU]) as session:
        for mine, right in zip(session.run(None, values), theirs, strict=True):
            assert mine.dtype == right.dtype
            assert mine.shape == right.shape
            bound = share * float(np.abs(right).max(initial=0)) + 2e-6
            assert float(np.abs(mine.astype(np.float64) - right).max(initial=0)) <= bound
    import onnx  # noqa: PLC0415 - beside its only use

    nodes = onnx.load(path).graph.node
    return {node.op_type for node in nodes if node.domain == "com.microsoft"}


@pytest.mark.parametrize(
    ("name", "level", "operators", "share"),
    [
        ("minilm_l6_w8", "EXTENDED", {"FusedMatMul", "SkipLayerNormalization"}, 1e-4),
        ("ppocr_cls", "EXTENDED", {"FusedConv"}, 1e-4),
        ("silero_vad_static", "ALL", {"FusedConv"}, 1e-4),
        ("rawi_lstm_int8", "ALL", {"DynamicQuantizeLSTM", "DynamicQuantizeMatMul"}, 2e-2),
    ],
)
def test_a_model_that_onnxruntime_optimised_gives_its_numbers(
    name: str,
    level: str,
    operators: set[str],
    share: float,
    tmp_path: Path,
    model_path: Callable[[str], Path],
    example_inputs: Callable[[str], Values],
) -> None:
    target = tmp_path / "optimised.onnx"
    path = optimised(model_path(name), target, getattr(Level, f"ORT_ENABLE_{level}"))
    assert compare(path, example_inputs(name), share) >= operators


@pytest.mark.parametrize(
    ("name", "how", "operators"),
    [
        ("magika", "dynamic", {"DynamicQuantizeMatMul"}),
        ("magika", "qdq", {"QLinearMul"}),
        ("magika", "qoperator", {"QLinearAdd", "QLinearMul"}),
        ("ppocr_cls", "qdq", {"QLinearSoftmax"}),
        ("ppocr_cls", "qoperator", {"QLinearAdd", "QLinearMul", "QLinearSoftmax"}),
        ("ppocr_cls", "dynamic", set()),
    ],
)
def test_a_model_that_onnxruntime_quantised_gives_its_numbers(
    name: str,
    how: str,
    operators: set[str],
    tmp_path: Path,
    model_path: Callable[[str], Path],
    example_inputs: Callable[[str], Values],
) -> None:
    values = example_inputs(name)
    raw = quantised(model_path(name), tmp_path / "quantised.onnx", how, values)
    compare(raw, values, 5e-2)
    path = optimised(raw, tmp_path / "optimised.onnx", Level.ORT_ENABLE_EXTENDED)
    assert compare(path, values, 5e-2) >= operators


def test_a_layout_of_one_machine_is_refused_with_what_to_do(
    tmp_path: Path, model_path: Callable[[str], Path]
) -> None:
    path = optimised(model_path("squeezenet_rw"), tmp_path / "all.onnx", Level.ORT_ENABLE_ALL)
    with pytest.raises(ort.NotImplemented, match="save the model with graph_optimization_level"):
        ort.InferenceSession(path, providers=[CPU])
