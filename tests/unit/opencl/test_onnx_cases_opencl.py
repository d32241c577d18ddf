"""ONNX's own cases of operators, merged into one program for each opset."""

from __future__ import annotations

import pytest
from merged_cases import Merged, check, merge, node_cases
from opencl_devices import device_names

import ort_lite as ort

OPENCL = "OpenCLExecutionProvider"
FIXED = {
    "TopK": (1,),
    "CumSum": (1,),
    "CumProd": (1,),
    "OneHot": (1, 2),
    "Trilu": (1,),
    "ReduceLogSumExp": (1,),
    "Dropout": (1, 2),
    "LSTM": (1, 2, 3, 7),
    "GRU": (1, 2, 3),
    "RNN": (1, 2, 3),
    "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "QLinearConv": (1, 2, 3, 4, 5, 6, 7, 8),
    "MatMulInteger": (2, 3),
    "ConvInteger": (1, 2, 3),
}
"""Inputs that a kernel must know when it is compiled."""

INDEX = (
    "ArgMax", "ArgMin", "Hardmax", "TopK", "CumSum", "CumProd", "GatherElements",
    "ScatterElements", "Scatter", "ScatterND", "OneHot", "Trilu", "EyeLike", "ReverseSequence",
)  # fmt: skip
NORMS = (
    "GroupNormalization", "MeanVarianceNormalization", "LpNormalization", "LpPool",
    "GlobalLpPool", "LRN", "Dropout", "BitShift",
)  # fmt: skip
RECURRENT = ("LSTM", "GRU", "RNN")
QUANTISED = (
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv",
    "MatMulInteger", "ConvInteger",
)  # fmt: skip
NARROW = {
    "e4m3fn": "float8", "e5m2": "float8", "uint4": "uint4", "int4": "int4", "uint2": "uint2",
    "int2": "int2", "float4e2m1": "float4",
}  # fmt: skip
REFUSED = {
    "test_onehot_with_bfloat16_values": "bfloat16",
    "test_reversesequence_bfloat16": "bfloat16",
    "test_triu_zero": "without elements",
    "test_tril_zero": "without elements",
    "test_training_dropout_default": "in training",
    "test_training_dropout_default_mask": "in training",
    "test_training_dropout": "in training",
    "test_training_dropout_mask": "in training",
    "test_training_dropout_zero_ratio": "in training",
    "test_training_dropout_zero_ratio_mask": "in training",
    "test_lppool_3d_default": "rank 5",
    "test_lppool_2d_same_upper": "auto_pad",
    "test_lppool_2d_same_lower": "auto_pad",
    **{
        f"test_{way}quantizelinear_{kind}": told
        for way in ("", "de")
        for kind, told in NARROW.items()
    },
    "test_dequantizelinear_e4m3fn_float16": "float8",
    "test_dequantizelinear_e4m3fn_zero_point": "float8",
    **{
        f"test_qlinearmatmul_{rank}D_{kind}_float16": "float16"
        for rank in (2, 3)
        for kind in ("int8", "uint8")
    },
}
"""Cases that the EP leaves to the CPU EP, with a part of the reason that it gives."""


@pytest.mark.filterwarnings("ignore")  # making the cases overflows on purpose
@pytest.mark.parametrize(
    "operators", [INDEX, NORMS, RECURRENT], ids=["index", "norms", "recurrent"]
)
def test_onnx_cases_are_right_on_the_device(operators: tuple[str, ...]) -> None:
    for merged in merge(node_cases(operators), FIXED):
        run(merged)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device", device_names())
def test_quantised_cases_are_right_on_every_platform(device: str) -> None:
    for merged in merge(node_cases(QUANTISED), FIXED):
        run(merged, {"device": device})


def run(merged: Merged, options_of_ep: dict[str, str] | None = None) -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.placement", "all")
    data, providers = (
        merged.model.SerializeToString(),
        [(OPENCL, options_of_ep or {}), "CPUExecutionProvider"],
    )
    with ort.InferenceSession(data, options, providers=providers) as session:
        nodes = [n for p in session.explain().partitions for n in p.nodes]
        for node in nodes:
            reason = node.refusals.get(OPENCL, "")
            assert bool(reason) == (node.name in REFUSED), f"{node.name}: {reason}"
            assert REFUSED.get(node.name, "") in reason
        names = [info.name for info in session.get_outputs()]
        check(merged, dict(zip(names, session.run(None, merged.feeds), strict=True)))
