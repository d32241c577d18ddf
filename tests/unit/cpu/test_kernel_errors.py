"""What kernels refuse, and what they say."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from unit.cpu.single_node import run_node

from ort_lite.status import Fail, RuntimeException

F = np.ones((2, 3, 4), np.float32)
IMAGE = np.ones((1, 4, 5, 5), np.float32)
EMPTY = np.zeros((0, 3), np.float32)
TEXT = np.array(["a"], object)
HUGE = 1 << 50


def f(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def i(*values: int) -> Any:
    return np.array(values, np.int64)


def scalar(value: float) -> Any:
    return np.array(value, np.float32)


AT_BIND: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Gelu", [F], {"approximate": "erf"}, "Gelu: approximate is 'erf', expected 'none' or 'tanh'"),
    ("BitShift", [i(1), i(1)], {"direction": "UP"}, "BitShift: direction is 'UP'"),
    ("Conv", [IMAGE, f(1, 4, 2, 2)], {"auto_pad": "SOME"}, "Conv: auto_pad is 'SOME'"),
    ("Conv", [IMAGE, f(1, 4, 2, 2)], {"strides": [0, 1]}, "Conv: strides [0, 1] are not positive"),
    ("LpNormalization", [F], {"p": 3}, "LpNormalization: p is 3, expected 1 or 2"),
    ("Resize", [IMAGE, None, f(4)], {"mode": "square"}, "Resize: mode is 'square'"),
    ("RNN", [F, f(1, 4, 4), f(1, 4, 4)], {"direction": "up"}, "RNN: direction is 'up'"),
    ("RNN", [F, f(1, 4, 4), f(1, 4, 4)], {"activations": ["Cos"]},
     "RNN: activation 'Cos' is not known"),
    ("GRU", [F, f(1, 9, 4), f(1, 9, 3)], {"activations": ["Tanh"]},
     "GRU: 1 activations for 1 directions"),
    ("ScatterND", [F, i(0)[None], f(1)], {"reduction": "avg"},
     "ScatterND: reduction is 'avg', expected one of none, add, mul, max, min"),
    ("SoftmaxCrossEntropyLoss", [f(2, 3), i(0, 1)], {"reduction": "avg"},
     "SoftmaxCrossEntropyLoss: reduction is 'avg', expected none, sum or mean"),
    ("TensorScatter", [f(1, 2, 3, 4), f(1, 2, 1, 4)], {"mode": "ring"},
     "TensorScatter: mode is 'ring', expected 'linear' or 'circular'"),
    ("GridSample", [IMAGE, f(1, 2, 2, 2)], {"mode": "best"},
     "GridSample: mode 'best' with padding_mode 'zeros'"),
    ("RoiAlign", [IMAGE, f(1, 4), i(0)], {"mode": "sum"}, "RoiAlign: mode 'sum'"),
    ("StringNormalizer", [TEXT], {"case_change_action": "TITLE"},
     "case_change_action is 'TITLE', expected LOWER, UPPER or NONE"),
    ("RegexFullMatch", [TEXT], {"pattern": "("}, "RegexFullMatch: invalid pattern"),
    ("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "ABC"},
     "DepthToSpace: mode is 'ABC', expected 'DCR' or 'CRD'"),
    ("Attention", [f(1, 2, 3, 4)] * 3, {"qk_matmul_output_mode": 7},
     "qk_matmul_output_mode is 7, expected 0 to 3"),
    ("Attention", [f(1, 2, 3, 4)] * 3, {"left_window_size": -2},
     "window sizes -2 and -1 must be -1 or not negative"),
    ("LinearAttention", [f(1, 2, 4)] * 3, {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "x"},
     "update_rule is 'x', expected one of linear, gated, delta, gated_delta"),
    ("LinearAttention", [f(1, 2, 4)] * 3, {"q_num_heads": 3, "kv_num_heads": 2},
     "q_num_heads 3 is not a multiple of kv_num_heads 2"),
    ("CausalConvWithState", [f(1, 2, 4), f(2, 1, 2)], {"activation": "relu"},
     "activation is 'relu', expected none, silu or swish"),
    ("Constant", [], {}, "Constant node 'n' has no value"),
]  # fmt: skip

AT_RUN: list[tuple[str, list[Any], dict[str, Any], str]] = [
    # shapes
    *(
        (op, [f(1, 1, 2, 4), f(1, gates * 3, 4), f(1, gates * 3, 3)], {"layout": layout},
         "X has 4 dimensions, expected 3")
        for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
        for layout in (0, 1)
    ),
    ("Reshape", [F, i(5, 5)], {}, "Input shape:[2, 3, 4], requested shape:[5, 5]"),
    ("Reshape", [F, i(2, 3, 4, 0)], {}, "shape [2, 3, 4, 0] takes dimension 3 of (2, 3, 4)"),
    ("Flatten", [F], {"axis": 4}, "axis 4 is not in [-3, 3]"),
    ("Concat", [F, f(2, 4, 4)], {"axis": 2}, "must match exactly"),
    ("Concat", [F, F], {"axis": 3}, "axis 3 is out of bounds"),
    ("Split", [F, i(1, 1)], {"axis": 1, "outputs": 2}, "Cannot split using values in 'split'"),
    ("Split", [f(7)], {"opset": 13, "outputs": 2}, "Input cannot be split evenly on selected axis"),
    ("Split", [f(1)], {"num_outputs": 3, "outputs": 3}, "1 elements cannot be split into 3 parts"),
    ("Softmax", [F], {"axis": 3}, "axis 3 is not in [-3, 2]"),
    ("Squeeze", [F, i(0)], {}, "cannot select an axis to squeeze out"),
    ("Tile", [F, i(2)], {}, "'repeats' has 1 entries for rank 3"),
    ("Expand", [F, i(2, 5, 4)], {}, "shape mismatch"),
    # allocations that a model announces
    ("ConstantOfShape", [i(HUGE, HUGE)], {}, f"a result of shape [{HUGE}, {HUGE}] would take"),
    ("ConstantOfShape", [i(3, -1)], {}, "negative dimension in shape [3, -1]"),
    ("Expand", [f(1), i(HUGE)], {}, "are available"),
    ("Tile", [f(1), i(HUGE)], {}, "would take"),
    ("Range", [np.array(0), np.array(HUGE), np.array(1)], {}, "would take"),
    ("OneHot", [i(1), i(HUGE), f(2)], {}, "would take"),
    ("Pad", [f(1), i(0, HUGE)], {}, "would take"),
    ("Resize", [f(1, 1), None, None, i(HUGE, 1)], {}, "would take"),
    ("HannWindow", [np.array(HUGE)], {}, "would take"),
    ("RandomNormal", [], {"shape": [HUGE]}, "would take"),
    # cutting
    ("Slice", [F, i(0), i(1), i(5)], {}, "axis 5 is not in [-3, 2]"),
    ("Slice", [F, i(0), i(1), i(0), i(0)], {}, "'step' value cannot be 0"),
    ("Slice", [F, i(0, 0), i(1, 1), i(1, -2)], {}, "'axes' has duplicates: [1, 1]"),
    ("Pad", [F, i(1, 1)], {}, "'pads' has 2 entries for rank 3"),
    ("Pad", [F, i(1, 1, 1), None, i(0)], {}, "'pads' has 3 entries for 1 axes"),
    ("Pad", [F, i(0, 0, 0, 0, 0, 1)], {"mode": "mirror"}, "Pad: mode 'mirror' is not constant"),
    ("Pad", [EMPTY, i(1, 0, 0, 0)], {"mode": "edge"},
     "Cannot use 'edge' mode to pad dimension 0 of size 0"),
    ("Trilu", [f(3)], {}, "Trilu: rank 1, at least 2 is needed"),
    ("ReverseSequence", [f(3, 2), i(1)], {}, "sequence_lens has shape (1,), not (2,)"),
    ("EyeLike", [f(3)], {}, "EyeLike : Input tensor dimension is not 2, it is 1"),
    ("Range", [np.array(0), np.array(1), np.array(0)], {},
     "delta in Range operator can not be zero!"),
    # picking
    ("Gather", [F, i(2)], {}, "idx=2 must be within the inclusive range [-2,1]"),
    ("Gather", [F, i(-3)], {}, "idx=-3 must be within the inclusive range [-2,1]"),
    ("GatherElements", [F, i(0)], {}, "indices of shape (1,) do not fit data of shape (2, 3, 4)"),
    ("GatherND", [F, i(0, 0, 0, 0)], {},
     "indices of shape (4,) do not fit data of shape (2, 3, 4)"),
    ("GatherND", [F, np.zeros((1, 1), np.int64)], {"batch_dims": 1},
     "batch dimensions (1,), not (2,)"),
    ("ScatterElements", [f(3), i(0), f(2)], {}, "indices (1,) and updates (2,) differ"),
    ("ScatterND", [f(3), i(0)[None], f(2)], {}, "updates have shape (2,), expected (1,)"),
    ("TensorScatter", [f(1, 2, 3, 4), f(1, 2, 2, 4), i(2)], {}, "writing [2, 4) of a cache of 3"),
    ("TensorScatter", [f(2, 2), f(2, 2)], {}, "TensorScatter: axis is the batch axis"),
    ("TopK", [f(3), i(4)], {"outputs": 2},
     "k argument [4] should not be greater than axis dim [3]"),
    ("OneHot", [i(1), i(0), f(2)], {}, "Depth is negative or zero: 0"),
    # windows
    ("Conv", [f(3), f(3)], {}, "X of shape (3,) and W of shape (3,) do not fit"),
    ("Conv", [IMAGE, f(2, 3, 2, 2)], {},
     "4 input channels and 2 filters of 3 channels do not fit 1"),
    ("Conv", [IMAGE, f(2, 4, 7, 7)], {},
     "a window of 7 does not fit into 5 elements and padding 0, 0"),
    ("Conv", [IMAGE, f(2, 4, 2, 2)], {"strides": [1]}, "do not fit 2 spatial dimensions"),
    ("ConvTranspose", [IMAGE, f(3, 1, 2, 2)], {}, "do not fit"),
    ("DeformConv", [IMAGE, f(2, 3, 2, 2), f(1, 8, 4, 4)], {}, "do not fit"),
    ("AveragePool", [IMAGE], {"kernel_shape": [7, 7]},
     "a window of 7 does not fit into 5 elements"),
    ("NonMaxSuppression", [f(1, 2, 4), f(1, 1, 2), i(1), scalar(2)], {},
     "iou_threshold must be in range [0, 1], it is 2.0"),
    ("GridSample", [IMAGE, f(1, 2, 2, 3)], {}, "grid of shape (1, 2, 2, 3) for X of shape"),
    # products and norms
    ("MatMul", [f(2, 3), f(4, 5)], {}, "size 4 is different from 3"),
    ("Gemm", [f(2, 3, 1), f(3, 4)], {}, "Gemm of ranks 3 and 2, expected 2 and 2"),
    ("Gemm", [f(2, 3), f(3, 4), f(5, 2, 4)], {},
     "C of shape (5, 2, 4) does not broadcast to (2, 4)"),
    ("GroupNormalization", [IMAGE, f(4), f(4)], {"num_groups": 3},
     "4 channels cannot be parted into 3 groups"),
    ("Einsum", [f(2), f(3)], {"equation": "a,a->a"}, "does not match previous terms"),
    # quantised
    ("QuantizeLinear", [F, f(2)], {}, "scale or zero point (2,) for axis 1 of (2, 3, 4)"),
    ("QuantizeLinear", [F, f(2)], {"block_size": 2, "axis": 0},
     "blocked scale or zero point (2,) for (2, 3, 4)"),
    ("QuantizeLinear", [F, scalar(1), np.array(1, np.int8)], {"output_dtype": 2},
     "output_dtype 2 differs from the zero point's int8"),
    # casts
    ("Cast", [TEXT], {"to": 1}, "could not convert string to float: 'a'"),
    ("Cast", [f(2)], {"to": 24, "round_mode": "odd"}, "round_mode is 'odd', expected up, down or"),
    ("BitCast", [f(2)], {"to": 7}, "BitCast from float32 to int64: elements differ in size"),
    # resize
    ("Resize", [f(2, 2)], {}, "Either `sizes` or `scales` must be provided"),
    ("Resize", [f(2, 2), None, f(3)], {}, "3 scales for 2 axes"),
    ("Resize", [f(2, 2), None, None, i(1)], {}, "1 sizes for 2 axes"),
    ("Resize", [f(2, 2), None, np.array([1, 0], np.float32)], {},
     "Scale value should be greater than 0: [1.0, 0.0]"),
    ("Resize", [f(2, 2), f(3), f(2)], {}, "roi has 3 entries for 2 axes"),
    ("Resize", [f(2, 2), None, f(2) * 2], {"nearest_mode": "odd"},
     "nearest_mode 'odd' is not known"),
    ("Resize", [f(2, 2), None, f(2) * 2], {"coordinate_transformation_mode": "odd"},
     "coordinate_transformation_mode 'odd' is not known"),
    # text, signal
    ("StringNormalizer", [np.array([[["a"]]], object)], {},
     "Input dimensions are either[C > 0] or"),
    ("DFT", [f(1, 4, 3)], {}, "last dimension is 3, expected 1 (real) or 2 (complex)"),
    ("DFT", [f(1, 4, 1), None, np.array(-1)], {},
     "axis -1 is the axis of real and imaginary parts"),
    ("STFT", [f(1, 8, 1), np.array(2), f(3), np.array(4)], {},
     "window of shape (3,) for frames of 4"),
    ("STFT", [f(1, 8, 1), np.array(0), f(3)], {}, "frames of 3 every 0 in 8 samples"),
    # attention
    ("Attention", [f(1, 3, 2, 4), f(1, 2, 2, 4), f(1, 2, 2, 4)], {},
     "3 heads cannot share 2 key and 2 value heads"),
    ("Attention", [f(1, 2, 6)] * 3, {"q_num_heads": 4, "kv_num_heads": 4},
     "6 columns cannot be split into 4 heads"),
    ("Attention", [f(1, 2, 3, 4)] * 3 + [None, f(1, 2, 1, 4)], {},
     "past_key and past_value must be provided together"),
    ("Attention", [f(1, 2, 3, 4)] * 3 + [None] + [f(1, 2, 1, 4)] * 2 + [i(1)], {},
     "nonpad_kv_seqlen cannot be combined with past_key"),
    ("RotaryEmbedding", [f(1, 2, 4), f(2, 1), f(2, 1), i(0, 1)[None]], {"num_heads": 1},
     "caches of 1 and 1 columns, 2 are needed"),
    ("RotaryEmbedding", [f(1, 2, 5), f(2, 1), f(2, 1), i(0, 1)[None]], {"num_heads": 2},
     "5 columns cannot be split into 2 heads"),
    ("LinearAttention", [f(1, 2, 4)] * 3, {"q_num_heads": 2, "kv_num_heads": 2},
     "update_rule 'gated_delta' requires input decay"),
    ("LinearAttention", [f(1, 2, 4)] * 3 + [None, f(1, 2, 2)],
     {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"},
     "update_rule 'linear' forbids input decay"),
    ("LinearAttention", [f(1, 2, 4)] * 3 + [f(1, 1, 2, 2)],
     {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"},
     "past_state has shape (1, 1, 2, 2), expected (1, 2, 2, 2)"),
    ("CausalConvWithState", [f(2, 4), f(2, 1, 2)], {},
     "X of rank 2 and W of rank 3, expected 3 and 3"),
    # sequences and optionals
    ("SequenceAt", [[F], i(1)], {}, "Invalid sequence index (1) specified, expected [-1, 0]"),
    ("SequenceInsert", [[F], F, i(3)], {},
     "Invalid sequence index (3) specified, expected [-1, 1]"),
    ("SequenceErase", [[]], {}, "SequenceErase of an empty sequence"),
    ("SplitToSequence", [F, np.array(0)], {}, "invalid split size 0"),
    # before opset 7
    ("Add", [F, f(4)], {"opset": 6}, "shapes (2, 3, 4) and (4,) differ and broadcast is 0"),
]  # fmt: skip


def run(op: str, inputs: list[Any], options: dict[str, Any]) -> None:
    run_node(op, *inputs, **options)


@pytest.mark.parametrize(("op", "inputs", "options", "says"), AT_BIND)
def test_a_wrong_attribute_is_refused_when_the_session_is_made(
    op: str, inputs: list[Any], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(Fail, match=re.escape(says)) as caught:
        run(op, inputs, options)
    assert caught.value.message.startswith(
        f"Exception during initialization: {op} node. Name:'n': "
    )


@pytest.mark.parametrize(("op", "inputs", "options", "says"), AT_RUN)
def test_a_wrong_value_is_refused_when_it_is_run(
    op: str, inputs: list[Any], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(RuntimeException, match=re.escape(says)) as caught:
        run(op, inputs, options)
    assert f"running {op} node. Name:'n' Status Message: " in caught.value.message
