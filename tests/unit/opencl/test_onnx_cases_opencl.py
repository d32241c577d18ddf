"""ONNX's own cases of operators, merged into one program for each opset."""

from __future__ import annotations

import pytest
from merged_cases import Merged, check, merge, node_cases

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
}
"""Cases that the EP leaves to the CPU EP, with a part of the reason that it gives."""


@pytest.mark.filterwarnings("ignore")  # making the cases overflows on purpose
@pytest.mark.parametrize(
    "operators", [INDEX, NORMS, RECURRENT], ids=["index", "norms", "recurrent"]
)
def test_onnx_cases_are_right_on_the_device(operators: tuple[str, ...]) -> None:
    for merged in merge(node_cases(operators), FIXED):
        run(merged)


def run(merged: Merged) -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    data, providers = merged.model.SerializeToString(), [OPENCL, "CPUExecutionProvider"]
    with ort.InferenceSession(data, options, providers=providers) as session:
        nodes = [n for p in session.explain().partitions for n in p.nodes]
        for node in nodes:
            reason = node.refusals.get(OPENCL, "")
            assert bool(reason) == (node.name in REFUSED), f"{node.name}: {reason}"
            assert REFUSED.get(node.name, "") in reason
        names = [info.name for info in session.get_outputs()]
        check(merged, dict(zip(names, session.run(None, merged.feeds), strict=True)))
