"""Where OpenVINO computes an operator wrong, or not at all: one predicate an operator.

Each was found by running the ONNX backend suite and onnxruntime beside OpenVINO
(python -m eps.openvino.evidence), most of them in 2025.4 and 2026.4 alike. A predicate gives the
reason for refusing a node, or "".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.support.indices import gather, gather_nd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.openvino.support.node_facts import NodeFacts

    Condition = Callable[[NodeFacts], str]

FLOATS = (DataType.FLOAT, DataType.FLOAT16)
COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "IsInf", "Less", "LessOrEqual")


def _runtime(position: int, what: str) -> Condition:
    def condition(node: NodeFacts) -> str:
        return f"{what} is not a constant" if node.is_runtime(position) else ""

    return condition


def _attention(node: NodeFacts) -> str:
    if node.elem_type(0) == DataType.FLOAT16:
        return "float16 scores are rounded at other places"
    if node.has_input(3) or node.has_input(6):
        return "a mask may leave a row without any key, which OpenVINO turns into NaN"
    if node.wants(3):
        return "OpenVINO's qk_matmul_output differs"
    windows = node.given("sliding_window", "local_window_size", "left_window_size")
    windows += node.given("right_window_size", "window_size", "attention_window")
    return f"OpenVINO ignores {windows[0]}" if windows else ""


def _unsigned_shift(node: NodeFacts) -> str:
    signed = node.elem_type(0) not in (DataType.UINT8, DataType.UINT16)
    return "shifts of signed or wide integers differ" if signed else ""


def _rnn(node: NodeFacts) -> str:
    if node.number("layout", 0):
        return "layout=1 gives shapes with dimensions exchanged"
    if node.node.op_type == "LSTM" and node.has_input(7):
        return "peepholes (input P) are dropped without a word"
    odd = node.given("activation_alpha", "activation_beta", "clip", "input_forget")
    return f"attribute {odd[0]} is not checked against the operator's text" if odd else ""


def _pool(node: NodeFacts) -> str:
    """ONNX Pool-22: with ceil_mode a window must start inside the input or its left padding."""
    if not node.number("ceil_mode", 0):
        return ""
    shape, kernel = node.shape(0), node.numbers("kernel_shape")
    strides = node.numbers("strides") or (1,) * len(kernel)
    pads = node.numbers("pads") or (0,) * (2 * len(kernel))
    dilations = node.numbers("dilations") or (1,) * len(kernel)
    spatial = shape[2:] if shape is not None else ()
    if len(spatial) != len(kernel):
        return "ceil_mode with an input of unknown shape"
    for axis, size in enumerate(spatial):
        if not isinstance(size, int):
            return "ceil_mode with a dimension of unknown size: the last window may differ"
        before, after = pads[axis], pads[axis + len(kernel)]
        span = dilations[axis] * (kernel[axis] - 1) + 1
        steps = -(-(size + before + after - span) // strides[axis])
        if steps * strides[axis] >= size + before:
            return "ceil_mode with a last window that starts in the padding"
    return ""


def _reduce(node: NodeFacts) -> str:
    if node.is_runtime(1):
        return "axes are not a constant"
    shape = node.shape(0)
    return "an empty dimension" if shape is not None and 0 in shape else ""


def _extreme(node: NodeFacts) -> str:
    """ReduceMax of nothing but -inf gives the lowest float, ReduceMin likewise.

    Who can tell is a comparison (attention asks whether a row is fully masked) and the caller.
    """
    problem = _reduce(node)
    if problem or node.elem_type(0) not in FLOATS:
        return problem
    seen = [node.node.outputs[0]]
    for name in seen:
        for consumer in node.graph.consumers(name):
            reader = node.graph.nodes[consumer]
            if reader.op_type in ("Cast", "CastLike", "Identity"):
                seen.append(reader.outputs[0])
            elif reader.op_type in COMPARISONS:
                return f"a row of infinities gives the largest float, which {reader.op_type} tells"
    return ""


def _resize(node: NodeFacts) -> str:
    mode = node.text("coordinate_transformation_mode", "half_pixel")
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "keep_aspect_ratio_policy is ignored"
    if node.number("antialias", 0):
        return "antialias differs"
    if node.number("exclude_outside", 0):
        return "exclude_outside differs"
    if mode in ("tf_crop_and_resize", "half_pixel_symmetric"):
        return f"coordinate_transformation_mode {mode} has no conversion"
    scales = _floats(node, 2 if node.opset > 10 else 1)
    if mode == "align_corners" and (scales is None or any(s < 1 for s in scales)):
        return "align_corners with scales below 1 differs"
    return ""


def _floats(node: NodeFacts, position: int) -> tuple[float, ...] | None:
    """A constant float32 input; empty where the input is not given, None where not constant."""
    if not node.has_input(position):
        return ()
    constant = node.constant(position)
    if constant is None or not isinstance(constant.data, memoryview):
        return None
    return struct.unpack(f"<{len(constant.data) // 4}f", constant.data)


def _mode(name: str, right: str, why: str) -> Condition:
    def condition(node: NodeFacts) -> str:
        found = node.text(name, right)
        return "" if found == right else f"{name} {found}: {why}"

    return condition


def _wrap(node: NodeFacts) -> str:
    mode = node.text("mode", "constant")
    return f"mode {mode} has no conversion" if mode == "wrap" else ""


def _modulo(node: NodeFacts) -> str:
    wrong = not node.number("fmod", 0) and node.elem_type(0) in FLOATS
    return "fmod=0 on floats has no conversion" if wrong else ""


def _volumetric(node: NodeFacts) -> str:
    shape = node.shape(0)
    return "" if shape is not None and len(shape) == 4 else "not a 4-D input"


def _trilu(node: NodeFacts) -> str:
    return "k is not a constant" if node.is_runtime(1) else ""


def _quantised(node: NodeFacts) -> str:
    if node.number("block_size", 0):
        return "blocked quantisation has no conversion"
    runtime = node.is_runtime(1)
    return (
        "a scale that is no constant is applied by its reciprocal: other steps" if runtime else ""
    )


def _dequantised(node: NodeFacts) -> str:
    early = node.release < (2026, 0)
    return "blocks are scaled wrong before 2026" if node.number("block_size", 0) and early else ""


CONDITIONS: Mapping[str, Condition] = {
    "Attention": _attention,
    "AveragePool": _pool,
    "BitShift": _unsigned_shift,
    "DequantizeLinear": _dequantised,
    "GRU": _rnn,
    "Gather": gather,
    "GatherND": gather_nd,
    "GridSample": _volumetric,
    "LSTM": _rnn,
    "MaxPool": _pool,
    "LpPool": _pool,
    "Mod": _modulo,
    "Pad": _wrap,
    "QuantizeLinear": _quantised,
    "RNN": _rnn,
    "ReduceMax": _extreme,
    "ReduceMin": _extreme,
    "Resize": _resize,
    "RoiAlign": _mode("mode", "avg", "the maximum is taken elsewhere"),
    "SpaceToDepth": _mode("mode", "DCR", "computed as DCR"),
    "Squeeze": _runtime(1, "axes"),
    "Tile": _runtime(1, "repeats"),
    "Trilu": _trilu,
    "Unsqueeze": _runtime(1, "axes"),
    **dict.fromkeys(
        [
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceMean",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
        ],
        _reduce,
    ),
}
"""Conditions of ai.onnx operators that OpenVINO computes right in part."""

WRONG: Mapping[str, str] = {
    "Bernoulli": "random",
    "DFT": "wrong values and shapes",
    "Dropout": "wrong values even where it is the identity",
    "DynamicQuantizeLinear": "rounds to another step than the operator's text",
    "Multinomial": "random",
    "NonMaxSuppression": "wrong at the threshold",
    "RandomNormal": "random",
    "RandomNormalLike": "random",
    "RandomUniform": "random",
    "RandomUniformLike": "random",
    "TopK": "equal elements in another order",
}
"""ai.onnx operators that OpenVINO computes wrong whatever their attributes.

Of com.microsoft, whose operators the suite does not have, the table lists the ones that
tests/unit/openvino compares with onnxruntime. QLinearMul, QLinearLeakyRelu, QLinearAveragePool
and QLinearWhere wrap instead of saturating, DynamicQuantizeMatMul and DynamicQuantizeLSTM leave
activations unquantised, RotaryEmbedding and EmbedLayerNormalization lack attribute defaults."""
